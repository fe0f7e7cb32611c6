"""The study of paces: what its sentences say, and that the page has them."""

import re
from pathlib import Path

import numpy as np

from benchmarks.documents.paces import SHORT, VARIANTS, PaceStudy, paces_markdown

FIRST = next(iter(VARIANTS))
#: Accuracies of age-based and max-pack in the first variant, and in short periods.
MEANS = {
    "rounds": ((0.80, 0.75), (0.80, 0.75)),
    "hold": ((0.70, 0.79), (0.60, 0.80)),
    "hold, FedBuff": ((0.78, 0.77), (0.78, 0.77)),
    "restart": ((0.82, 0.80), (0.80, 0.82)),
    "restart, FedBuff": ((0.83, 0.78), (0.81, 0.80)),
}


def study(flip=False):
    noise = np.random.default_rng(0).normal(0.0, 1e-4, (2, 10))
    score = {
        (variant, setting, policy): mean + noise[place]
        for setting, variants in MEANS.items()
        for variant, means in zip((FIRST, SHORT), variants, strict=True)
        for place, (policy, mean) in enumerate(
            zip(
                ("max-pack", "age-based") if flip else ("age-based", "max-pack"), means, strict=True
            )
        )
    }
    known = dict.fromkeys(score, 1000.0)
    joules = known | {(FIRST, "restart", "age-based"): 8223.4}
    stale = dict.fromkeys(score, 5.31) | {(SHORT, "restart", "age-based"): 1.74}
    return PaceStudy("paper", 10, score, joules, stale, dict.fromkeys(score, 52.0))


def test_sentences_follow_from_the_numbers():
    text = paces_markdown([study()])
    ranking, choice, energy, period = re.findall(r"^- (.*)$", text, flags=re.MULTILINE)
    assert ranking == (
        "Holding turns the ranking over, restarting turns it back: age-based minus max-pack is "
        "+5.0 points (p < 0.001) in rounds, -9.0 points (p < 0.001) where UEs hold their updates "
        "and +5.0 points (p < 0.001) where they restart and stale updates count as in FedBuff; "
        "with periods of 1 s +5.0, -20.0 and +1.0."
    )
    assert "age-based (rounds), max-pack (hold), age-based (hold, FedBuff)" in choice
    assert "loses least with max-pack, whose lowest accuracy is 75.0%" in choice
    assert "spend 8,223 J, where they spend 1,000 J holding" in energy
    assert "+2.0 (p < 0.001) in periods of 2 s, where what arrives is 5.3 versions old" in period
    assert "-2.0 (p < 0.001) in periods of 1 s, where what arrives is 1.7 versions old" in period
    assert "Ranking: age-based minus max-pack is -5.0 points" in paces_markdown([study(flip=True)])


def test_the_page_has_the_sentences_of_the_study():
    """Of three presets, as the code that writes them would."""
    kept = Path("benchmarks/documents/kept/paces.md").read_text("utf-8")
    page = Path("docs/results.md").read_text("utf-8")
    assert all(line in page for line in kept.splitlines() if line.startswith("- "))
    starts = r"^- (\w+ \w+ \w+)"
    made = re.findall(starts, paces_markdown([study()]), flags=re.MULTILINE)
    assert re.findall(starts, kept, flags=re.MULTILINE) == made + 2 * made[:3]
