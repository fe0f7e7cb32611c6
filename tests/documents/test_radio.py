"""Policies on other channels: the runs, the numbers and the paragraph about them."""

import numpy as np

from agewise import statistics
from agewise.tables._words import contrast_text
from benchmarks.documents.radio import (
    CHANNELS,
    POLICIES,
    RadioStudy,
    compare_channels,
    radio_markdown,
)
from tests.scenarios import tiny


def test_every_channel_is_run_and_told(tmp_path):
    scenario = tiny(**{"run.rounds": 3, "cell.subchannel_bandwidth_hz": 180e3})
    options = {"engine": "inline", "quiet": True}
    study = compare_channels(scenario, 2, tmp_path / "radio", **options)
    assert list(study.scores) == list(CHANNELS)
    assert len(study.result.entries) == 2 * len(CHANNELS) * len(POLICIES)
    owners = [
        study.result.history("max-pack", 0, varied).owner.tobytes()
        for varied in study.result.variations
    ]
    assert len(set(owners)) >= len(CHANNELS) - 1  # what is known late may be scheduled alike
    text = (tmp_path / "radio" / "radio.md").read_text(encoding="utf-8")
    gain = statistics.contrast(*(study.scores["shadowing"][p] for p in POLICIES[:2]))
    (row,) = [line for line in text.splitlines() if line.startswith("| shadowing |")]
    assert contrast_text(gain) in row
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "radio/runs").iterdir()}
    compare_channels(scenario, 2, tmp_path / "radio", **options)
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "radio/runs").iterdir()}


def made(gains):
    """A study of ten seeds with these gains of age-based over max-pack, in order of policies."""
    noise = np.random.default_rng(0).normal(0.0, 0.002, (2, 10))
    scores = {}
    for name, gain in zip(CHANNELS, gains, strict=True):
        scores[name] = {policy: 0.8 - 0.01 * i + noise[0] for i, policy in enumerate(POLICIES)}
        scores[name]["age-based"] = scores[name]["max-pack"] + gain + noise[1]
    return RadioStudy(None, scores, 10)


def test_the_verdict_follows_the_tests():
    text = radio_markdown(made([0.02] * 6))
    assert "the paper's order of the two survives on every channel" in text
    text = radio_markdown(made([0.02, 0.02, 0.0, -0.03, 0.02, 0.02]))
    assert "age-based is shown to be below max-pack with: mobility" in text.replace("Age", "age")
    assert "with: shadowing" in text
    assert "survives" not in text
    study = made([0.02, 0.02, 0.0, -0.03, 0.02, 0.02])
    assert abs(study.agreement()[0] - 1.0) < 1e-9
    assert study.agreement()[3] < 0.9


def test_what_independent_subchannels_flatter_is_told_of_every_policy():
    study = made([0.02] * 6)
    correlated = study.scores["correlated subchannels"]
    correlated["max-pack"] = correlated["max-pack"] - 0.004
    text = radio_markdown(study)
    (said,) = [line for line in text.splitlines() if line.startswith("What independent")]
    assert "max-pack -0.4 (-0.4 to -0.4), p < 0.001" in said
    assert "round-robin 0.0 (0.0 to 0.0), p = 1.000" in said
    assert study.correlated()["max-pack"].mean < -0.0039
