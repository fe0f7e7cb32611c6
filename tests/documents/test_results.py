"""Documents are made of the folders of the studies."""

import matplotlib as mpl
import pytest

import agewise
from agewise.report._claims import CLAIMS_NOTE, claims_note
from agewise.statistics import AXES
from agewise.tables._words import contrast_text, head_text
from benchmarks.documents import results
from benchmarks.documents.results import PARTS, claims_markdown, gap_markdown, write_results
from tests.scenarios import tiny

mpl.use("Agg")


def test_results_are_put_together_of_all_parts(tmp_path, monkeypatch):
    parts = {name: (command, lambda path: path.read_text()) for name, (command, _) in PARTS.items()}
    monkeypatch.setattr(results, "PARTS", parts)
    for name in PARTS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"## Part {name}\n", encoding="utf-8")
    text = write_results(tmp_path, tmp_path / "results.md").read_text(encoding="utf-8")
    places = [text.index(f"## Part {name}") for name in PARTS]
    assert places == sorted(places)
    (tmp_path / "map-paper").unlink()
    with pytest.raises(ValueError, match="map-paper is not there: run 'agewise reproduce"):
        write_results(tmp_path, tmp_path / "other.md")
    assert not (tmp_path / "other.md").exists()


def test_studies_are_told_from_their_folders(tmp_path):
    options = {"engine": "inline", "quiet": True}
    scenario = tiny(**{"run.rounds": 12})
    study = agewise.reproduce(scenario, 2, tmp_path / "claims", **options)
    text = PARTS["reproduce-paper"][1](tmp_path / "claims")
    for row in study.table().rows:
        assert all(contrast_text(gain) in text for gain in row.gains.values())
    assert study.table().family in text
    assert CLAIMS_NOTE in text
    assert "| coverage | drawn evenly from all UEs |" in text
    over = agewise.reproduce(scenario, 2, tmp_path / "claims", over="channel-uses", **options)
    text = claims_markdown(over)
    assert claims_note(AXES["channel-uses"]) in text
    assert "higher accuracy than max-pack with as many channel uses" in text
    assert f"| {head_text(over.table().at[-1], AXES['channel-uses'])} |" in text
    assert over.table().to_csv() == over.result.table("channel-uses").to_csv()
    gap = agewise.gap(
        scenario, ["age-based", "random"], {"threshold.rate": [2.0, 4.0]}, 2, tmp_path / "gap",
        every=6, **options,
    )  # fmt: skip
    lines = gap_markdown(gap).splitlines()
    assert "| rate | age-based | random |" in lines
    loss = gap.table.rows[3].loss_per_round.mean
    assert f"| {100 * loss:.2f} (" in lines[-1]
