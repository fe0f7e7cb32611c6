"""The verdict follows from the numbers, in every direction."""

import json

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise.experiment import Measured
from agewise.reproduction import judge
from agewise.reproduction import map as map_module
from tests.scenarios import tiny

mpl.use("Agg")


def measured(gain_early, gain_late, diversity, spread, seed=0):
    """Twenty runs of 100 rounds around 0.7 plus these gains."""
    rng = np.random.default_rng(seed)
    level = 0.7 + 0.002 * rng.normal(size=(20, 1))
    accuracy = level + np.concatenate((np.full(40, gain_early), np.full(60, gain_late)))
    accuracy = accuracy + 0.001 * rng.normal(size=accuracy.shape)
    ones = np.ones(20)
    return Measured(
        list(range(20)), ones, ones, ones, ones, diversity * ones, spread + 0.01 * level[:, 0],
        accuracy,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("early", "late", "higher", "pronounced"),
    [
        (0.05, 0.02, "holds", "holds"),
        (0.02, 0.05, "holds", "does not hold"),
        (0.03, 0.0, "holds in part", "holds"),
        (0.0, 0.0, "does not hold", "does not hold"),
        (-0.04, -0.04, "does not hold", "does not hold"),
        (-0.04, 0.04, "holds in part", "does not hold"),
    ],
)
def test_the_first_two_claims(early, late, higher, pronounced):
    claims = judge(measured(early, late, 0.5, 10, seed=1), measured(0, 0, 0.5, 10), 100)
    assert [claim.verdict for claim in claims[:2]] == [higher, pronounced]
    assert f"{100 * late:+.1f} points at round 100" in claims[0].evidence.replace("-0.0", "+0.0")


def test_the_third_claim_needs_both_more_diversity_and_a_link():
    base = measured(0, 0, 0.5, 10.0)
    rng = np.random.default_rng(3)
    wider = rng.random(20)
    gain = (0.02 + 0.05 * wider)[:, None]
    linked = Measured(
        base.seeds, *(base.ues_per_round,) * 4, base.diversity, base.spread + 1 + wider,
        base.accuracy + gain,
    )  # fmt: skip
    assert judge(linked, base, 100)[2].verdict == "holds"
    unlinked = Measured(
        base.seeds, *(base.ues_per_round,) * 4, base.diversity, base.spread + 1 + wider,
        base.accuracy + 0.03 + 0.01 * rng.normal(size=(20, 1)),
    )  # fmt: skip
    assert judge(unlinked, base, 100)[2].verdict == "holds in part"
    narrower = Measured(
        base.seeds, *(base.ues_per_round,) * 4, base.diversity, base.spread - 1 - 0.1 * wider,
        base.accuracy + 0.03,
    )  # fmt: skip
    assert judge(narrower, base, 100)[2].verdict == "does not hold"


def test_short_runs_cannot_be_judged_on_early_rounds():
    short = measured(0, 0, 0.5, 10)
    cut = Measured(*(getattr(short, f) for f in short.__dataclass_fields__ if f != "accuracy"),
                   short.accuracy[:, :30])  # fmt: skip
    assert judge(cut, cut, 30)[1].verdict == "cannot be judged"


def test_reproduce_runs_judges_and_draws(tmp_path):
    made = agewise.reproduce(
        tiny(**{"run.rounds": 6}), 3, tmp_path / "small", engine="inline", quiet=True
    )
    assert len(made.result.entries) == 6 * 3
    assert [claim.verdict for claim in made.claims][1] == "cannot be judged"
    for file in made.figures:
        assert file.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
    assert b"Type3" not in made.figures[1].read_bytes(), "fonts are embedded as outlines"
    before = [file.read_bytes() for file in made.figures]
    agewise.reproduce(tiny(**{"run.rounds": 6}), 3, tmp_path / "small", engine="inline", quiet=True)
    assert [file.read_bytes() for file in made.figures] == before, "the same figure, same bytes"
    assert json.loads((tmp_path / "small" / "experiment.json").read_text())["seeds"] == [0, 1, 2]


def test_map_holds_the_paired_gains(tmp_path, monkeypatch):
    monkeypatch.setattr(map_module, "THRESHOLDS", (2.0, 5.0))
    monkeypatch.setattr(
        map_module, "LIKENESS",
        {"all alike": {"data.partition": "iid"}, "2 classes": {"data.partition": "shards"}},
    )  # fmt: skip
    monkeypatch.setattr(map_module, "ALPHAS", (0.0, 1.0))
    drawn = agewise.reproduce_map(
        tiny(**{"run.rounds": 4}), 3, tmp_path / "map", engine="inline", quiet=True
    )
    assert drawn.gains.shape == drawn.p_values.shape == (2, 2, 2)
    variation = {"channel.rate_threshold": 5.0, "data.partition": "shards"}
    aged = drawn.result.accuracy("age-based(alpha=1.0, ties=random, form=paper)", variation)
    packed = drawn.result.accuracy("max-pack(ties=random)", variation)
    assert drawn.gains[1, 1, 1] == pytest.approx((aged - packed).mean())
    assert sum(drawn.counts()) == 8
    assert all(file.exists() for file in drawn.figures)
