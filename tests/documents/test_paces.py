"""The study of paces: what its sentences say, and that the page has them."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agewise import simulate
from benchmarks.documents.paces import (
    FIRST,
    PRESETS,
    SHORT,
    VARIED,
    PaceStudy,
    first_accuracy,
    measured,
    paces_markdown,
    score,
)
from tests.scenarios import tiny

#: Accuracies of age-based, max-pack and another policy in the first variant, and in short periods.
MEANS = {
    "rounds": ((0.80, 0.75, 0.80), (0.80, 0.75)),
    "hold": ((0.70, 0.79, 0.80), (0.60, 0.80)),
    "hold, FedBuff": ((0.78, 0.77, 0.75), ()),
    "restart": ((0.82, 0.80, 0.81), (0.80, 0.82)),
    "restart, FedBuff": ((0.83, 0.78, 0.80), (0.81, 0.80)),
}


def study(flip=False):
    names = ("max-pack", "age-based") if flip else ("age-based", "max-pack")
    noise = np.random.default_rng(0).normal(0.0, 1e-4, (3, 10))
    scores = {
        (variant, setting, policy): mean + noise[place]
        for setting, variants in MEANS.items()
        for variant, means in zip((FIRST, SHORT), variants, strict=True)
        for place, (policy, mean) in enumerate(zip((*names, "third"), means, strict=False))
    }
    scores[FIRST, "rounds", "third"] = scores[FIRST, "rounds", names[0]]
    known = dict.fromkeys(scores, 1000.0)
    joules = known | {(FIRST, "restart", "age-based"): 8223.4}
    stale = dict.fromkeys(scores, 5.31) | {(SHORT, "restart", "age-based"): 1.74}
    unheard = dict.fromkeys(scores, 0.0) | {
        (FIRST, "rounds", "max-pack"): 52.0,
        (FIRST, "hold", "max-pack"): 44.0,
        (FIRST, "hold", "third"): 54.2,
        (SHORT, "hold", "max-pack"): 6.9,
    }
    return PaceStudy("paper", 10, scores, joules, stale, unheard)


def test_sentences_follow_from_the_numbers():
    text = paces_markdown([study()])
    ranking, best, losses, costs, period = re.findall(r"^- (.*)$", text, flags=re.MULTILINE)
    assert ranking == (
        "Holding turns the ranking over, restarting turns it back: age-based minus max-pack is "
        "+5.0 points (p < 0.001) in rounds, -9.0 points (p < 0.001) where UEs hold their updates "
        "and +5.0 points (p < 0.001) where they restart and stale updates count as in FedBuff; "
        "with periods of 1 s +5.0, -20.0 and +1.0. Not run: sigma 1 and a decaying step."
    )
    assert "is age-based (rounds; not shown behind: third), third (hold), age-based (hold" in best
    assert losses.endswith("at most and in points: third 3.0, max-pack 5.0, age-based 10.0.")
    assert "spend 8,223 J, where they spend 1,000 J holding" in costs
    assert "in rounds 52 under max-pack; where they hold 54 under third and 44 under" in costs
    assert "max-pack has 79.0% with 44 UEs unheard in periods of 2 s and 80.0% with 7 " in period
    assert "+2.0 (p < 0.001) in periods of 2 s (5.3 versions old)" in period
    assert "-2.0 (p < 0.001) in periods of 1 s (1.7 versions old)" in period
    assert "Ranking: age-based minus max-pack is -5.0 points" in paces_markdown([study(flip=True)])


def test_what_is_not_shown_is_said_so():
    made = study()
    wide = np.random.default_rng(1).normal(0.0, 0.1, 10)
    for setting in VARIED:
        made.score[FIRST, setting, "age-based"] += wide
    text = paces_markdown([made])
    assert "- Ranking: age-based minus max-pack" in text
    assert "age-based (restart; not shown behind: third and max-pack)" in text


def of_length(round_s):
    """A run whose accuracy rises with time, by half a point in a second from 10% on."""
    times = round_s * np.arange(1, 1 + int(180 / round_s))
    lengths = np.full(times.size, round_s)
    return SimpleNamespace(accuracy=0.1 + 0.005 * times, numbers=lambda _: lengths)


def test_the_score_hardly_changes_with_the_grid_on_which_accuracy_is_known():
    """It was 0 before the first evaluation, every other round: longer rounds lost more."""
    assert score(of_length(0.01), 0.1) == pytest.approx(0.1 + 0.005 * 75.0, abs=1e-4)
    for length in (1.0, 2.0, 3.0):
        late = 0.005 * length / 2  # a model is known at the end of its round alone
        assert score(of_length(length), 0.1) == pytest.approx(0.475 - late, abs=1e-9)
    assert all(measured(preset).run.evaluate_every == 1 for preset in PRESETS)
    with pytest.raises(ValueError, match=r"a run lasts 75 s and must last 150"):
        score(SimpleNamespace(accuracy=np.ones(75), numbers=lambda _: np.ones(75)), 0.1)


def test_the_first_accuracy_is_that_of_the_initial_model():
    """A step of no length leaves the model what it was."""
    scenario = tiny(**{"learn.step_size": 1e-12, "learn.penalty": "none"})
    first = first_accuracy(scenario, 3)
    assert simulate(scenario, "max-pack", 3).accuracy == pytest.approx(first, abs=1e-3)


def test_the_page_has_the_sentences_of_the_study():
    """Of each preset, as the code that writes them would."""
    kept = Path("benchmarks/documents/kept/paces.md").read_text("utf-8")
    page = Path("docs/results.md").read_text("utf-8")
    assert all(line in page for line in kept.splitlines() if line.startswith("- "))
    starts = r"^- (\w+ \w+ \w+)"
    made = re.findall(starts, paces_markdown([study()]), flags=re.MULTILINE)
    assert (
        re.findall(starts, kept, flags=re.MULTILINE)
        == made + (kept.count(" seeds:") - 1) * made[:4]
    )
