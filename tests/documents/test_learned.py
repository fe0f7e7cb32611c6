"""The learned policy: its training makes it, and its page says what is measured."""

import re

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from agewise import statistics
from agewise.gym import SchedulingEnv
from agewise.policies import Learned
from agewise.tables._words import estimate_text
from benchmarks.documents.learned import (
    CELLS,
    PAGE,
    POLICIES,
    draw_curve,
    learned_markdown,
    older_in_benchmark,
    shares_above,
)
from examples.learned import train as training
from tests.scenarios import tiny


def test_the_page_says_what_is_measured():
    name, cell = next(iter(CELLS.items()))
    (row,) = re.findall(rf"^\|{name}\|.*$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    said = dict(zip(POLICIES, row.split("|")[2:], strict=False))
    for policy, share in shares_above(cell, ("learned", "whittle")).items():
        assert said[policy] == estimate_text(statistics.estimate(share)).replace(" ", "")


def test_the_page_says_where_the_benchmark_has_it_behind(tmp_path):
    assert older_in_benchmark() in PAGE.read_text("utf-8")
    file = tmp_path / "benchmark.csv"
    file.write_text(
        "scenario,policy,age\na,learned,3\na,whittle,2\nb,learned,1\nb,whittle,2\nb,random,9\n"
    )
    said = older_in_benchmark(file)
    assert "in 1 of 2 scenarios (3.00 against 2.00 in `a`)" in said


def test_the_table_says_where_learning_was_worth_it():
    rng = np.random.default_rng(0)
    cells = {
        name: {policy: 0.1 + 0.001 * rng.random(10) for policy in POLICIES}
        for name in ("better", "worse", "alike")
    }
    cells["better"]["whittle"] += 0.1
    cells["worse"]["learned"] += 0.1
    said = learned_markdown(cells).splitlines()[-1]
    assert "below that of Whittle's index in 1 of these 3 cells (better)" in said
    assert said.endswith("above it in 1 (worse).")


def test_training_lowers_ages_and_is_drawn(tmp_path):
    scorers = dict(training.train(steps=10, rounds=50))
    assert list(scorers) == [0, 10]
    env = SchedulingEnv(tiny(**{"cell.ues": 40, "cell.subchannels": 8, "run.rounds": 200}))
    before, after = (training.mean_age(env, scorer, 1) for scorer in scorers.values())
    assert after < before
    curve = draw_curve(scorers, tmp_path / "curve.svg", seeds=range(1), slots=100)
    assert curve[1] < curve[0]
    assert (tmp_path / "curve.svg").stat().st_size > 1000


@pytest.mark.slow
def test_training_makes_the_weights_of_the_package():
    *_, (_, last) = training.train()
    for one, other in zip(last, Learned().scorer, strict=True):
        np.testing.assert_array_equal(one, other)
