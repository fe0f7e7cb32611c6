"""The documentation site: it builds without a warning, and says what the code has."""

import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import agewise
from agewise import flower
from agewise.report.pictures import PICTURES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "_ext"))

import cells  # noqa: E402
import gallery  # noqa: E402
import reference  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. Links that lead nowhere and cells that fail are warnings, and so errors."""
    for name in ("sphinx", "latex2mathml"):
        pytest.importorskip(name, reason="the extra dev has it")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    built = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(DOCS), str(out / "html")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert built.returncode == 0, built.stderr
    return out / "html"


def test_every_public_name_is_described(site):
    described = set(_described(site))
    for room in reference.ROOMS:
        # Some of Flower's can be looked at only where it is installed.
        names = flower.__all__ if room == "flower" else reference.public_names(room)
        missing = [name for name in names if not described & _spellings(room, name)]
        assert missing == [], room


def test_every_name_of_the_package_is_in_the_first_table(site):
    text = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert [name for name in agewise.__all__ if f"agewise.{name}" not in text] == []


def test_tutorials_show_what_their_cells_gave(site):
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        html = (site / "tutorials" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert "{code-cell}" not in html, page.stem
    assert "<img" in (site / "tutorials" / "ieee-figure.html").read_text(encoding="utf-8")
    assert "4 of 4 runs" in (site / "tutorials" / "resume.html").read_text(encoding="utf-8")


def test_formulas_are_mathml(site):
    for page in ("paper-map", "policies", "aggregation"):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        assert "<math" in text, page
        assert "<merror" not in text, page
        assert not re.search(r"<m[ion]>\\", text), f"{page}: a command of LaTeX that is none"


def test_what_is_minimised_over_stands_below(site):
    text = (site / "paper-map.html").read_text(encoding="utf-8")
    assert text.count("<munder><mo>min</mo>") == 2
    assert "<msub><mo>min</mo>" not in text


def test_formulas_have_a_font_of_the_site(site):
    style = (site / "_static" / "site.css").read_text(encoding="utf-8")
    (name,) = re.findall(r'@font-face { font-family: "STIX Two Math"; src: url\("([^"]*)"\)', style)
    font = site / "_static" / name
    assert font.read_bytes()[:4] == b"wOF2"
    assert font.stat().st_size < 500_000
    assert "SIL OPEN FONT LICENSE" in (font.parent / "OFL.txt").read_text(encoding="utf-8")
    assert f"docs/_static/{name}" in (ROOT / "NOTICE").read_text(encoding="utf-8")


def test_pages_with_cells_can_be_saved_as_notebooks(site):
    for page in [*(DOCS / "tutorials").glob("*.md"), DOCS / "bring-your-own.md"]:
        found = cells.CELL.findall(page.read_text(encoding="utf-8"))
        if found:
            book = json.loads((site / "_notebooks" / f"{page.stem}.ipynb").read_text("utf-8"))
            code = [each["source"] for each in book["cells"] if each["cell_type"] == "code"]
            assert code == [each.rstrip("\n") for each in found], page.stem
            shown = (site / page.relative_to(DOCS)).with_suffix(".html").read_text("utf-8")
            assert f'_notebooks/{page.stem}.ipynb" download' in shown


def test_the_gallery_has_every_picture(site):
    text = (site / "gallery.html").read_text(encoding="utf-8")
    assert [name for name in PICTURES if f"{name} -o {name}.pdf" not in text] == []
    assert text.count('src="data:image/webp') == len(PICTURES) + 1, "and that of a channel"


def test_commands_of_the_gallery_make_the_folders_that_it_draws():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    made = {
        f"runs/{kind}-{preset}"
        for kind, preset in re.findall(r"^agewise (compare|sweep) (\S+)", text, re.MULTILINE)
    }
    assert {gallery._command(name).split()[2] for name in PICTURES} == made
    explained = gallery._command("waterfall").split()[2]
    assert f"agewise explain {explained}\n" in text


def test_the_site_needs_no_network(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//', text), page


def _described(site):
    """The names in the inventory of the site."""
    content = (site / "objects.inv").read_bytes()
    lines = zlib.decompress(content.split(b"\n", 4)[4]).decode().split("\n")
    return [line.split(" py:")[0] for line in lines if " py:" in line]


def _spellings(room, name):
    """Under which names an object may be described: of its room, or of where it is handed on."""
    spellings = {f"agewise.{room}.{name}"}
    if room == "policies":
        spellings.add(f"agewise.scheduling.{name}")
    return spellings


def test_cells_show_prints_values_files_and_commands():
    shown = cells.run_cells(
        [
            "%%writefile note.txt\nin a file\n",
            "from pathlib import Path\nprint('printed')\nPath('note.txt').read_text()\n",
            "!cat note.txt\n!agewise \\\n  policies\n",
            "x = 1\n",
            "x + 1\n",
        ],
        "trial",
    )
    assert [one.text for one in shown[:2]] == ["", "printed\n'in a file\\n'\n"]
    assert shown[2].text.startswith("in a file\n")
    assert "max-pack" in shown[2].text
    assert [one.text for one in shown[3:]] == ["", "2\n"]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("1 / 0\n", "ZeroDivisionError"),
        ("!agewise run no-such-scenario\n", "no-such-scenario"),
        ("!false\n", "CalledProcessError"),
    ],
)
def test_a_cell_that_fails_is_named(cell, reason):
    with pytest.raises(cells.CellError, match=f"trial: cell 2 ended with .*{reason}"):
        cells.run_cells(["1\n", cell], "trial")


def test_text_notebooks_have_the_head_that_jupytext_reads():
    for page in (DOCS / "tutorials").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if cells.CELL.search(text):
            assert text.startswith("---\njupytext:\n"), page.name
            assert "format_name: myst" in text.split("---")[1], page.name


def test_columns_page_has_the_columns_of_results():
    scenario = agewise.Scenario.preset("paper").with_(
        **{
            "data.dataset": "synthetic",
            "cell.ues": 6,
            "cell.subchannels": 3,
            "run.rounds": 2,
            "learn.local_steps": 1,
        }
    )
    result = agewise.compare(scenario, seeds=2, engine="inline", quiet=True)
    assert _listed("rounds") == result.history("age-based").frame.columns
    assert _listed("table") == [
        re.sub(r"@.*", "@N", name) for name in result.table().to_polars().columns
    ]
    assert _listed("target") == result.to_target(0.5).to_polars().columns


def _listed(table):
    """The columns that a table of the page names."""
    text = (DOCS / "columns.md").read_text(encoding="utf-8")
    rows = text.split(f"<!-- columns: {table} -->")[1].split("\n## ")[0].split("\n|")
    first = [row.split("|")[0] for row in rows]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


def test_policy_reference_says_what_policies_take():
    text = reference.policy_reference()
    assert "| `epsilon` | `0.9` | in [0, 1] |" in text
    assert "| `ties` | `random` | random or lowest-index |" in text
    assert "| `packing` | `greedy` | one of greedy, in-order, auction, exact |" in text
    assert "| `cap` | `None` | in (0, ∞) |" in text
    assert "| `penalty` | `2.0` | in [0, ∞) |" in text
    assert "| `alpha` | `0.5` | a finite number |" not in text
    for name in agewise.policies.names():
        part = text.split(f"## {name}\n")[1].split("\n## ")[0]
        for parameter in agewise.policies.make_policy(name).parameters:
            assert f"| `{parameter}` |" in part


def test_scenario_reference_has_every_field():
    """Whatever stands in a preset is in the tables."""
    text = reference.scenario_reference()
    for preset in agewise.scenario.presets():
        for path in _paths(agewise.Scenario.preset(preset).resolved(), ""):
            # Classes are called as the scenario likes.
            path = re.sub(r"^devices\.classes\.[\w-]+", "devices.classes", path)
            path = path.replace("classes.computing", "computing")
            path = path.replace("classes.availability", "availability")
            section, _, field = path.rpartition(".")
            if not section or section.endswith(("optimiser_settings", "arguments")):
                continue
            assert re.search(rf"^#+ {re.escape(section)}$", text, flags=re.MULTILINE), path
            assert field == "kind" or f"| `{field}` |" in text, path


def _paths(values, prefix):
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, dict):
            yield from _paths(value, path)
        else:
            yield path


def test_documents_say_it_plainly():
    """Phrases that readers stumbled over."""
    stumbled = re.compile(r"\b(heard of|so many|so much memory|likewise|earlier rounds taught)\b")
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        assert not stumbled.search(page.read_text(encoding="utf-8")), page.name


def test_the_start_page_leads_to_every_tutorial(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    for page in (DOCS / "tutorials").glob("*.md"):
        assert f'href="tutorials/{page.stem}.html' in text, page.stem
