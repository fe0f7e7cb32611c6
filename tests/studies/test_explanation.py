"""What explains the gain: measures by hand, runs followed again, what their differences say."""

import json

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise.experiment import RunOptions
from agewise.report import draw_figure, write_page
from agewise.simulation import samples_of
from agewise.studies import explanation
from agewise.studies.explanation import (
    _MEASURES,
    _POLICIES,
    _compare_labels,
    _compare_updates,
    _follow,
    _SeedBlocks,
    _squared_mean,
    _summarise,
    _Task,
)
from tests.samples import average
from tests.scenarios import tiny

mpl.use("Agg")
SCENARIO = tiny(**{"run.rounds": 8, "data.partition.classes_per_ue": 1})


def test_labels_by_hand():
    counts = np.array([[4, 0, 0], [0, 4, 0], [0, 0, 8]])
    covered, distance = _compare_labels([np.array([0, 1]), np.array([2])], counts)
    assert covered == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert distance == pytest.approx((0.5 + 0.5) / 2)
    assert _compare_labels([np.array([], np.int64)], counts) == (0.0, 1.0)
    assert _compare_labels([np.arange(3)], counts) == (1.0, 0.0)


def test_updates_by_hand():
    """Without noise the bias is a distance, and orthogonal updates have a diversity of 1."""
    start = np.array([1.0, 1.0], np.float32)
    draw = start + np.array([[2.0, 0.0], [0.0, 2.0]], np.float32)
    sizes = np.array([3, 1])
    sets = [np.array([0]), np.array([1]), np.array([0, 1])]
    found = [_compare_updates([draw, draw], start, [one], sizes) for one in sets]
    length = np.hypot(1.5, 0.5)
    assert found[0] == pytest.approx((1, np.hypot(0.5, 0.5) / length, found[0][1], 0), abs=1e-6)
    assert found[1] == pytest.approx((1, np.hypot(1.5, 1.5) / length, found[1][1], 0), abs=1e-6)
    assert found[2] == pytest.approx((1, 0, 0, 0), abs=1e-6)
    both = _compare_updates([draw, draw], start, sets[:2], sizes)
    assert both[1] == pytest.approx((found[0][1] + found[1][1]) / 2)
    assert both[2] == pytest.approx(np.hypot(0.5, 0.5) / length, abs=1e-6), "1, 1 less 1.5, 0.5"


def test_the_number_of_draws_adds_nothing_to_a_squared_length():
    rng = np.random.default_rng(0)
    found = [_squared_mean(np.array([3.0, 4.0]) + rng.normal(size=(3, 2))) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(25.0, abs=0.3)


def test_variance_is_that_of_the_average_over_draws():
    rng = np.random.default_rng(1)
    start, sizes = np.zeros(400, np.float32), np.ones(4, np.int64)
    draws = [(1 + rng.normal(size=(4, 400))).astype(np.float32) for _ in range(60)]
    _, bias, _, variance = _compare_updates(draws, start, [np.array([0, 1])], sizes)
    assert variance == pytest.approx(0.5, rel=0.1), "400 / 2 over 400"
    assert bias < 0.15


@pytest.fixture(scope="module")
def runs():
    return [agewise.simulate(SCENARIO, policy, 3) for policy in _POLICIES]


def test_runs_are_followed_on_their_own_models(runs):
    """Worked out beside it: the model of round 4 of max-pack, then age-based's sets from there."""
    blocks = _follow(_Task.of(SCENARIO, 3, runs, 4))
    assert blocks.starts.tolist() == [0, 4]
    streams = agewise.Streams(3)
    learner = samples_of(SCENARIO, streams).learner
    params, reached = learner.init(streams), []
    for t in range(8):
        ues = runs[1 if t < 4 else 0].received[t]
        models = learner.train(params, ues, t, streams)
        params, _ = average(models, learner.sizes[ues], params)
        reached.append(learner.evaluate(params).accuracy)
    expected = np.mean(reached[4:]) - runs[1].accuracy[4:].mean()
    assert blocks.gains[1, 1] == pytest.approx(expected, abs=1e-12)
    both = [one.accuracy[:4].mean() for one in runs]
    assert blocks.gains[:, 0] == pytest.approx([both[0] - both[1]] * 2), "the same first model"
    assert np.array_equal(blocks.values[0, 0], blocks.values[1, 0]), "the same first model"
    heard = blocks.values[..., list(_MEASURES).index("heard")]
    ever = [np.unique(np.concatenate(runs[0].received[: t + 1])) for t in range(4, 8)]
    share = np.mean([learner.sizes[ues].sum() for ues in ever]) / learner.sizes.sum()
    assert heard[:, 1, 0] == pytest.approx(share)


@pytest.mark.parametrize(
    "changes",
    [
        {"learn.compression": {"kind": "sign", "error_feedback": True}},
        {"learn.compression": {"kind": "qsgd", "bits": 3}, "learn.local": "control-variates"},
        {"learn.aggregation": {"kind": "memory", "discount": "agreement"}},
    ],
)
def test_a_replay_does_all_that_a_round_of_learning_does(changes):
    scenario = SCENARIO.with_(**changes)
    runs = [agewise.simulate(scenario, policy, 3) for policy in _POLICIES]
    assert _follow(_Task.of(scenario, 3, runs, 4)).starts.tolist() == [0, 4]


def test_a_run_that_cannot_be_followed_is_refused(runs):
    task = _Task.of(SCENARIO, 3, runs, 4)
    task.accuracies[0][-1] += 0.01
    with pytest.raises(ValueError, match="seed 3 reached .* when it was followed again"):
        _follow(task)


def made_up(differences, seeds=8, blocks=10):
    """Blocks of seeds in which age-based is ahead by these differences, with some noise."""
    rng = np.random.default_rng(5)
    ahead = np.array([differences.get(name, 0.0) for name in _MEASURES])
    found = []
    for _ in range(seeds):
        apart = ahead + 0.1 * rng.normal(size=(2, blocks, len(_MEASURES)))
        values = np.stack((1 + apart, np.ones_like(apart)), axis=2)
        gains = 0.02 + 0.001 * rng.normal(size=(2, blocks))
        found.append(_SeedBlocks(np.arange(blocks) * 5, gains, values))
    return found


def test_what_the_policies_are_shown_to_differ_in_is_told():
    made = _summarise(made_up({"diversity": -0.5, "heard": 0.5}))
    rows = {row["measure"]: row for row in made.table.to_dicts()}
    assert rows["heard"]["difference"] == pytest.approx(0.5, abs=0.05)
    assert rows["heard"]["difference_p"] < 0.001 < rows["bias"]["difference_p"]
    assert made.sentences[0].startswith("Gradient diversity does not explain the gain")
    assert "shown to differ in data ever heard (1.49" in made.sentences[1]
    assert "(+2.0 points per block, " in made.sentences[1]
    assert "8 seeds with 20 blocks of 5 rounds each; p-values corrected" in made.sentences[1]
    more = _summarise(made_up({"diversity": 0.5}))
    assert more.sentences[0].startswith("Gradient diversity may explain the gain")
    assert "differ in no other measure" in more.sentences[1]
    assert "is not shown" in _summarise(made_up({})).sentences[0]


def test_few_seeds_test_nothing():
    made = _summarise(made_up({"heard": 0.5}, seeds=4))
    assert made.sentences[1] == "4 seeds are too few to say in what the policies differ."
    assert made.table["difference_p"].is_nan().all()


def test_reproduce_explains_and_goes_on(tmp_path, monkeypatch):
    options = {"explain": True, "engine": "inline", "quiet": True}
    made = agewise.reproduce(SCENARIO, 5, tmp_path, **options)
    found = made.explanation
    assert (found.seeds, found.blocks) == (5, 10)
    assert [file.name for file in found.figures] == ["explanation.png", "explanation.pdf"]
    kept = json.loads((tmp_path / "explanation.json").read_bytes())
    assert kept["sentences"] == found.sentences
    page = agewise.write_page(made.result).read_text(encoding="utf-8")
    assert "What differs on the same models" in page
    assert "data:image/png;base64," in page
    damaged = tmp_path / "explanation" / "seed-0002.json"
    damaged.write_bytes(damaged.read_bytes().replace(b'"seed": 2', b'"seed": 3'))
    again = []

    def followed(task):
        again.append(task.seed)
        return _follow(task)

    monkeypatch.setattr(explanation, "_follow", followed)
    repeated = agewise.reproduce(SCENARIO, 6, tmp_path, **options).explanation
    assert again == [2, 5], "the damaged one and the new one"
    assert repeated.seeds == 6


def test_a_changed_file_is_not_shown(tmp_path):
    result = agewise.compare(
        SCENARIO, _POLICIES, 1, tmp_path / "r", engine="inline", quiet=True, baseline="max-pack"
    )
    said = "What differs on the same models"
    assert said not in write_page(result).read_text(encoding="utf-8")
    explanation.explain(result, RunOptions(engine="inline", quiet=True))
    assert said in write_page(result).read_text(encoding="utf-8")
    file = result.path / "explanation.json"
    file.write_bytes(file.read_bytes().replace(b"too few", b"enough!"))
    assert said not in write_page(result).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="explained needs a reproduction with --explain"):
        draw_figure(result, "explained", tmp_path / "x.pdf")
