"""The documents say what the code computes."""

import re
from pathlib import Path

import numpy as np
import pytest

import agewise
from agewise.resources import kept_memories
from tests import architecture, errata

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: That the site may have, without decisions: what has a letter, also in code and tables.
MOST_WORDS = 30_000


def test_errata_figures_are_what_the_script_makes():
    text = errata.DOCUMENT.read_text(encoding="utf-8")
    assert errata.regenerated(text) == text


def test_architecture_shows_the_import_layers():
    text = architecture.DOCUMENT.read_text(encoding="utf-8")
    assert architecture.regenerated(text) == text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_named_in_documents_exists(document):
    """Names written as `agewise.x.y` or as paths under src/ and tests/ are real."""
    import importlib

    text = document.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|benchmarks|examples|docs)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(agewise(?:\.\w+)+)`", text):
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("name", ["README.md", "docs/gym.md", "docs/policies.md"])
def test_python_in_documents_runs(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {"__name__": "example"})


def test_every_policy_is_described():
    from agewise import policies

    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert [name for name in policies.names() if f"`{name}`" not in text] == []


def test_readme_says_what_the_results_say():
    """Every number of its findings is one of the generated page's."""
    found, results = _section("README.md", "What we found"), _section("docs/results.md", "In short")
    number = r"[+-]?\d+(?:\.\d+)?%?"
    said = re.findall(number, found)
    assert len(said) > 20
    assert not set(said) - set(re.findall(number, results))
    assert len(re.sub("<!--.*?-->", "", found).split()) <= 140


@pytest.mark.long
def test_readme_shows_what_its_command_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert "agewise compare paper " in text
    result = agewise.compare(agewise.Scenario.preset("paper"), engine="inline", quiet=True)
    assert " ".join(shown.split()) == agewise.report.verdict(result, result.table()).answer


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_documents_do_not_grow():
    """Words without decisions, code and tables included; what is new takes the place of old."""
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")
             if path.parent.name != "decisions"]  # fmt: skip
    words = (word for text in texts for word in text.split() if re.search("[a-zA-Z]", word))
    assert sum(1 for _ in words) <= MOST_WORDS


def test_readme_is_as_fast_as_the_page_on_speed():
    page = (ROOT / "docs/speed.md").read_text("utf-8")
    said = _section("README.md", "How fast")
    (small,) = re.findall(r"^\| 100 UEs, 20 subchannels \|(.*)\|$", page, re.MULTILINE)
    kernel, call, *_ = (cell.strip() for cell in small.split("|"))
    assert f"in {kernel} by the kernel ({call} with all checks)" in said
    rows = {}
    for line in page.split("## Beside other frameworks")[1].split("\n\n")[2].splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = [re.fullmatch(r"([\d.,]+)(?: \(([\d.]+)\))?", cell) for cell in cells]
    own = [float(cell[1]) for cell in rows.pop("Agewise")]
    rows.pop("a plain loop in Numba")
    times = [[float(cell[2]) for cell in cells] for cells in rows.values()]
    for cells, ratios in zip(rows.values(), times, strict=True):
        measured = [float(c[1].replace(",", "")) / o for c, o in zip(cells, own, strict=True)]
        assert ratios == pytest.approx(measured, rel=0.03), "of rounded times"
    linear, _, mlp, lenet = zip(*times, strict=True)
    assert len(rows) == 4, "the README writes it as a word"
    assert f"takes {own[0]} ms of CPU: {min(linear):g} to {max(linear):g} times" in said
    assert f"{min(mlp):g} times as fast as in the fastest of them, LeNet-5 {min(lenet):g}" in said


def test_memories_are_as_large_as_documents_say():
    for name, preset, changes in (
        ("aggregation", "paper", {"learn.aggregation": {"kind": "memory", "discount": "none"}}),
        ("learning", "mlp-mnist", {"learn.local": "control-variates"}),
    ):
        scenario = agewise.Scenario.preset(preset).with_(**changes)
        (kept,) = kept_memories(scenario)
        assert f"`{kept}`" in (ROOT / f"docs/{name}.md").read_text("utf-8")


def _section(name, title):
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_targets_named_in_documents_exist():
    made = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        named = re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE)
        assert set(named) <= set(made), document.name


def test_shares_of_the_presets_in_the_radio_page_are_measured():
    """What the table says of 5 seeds and 5 rounds, to two points and 1.5 dB."""
    text = (ROOT / "docs" / "radio.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|[^|\n]*\|[^|\n]*\|(.*)\|$", text, re.MULTILINE)
    assert len(rows) == 5
    for preset, cells in rows:
        *shares, snr = cells.split("|")
        counts, snr_db = _needs_and_snr_db(agewise.Scenario.preset(preset))
        found = [counts == 1, (counts > 1) & (counts < 4), counts > 3, counts == 0]
        said = [float(share.strip(" %")) for share in shares]
        assert said == pytest.approx([100 * each.mean() for each in found], abs=2.0), preset
        median, low, high = map(float, re.findall(r"-?\d+", snr))
        measured = np.percentile(snr_db, [10, 50, 90]).tolist()
        assert [low, median, high] == pytest.approx(measured, abs=1.5), preset


def _needs_and_snr_db(scenario):
    """Of all UEs, rounds and seeds: subchannels needed as the access point sees it, mean SNR."""
    rate = scenario.rate_threshold + scenario.threshold.margin
    needed, snr_db = [], []
    for seed in range(5):
        channel = scenario.make_channel(agewise.Streams(seed))
        for t in range(5):
            uplink = agewise.Uplink(channel.block(t).seen, channel.power_budget, rate)
            needed.append(uplink.needs()[0])
            gains = channel.large_scale(t).mean_gains
            snr_db.append(10 * np.log10(gains * channel.power_budget))
    return np.concatenate(needed), np.concatenate(snr_db)
