"""The comparison with neural networks: the table, its gains, the part of the document."""

import numpy as np
import pytest

from agewise.report.text import points_text
from agewise.scenario import Scenario
from benchmarks.documents.neural import AGGREGATIONS, POLICIES, compare_neural
from tests.scenarios import tiny


def test_the_comparison_and_its_part_of_the_document(tmp_path):
    model = {"kind": "mlp", "hidden_widths": [8]}
    scenario = tiny(**{"learn.model": model, "run.rounds": 12})
    options = {"scenario": scenario, "engine": "inline", "quiet": True}
    study = compare_neural("mlp-mnist", 3, tmp_path, **options)
    assert study.points == (10,)
    assert list(study.accuracy) == [(rule, policy) for rule in AGGREGATIONS for policy in POLICIES]
    rows = study.table().to_dicts()
    for row in rows:
        own, base = (
            study.accuracy[row["aggregation"], policy][0] for policy in (row["policy"], "max-pack")
        )
        assert row["at@10"] == pytest.approx(own.mean())
        if row["policy"] == "max-pack":
            assert row["gain@10"] is row["p@10"] is None
        else:
            assert row["gain@10"] == pytest.approx(np.mean(own - base))
    text = (tmp_path / "neural.md").read_text(encoding="utf-8")
    assert text.count("| memory | ") == text.count("| average | ") == 4
    assert f"<br>{points_text(rows[0]['gain@10'])}" in text
    assert "corrected for 6 tests" in text
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert len(times) == 24
    compare_neural("mlp-mnist", 3, tmp_path, **options)
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}


def test_the_preset_is_the_papers_cell_with_another_model():
    paper, neural = Scenario.preset("paper"), Scenario.preset("mlp-mnist")
    for section in ("cell", "channel", "threshold", "timing", "data"):
        assert getattr(paper, section) == getattr(neural, section)
    assert neural.learn.model.hidden_widths == (200, 200)
