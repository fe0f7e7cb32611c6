"""What a gain is made of: sets that are drawn, replays of them, and what their steps say."""

import json
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise.report import draw_figure, write_page
from agewise.simulation import samples_of
from agewise.studies import explanation
from agewise.studies.explanation import _draw, _drawn_stages, _replay, _Task
from agewise.tables import Explanation
from tests.samples import average
from tests.scenarios import tiny

mpl.use("Agg")
SCENARIO = tiny(**{"run.rounds": 8, "data.partition.classes_per_ue": 1})
PAIR = ("age-based", "max-pack")
QUIET = {"engine": "inline", "quiet": True}


def test_ues_are_drawn_as_often_as_their_weights_say():
    weights = np.array([80, 80, *range(1, 19), 0])
    rng, count = np.random.default_rng(0), 8
    drawn = [_draw(weights, count, rng.random(21)) for _ in range(4000)]
    assert {each.size for each in drawn} == {count}
    assert all((np.diff(each) > 0).all() for each in drawn), "each once, in rising order"
    share = np.bincount(np.concatenate(drawn), minlength=21) / len(drawn)
    assert share[:2].tolist() == [1, 1], "80 of 331 times 8 is above 1"
    assert share[2:] == pytest.approx(6 * weights[2:] / 171, abs=0.03)
    everyone = _draw(weights, 20, rng.random(21))
    assert everyone.tolist() == list(range(20)), "all that have a weight"
    assert _draw(weights, 0, rng.random(21)).size == 0


@pytest.fixture(scope="module")
def runs():
    return [agewise.simulate(SCENARIO, policy, 3) for policy in PAIR]


def task(runs, scenario=SCENARIO):
    received, accuracies = [run.received for run in runs], [run.accuracy for run in runs]
    return _Task(scenario, 3, received, accuracies, ["a", "b"], None)


def test_stages_change_one_thing_each():
    """The baseline hears UE 0 always and 1 to 8 in turn, the rival the last nine of twelve."""
    rounds = np.arange(800)
    packed = [np.array([0, 1 + t % 8]) for t in rounds]
    aged = [np.sort(3 + (3 * t + np.arange(3)) % 9) for t in rounds]
    stages = _drawn_stages(agewise.Streams(3), aged, packed, 12)
    sizes = [{ues.size for ues in sets} for sets in stages]
    assert sizes == [{2}, {2}, {2}, {3}, {3}]
    counts = [np.bincount(np.concatenate(sets), minlength=12) / 800 for sets in stages]
    assert counts[0] == pytest.approx(np.array([1, *8 * [1 / 8], 0, 0, 0]), abs=0.05)
    assert counts[1] == pytest.approx(np.array([*9 * [2 / 9], 0, 0, 0]), abs=0.05)
    assert counts[2] == pytest.approx(np.full(12, 2 / 12), abs=0.05)
    assert counts[3] == pytest.approx(np.full(12, 3 / 12), abs=0.05)
    assert counts[4] == pytest.approx(np.array([0, 0, 0, *9 * [3 / 9]]), abs=0.05)
    evenly = zip(stages[2], stages[3], strict=True)
    assert all(set(x) <= set(y) for x, y in evenly), "the same draws"
    again = _drawn_stages(agewise.Streams(3), aged, packed, 12)
    assert all(map(np.array_equal, stages[0] + stages[4], again[0] + again[4]))
    other = _drawn_stages(agewise.Streams(4), aged, packed, 12)
    assert not all(map(np.array_equal, stages[2], other[2]))


def test_a_replay_is_the_same_learning_of_other_ues(runs):
    """Worked out beside it, round by round; both ends are the runs themselves."""
    scores = _replay(task(runs))
    assert scores[0] == pytest.approx(runs[1].accuracy.mean(), abs=1e-12)
    assert scores[-1] == pytest.approx(runs[0].accuracy.mean(), abs=1e-12)
    streams = agewise.Streams(3)
    learner = samples_of(SCENARIO, streams).learner
    covered = _drawn_stages(streams, *(run.received for run in runs), 12)[2]
    params, reached = learner.init(streams), []
    for t, ues in enumerate(covered):
        models = learner.train(params, ues, t, streams)
        params, _ = average(models, learner.sizes[ues], params)
        reached.append(learner.evaluate(params).accuracy)
    assert scores[3] == pytest.approx(np.mean(reached), abs=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"learn.compression": {"kind": "sign", "error_feedback": True}},
        {"learn.compression": {"kind": "qsgd", "bits": 3}, "learn.local": "control-variates"},
        {"learn.aggregation": {"kind": "memory", "discount": "agreement"}},
        {"learn.model": {"kind": "mlp", "hidden_widths": [4]}, "run.evaluate_every": 3},
        {"learn.model": {"kind": "k-means", "clusters": 4, "initial_deviation": 0.1}},
    ],
)
def test_all_that_a_round_of_learning_does_is_replayed(changes):
    scenario = SCENARIO.with_(**changes)
    runs = [agewise.simulate(scenario, policy, 3) for policy in PAIR]
    scores = _replay(task(runs, scenario))
    assert scores[0] == pytest.approx(np.nanmean(runs[1].accuracy), abs=1e-12)
    assert len(set(scores)) > 2


def test_runs_that_do_not_come_out_again_are_refused(runs):
    weighing = agewise.simulate(SCENARIO, "importance-channel", 3)
    with pytest.raises(ValueError, match="seed 3: .* a policy weighs updates"):
        _replay(task([weighing, runs[1]]))
    unmeasured = task(runs)
    unmeasured.accuracies[0][:] = np.nan
    with pytest.raises(ValueError, match="no accuracy was measured"):
        _replay(unmeasured)


def made_up(steps, seeds=8):
    """Scores that rise by these steps, with some noise; the noise is added to the total too."""
    rng = np.random.default_rng(5)
    noise = 0.001 * rng.normal(size=(seeds, 7))
    return Explanation("a", "b", range(seeds), 0.8 + np.cumsum([0, *steps]) + noise)


def test_steps_add_up_to_the_total_and_what_is_shown_is_told():
    made = made_up([0, 0.01, 0.02, -0.01, 0, 0.005])
    assert sum(step.mean for step in made.steps) == pytest.approx(made.total.mean)
    assert made.total.mean == pytest.approx(0.025, abs=0.002)
    assert made.sentences[0].startswith("a learns better than b: +2.")
    assert "in points of mean accuracy over 8 seeds." in made.sentences[0]
    gains, losses, none = made.sentences[1].split("; ")
    assert gains.startswith("Gains are shown of evenness among those heard (+")
    assert ", coverage (+" in gains
    assert losses.startswith("losses are shown of number of uploads (-")
    assert none.startswith("no effect is shown of order in time (")
    assert "unevenness of a (" in none
    assert made_up(6 * [-0.01]).sentences[0].startswith("a learns worse than b: -6.")
    assert made_up(6 * [0]).sentences[0].startswith("No difference between a and b is shown: ")


def test_few_seeds_test_nothing():
    made = made_up(6 * [0.01], seeds=3)
    assert made.sentences[0].startswith("Too few seeds for a verdict: 3; a minus b: +6.")
    assert made.sentences[1].startswith("The steps are order in time (+1.")
    assert "p =" not in made.table().to_text()


def test_the_table_has_a_row_for_each_stage_and_the_total():
    made = made_up([0, 0.01, 0.02, -0.01, 0, 0.005])
    lines = made.table().to_markdown().splitlines()[2:]
    assert len(lines) == 8
    assert lines[0].startswith("| – | b | 79.9 ±")
    assert lines[3].startswith("| coverage | drawn evenly from all UEs | 83.0 ±")
    assert lines[-1].startswith("| all of it | a minus b | – | +2.")
    assert "all 6 (steps) together by Bonferroni" in made.table().note
    told = made.to_json()
    means = [step["accuracy"] for step in told["steps"]]
    assert [y - x for x, y in pairwise(means)] == pytest.approx(
        [step["mean"] for step in told["steps"][1:]]
    )


@pytest.fixture
def result(tmp_path):
    return agewise.compare(SCENARIO, [*PAIR, "random"], 5, tmp_path / "r", **QUIET)


def test_reproduce_explains_and_goes_on(tmp_path, monkeypatch):
    made = agewise.reproduce(SCENARIO, 5, tmp_path, explain=True, **QUIET)
    found = made.explanation
    gain = made.result.accuracy("age-based:ties=random") - made.result.accuracy(
        "max-pack:ties=random"
    )
    assert found.total.mean == pytest.approx(gain.mean())
    assert {file.name for file in made.figures} >= {"explanation.png", "explanation.pdf"}
    assert made.claims[3].verdict != "cannot be judged"
    page = write_page(made.result).read_text(encoding="utf-8")
    assert "What the gain is made of" in page
    assert "drawn evenly from all UEs" in page
    damaged = next((tmp_path / "explanation").glob("seed-0002*"))
    damaged.write_bytes(damaged.read_bytes().replace(b'"seed": 2', b'"seed": 3'))
    again = []

    def replayed(task):
        again.append(task.seed)
        return _replay(task)

    monkeypatch.setattr(explanation, "_replay", replayed)
    repeated = agewise.reproduce(SCENARIO, 6, tmp_path, explain=True, **QUIET).explanation
    assert again == [2, 5], "the damaged one and the new one"
    assert np.array_equal(repeated.scores[:5], found.scores)


def test_any_pair_is_explained_and_kept(result, monkeypatch):
    first = agewise.explain(result, **QUIET)
    assert (first.rival, first.baseline) == PAIR
    other = agewise.explain(result.path, "random", "age-based", **QUIET)
    assert (other.rival, other.baseline) == ("random", "age-based")
    assert len(list((result.path / "explanation").iterdir())) == 10
    monkeypatch.setattr(explanation, "_replay", None)
    assert np.array_equal(agewise.explain(result, **QUIET).scores, first.scores)


def test_what_cannot_be_explained_is_one_sentence(tmp_path):
    def refused(said, scenario=SCENARIO, policies=PAIR, **given):
        made = agewise.compare(scenario, policies, 1, tmp_path / said, **QUIET)
        with pytest.raises(ValueError, match=said):
            agewise.explain(made, **given, **QUIET)

    refused("of two policies, not of random alone", policies=["random"])
    refused("not of max-pack alone", policy="max-pack")
    periodic = agewise.Scenario.preset("periodic").with_(**{"run.rounds": 2})
    refused('explain runs with pace = "rounds"', periodic)
    swept = agewise.sweep(SCENARIO, PAIR, {"run.rounds": [2, 3]}, 1, tmp_path / "s", **QUIET)
    with pytest.raises(ValueError, match="is a sweep: run the setting to explain"):
        agewise.explain(swept, **QUIET)


def test_a_changed_file_is_not_shown(result, tmp_path):
    said = "What the gain is made of"
    assert said not in write_page(result).read_text(encoding="utf-8")
    agewise.explain(result, **QUIET)
    assert said in write_page(result).read_text(encoding="utf-8")
    numbers = draw_figure(result, "waterfall", tmp_path / "x.csv").path.read_text()
    assert numbers.count("line,mean accuracy") == 8
    file = result.path / "explanation.json"
    assert json.loads(file.read_bytes())["seeds"] == [0, 1, 2, 3, 4]
    file.write_bytes(file.read_bytes().replace(b"max-pack", b"max-luck"))
    assert said not in write_page(result).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="waterfall needs what agewise explain measures"):
        draw_figure(result, "waterfall", tmp_path / "x.pdf")
