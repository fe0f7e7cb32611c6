"""The comparison with neural networks: the table, its gains, the part of the document."""

import numpy as np
import pytest

from agewise.scenario import Scenario
from agewise.tables._words import points_text
from benchmarks.documents.neural import AGGREGATIONS, POLICIES, compare_neural
from tests.scenarios import tiny


def test_the_comparison_and_its_part_of_the_document(tmp_path):
    model = {"kind": "mlp", "hidden_widths": [8]}
    scenario = tiny(**{"learn.model": model, "run.rounds": 12})
    options = {"scenario": scenario, "engine": "inline", "quiet": True}
    study = compare_neural("mlp-mnist", 3, tmp_path, **options)
    assert study.points == (10,)
    assert list(study.accuracy) == [(rule, policy) for rule in AGGREGATIONS for policy in POLICIES]
    found = study.estimates()
    for (aggregation, policy), at in found.items():
        own, base = (study.accuracy[aggregation, each][0] for each in (policy, "max-pack"))
        assert at[10].mean == pytest.approx(own.mean())
        if policy == "max-pack":
            assert at[10].gain is None
        else:
            assert at[10].gain.mean == pytest.approx(np.mean(own - base))
    text = (tmp_path / "neural.md").read_text(encoding="utf-8")
    assert text.count("| memory | ") == text.count("| average | ") == 4
    assert f"<br>{points_text(found['average', 'age-based'][10].gain.mean)}" in text
    assert "Too few seeds for a verdict: 3; " in text
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert len(times) == 24
    compare_neural("mlp-mnist", 3, tmp_path, **options)
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}


def test_the_preset_is_the_papers_cell_with_another_model():
    paper, neural = Scenario.preset("paper"), Scenario.preset("mlp-mnist")
    for section in ("cell", "channel", "threshold", "timing", "data"):
        assert getattr(paper, section) == getattr(neural, section)
    assert neural.learn.model.hidden_widths == (200, 200)
