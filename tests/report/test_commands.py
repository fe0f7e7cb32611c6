"""The commands that show results."""

import json

from agewise.scenario import short_hash
from tests.scenarios import tiny
from tests.test_cli import agewise_command


def test_commands_write_and_say_where(compared, swept, tmp_path):
    report = agewise_command("report", str(compared.path), "-o", "page.html", cwd=tmp_path)
    assert (report.returncode, report.stdout) == (0, "Page: page.html\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What the paper says, and what holds here" in page
    at = ("--at", "threshold.rate=1")
    figure = agewise_command("figure", str(swept.path), "ages", "-o", "a.svg", *at, cwd=tmp_path)
    assert (figure.returncode, figure.stdout) == (0, "Figure: a.svg\n")
    wrong = agewise_command("figure", str(swept.path), "pie", "-o", "p.pdf", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "there are gain, forest" in wrong.stderr
    assert agewise_command("report", str(tmp_path)).stderr.count("\n") == 1


def test_comparisons_end_with_the_page(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny().to_toml())
    mark = short_hash(tiny())  # of the scenario, a part of the folder's name
    common = ("tiny.toml", "--seeds", "2", "--engine", "inline")
    made = agewise_command("compare", *common, cwd=tmp_path)
    assert made.stdout.endswith(f"Page: runs/compare-tiny-{mark}/report.html\n"), made.stderr
    assert (tmp_path / f"runs/compare-tiny-{mark}/report.html").stat().st_size < 8e6
    vary = ("--vary", "threshold.rate=1,4")
    swept = agewise_command("sweep", *common, *vary, "--json", cwd=tmp_path)
    assert len(json.loads(swept.stdout)["rows"]) == 4
    assert f"Page: runs/sweep-tiny-{mark}/report.html" in swept.stderr
    live = agewise_command("run", "tiny.toml", "--live", cwd=tmp_path)
    assert "round 8 of 8: " in live.stdout
