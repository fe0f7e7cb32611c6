"""The commands that show results."""

import json
import re
from pathlib import Path

import agewise
from agewise.scenario import short_hash
from tests.scenarios import tiny
from tests.test_cli import agewise_command


def test_commands_write_and_say_where(compared, swept, tmp_path):
    report = agewise_command("report", str(compared.path), "-o", "page.html", cwd=tmp_path)
    assert (report.returncode, report.stdout) == (0, "Page: page.html\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What the paper says, and what holds here" in page
    at = ("--setting", "threshold.rate=1")
    figure = agewise_command("figure", str(swept.path), "ages", "-o", "a.svg", *at, cwd=tmp_path)
    assert (figure.returncode, figure.stdout) == (0, "Figure: a.svg\n")
    wrong = agewise_command("figure", str(swept.path), "pie", "-o", "p.pdf", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "there are gain, forest" in wrong.stderr
    assert agewise_command("report", str(tmp_path)).stderr.count("\n") == 1


def test_tables_and_citations_for_papers(compared, tmp_path):
    given = ("show", str(compared.path), "--latex", "--label", "age-based=ABS & co")
    shown = agewise_command(*given, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for part in (r"\toprule", r"ABS \& co & ", r"max-pack:ties=lowest-index", r"\bottomrule"):
        assert part in shown.stdout
    assert "age-based &" not in shown.stdout
    assert shown.stdout.count(r"\begin{tabular}") == 2
    wrong = agewise_command("show", str(compared.path), "--latex", "--label", "ABS", cwd=tmp_path)
    assert wrong.stderr == (
        "agewise: --label needs policy=label, such as age-based=ABS, not 'ABS'\n"
    )
    drawn = agewise_command(
        "figure", str(compared.path), "forest", "-o", "f.csv", "--label", "age-based=ABS",
        cwd=tmp_path,
    )  # fmt: skip
    assert drawn.returncode == 0, drawn.stderr
    assert "ABS" in (tmp_path / "f.csv").read_text()
    cited = agewise_command("cite").stdout
    known = (Path(__file__).parents[2] / "CITATION.cff").read_text("utf-8")
    for title in re.findall(r'^ *title: "(.*)"', known, re.MULTILINE):
        assert f"{{{title}}}" in cited
    for author in re.findall(r"family-names: (\w+)", known):
        assert f" {author}" in cited
    assert f"version = {{{agewise.__version__}}}" in cited
    assert cited.count("{") == cited.count("}")


def test_comparisons_end_with_the_page(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny().to_toml())
    mark = short_hash(tiny())  # of the scenario, a part of the folder's name
    common = ("tiny.toml", "--seeds", "2", "--engine", "inline")
    made = agewise_command("compare", *common, cwd=tmp_path)
    *_, page, verdict = made.stdout.splitlines()
    assert page == f"Page: runs/compare-tiny-{mark}/report.html", made.stderr
    assert verdict.startswith("Too few seeds for a verdict: 2. After 8 rounds age-based reaches")
    assert made.stderr == "", "no progress where there is no terminal"
    assert (tmp_path / f"runs/compare-tiny-{mark}/report.html").is_file()
    vary = ("--vary", "threshold.rate=1,4")
    swept = agewise_command("sweep", *common, *vary, "--json", cwd=tmp_path)
    assert len(json.loads(swept.stdout)["rows"]) == 4
    assert f"Page: runs/sweep-tiny-{mark}/report.html" in swept.stderr
    live = agewise_command("run", "tiny.toml", "--live", cwd=tmp_path)
    assert "round 8 of 8: " in live.stdout
