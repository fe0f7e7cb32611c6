"""What is advised follows from the scenario's channel and data and from what was measured."""

import json
from dataclasses import replace

import numpy as np
import pytest

import agewise
from agewise.studies.advice import STEPS, Choice, Evidence, Features, Measured, features_of
from benchmarks import evidence as making
from tests.scenarios import tiny
from tests.test_cli import agewise_command


def setting(name, features, *choices):
    return Measured(name, "synthetic (all), linear", 8, features, choices)


def choice(policy, score, behind=0.0, p=None):
    return Choice(
        policy, "average", 6, score, score - 0.01, score + 0.01, behind, behind - 0.01,
        behind + 0.01, p,
    )  # fmt: skip


BEST, TIED, WORSE = choice("x", 0.8), choice("y", 0.79, 0.01, 0.4), choice("z", 0.7, 0.1, 0.001)


def test_features_of_a_channel_by_hand(tmp_path):
    """Two UEs over two blocks: one needs a subchannel, the other two, then it is out of reach."""
    gains = np.array([[[15.0, 15.0], [6.0, 6.0]], [[15.0, 15.0], [0.1, 0.1]]])
    np.savez(tmp_path / "gains.npz", gains=gains)
    trace = {"kind": "trace", "path": str(tmp_path / "gains.npz"), "power_budget": 1.0}
    found = features_of(
        tiny(
            **{
                "cell.ues": 2, "cell.subchannels": 2, "channel": trace, "run.rounds": 2,
                "threshold.rate": 2.0, "data.partition": "iid",
            }
        )
    )  # fmt: skip
    assert found.needs == (0.5, 0.25)
    assert (found.unserved, found.never, found.in_time) == (0.25, 0.0, 1.0)
    assert found.mean_need == pytest.approx(4 / 3)
    assert found.unlike < 0.05


def test_features_of_data_and_deadlines():
    one = features_of(tiny(**{"data.partition.classes_per_ue": 1}))
    assert one.unlike == pytest.approx(0.9, abs=0.02), "one of ten classes"
    assert features_of(tiny(**{"data.partition": "iid"})).unlike < 0.15
    uneven = features_of(
        tiny(**{"data.partition": "iid", "data.sizes": {"kind": "log-normal", "sigma": 1.0}})
    )
    assert uneven.uneven > 0.5 > one.uneven
    slots = {"kind": "slots", "compute_slots": 1.0, "compute_sigma": 0.5, "deadline_slots": 2.0}
    late = features_of(tiny(timing=slots))
    assert 0 < late.in_time < 1
    assert late.never >= 1 - late.in_time
    assert sum(late.needs) + late.unserved == pytest.approx(1.0), "among those in time"


def test_the_nearest_setting_decides():
    here = features_of(tiny())
    close = setting("close", replace(here, unlike=here.unlike - 0.02), BEST, TIED, WORSE)
    other = setting("other", replace(here, unlike=here.unlike - 0.1), WORSE, BEST)
    far = setting("far", replace(here, unlike=0.0), TIED, BEST)
    said = agewise.advise(tiny(), evidence=Evidence("1", (far, other, close)))
    assert [(round(d, 2), s.name) for d, s in said.nearest] == [(0.1, "close"), (0.5, "other")]
    assert said.favoured == BEST
    assert (
        "x with average has the highest mean accuracy over the rounds, 80.0 ± 1.0%"
        in (said.sentences[0])
    )
    assert (
        "not surely behind it: y with average (-1.0 points, -2.0 to +0.0, p = 0.400); surely "
        in (said.sentences[0])
    )
    assert "6 seeds" in said.sentences[0]


def test_nothing_near_asks_to_measure():
    here = features_of(tiny())
    far = setting("far", replace(here, ues=here.ues * 64), BEST, WORSE)
    said = agewise.advise(tiny(), evidence=Evidence("1", (far,)))
    assert said.favoured is None
    assert (
        "far, differs most in doublings of the UEs per subchannel (6.0 steps)"
        in (said.sentences[0])
    )
    assert "agewise compare" in said.sentences[1]


def test_something_else_to_learn_is_said():
    here = features_of(tiny())
    other = replace(setting("same", here, BEST, WORSE), learned="mnist (all), linear")
    said = agewise.advise(tiny(), evidence=Evidence("1", (other,)))
    assert any("What is learned differs: synthetic" in sentence for sentence in said.sentences)


def test_nobody_within_reach_has_a_place_too():
    none = Features(4, 2, (0.0, 0.0), 1.0, 1.0, 1.0, 0.5, 0.0)
    assert np.isfinite(none.steps()).all()
    assert none.steps().size == len(STEPS)


def test_evidence_is_made_of_results(tmp_path):
    """Settings that differ in the aggregation alone are one; differences are paired over seeds."""
    memory = {"kind": "memory", "discount": {"kind": "none"}}
    result = agewise.sweep(
        tiny(**{"run.rounds": 4}), ["age-based", "max-pack"],
        {"learn.aggregation": ["average", memory], "threshold.rate": [2.0, 4.0]}, 3,
        tmp_path / "sweep", engine="inline", quiet=True,
    )  # fmt: skip
    found = Evidence.from_bytes(making.evidence_of(making.results_folders(tmp_path)))
    assert [one.name for one in found.settings] == ["sweep (rate 2)", "sweep (rate 4)"]
    for one, rate in zip(found.settings, (2.0, 4.0), strict=True):
        scores = {}
        for policy in ("age-based", "max-pack"):
            for name, value in (("average", "average"), ("memory(discount=none)", memory)):
                varied = {"learn.aggregation": value, "threshold.rate": rate}
                scores[policy, name] = result.accuracy(policy, varied).mean(axis=1)
        best = max(scores, key=lambda key: scores[key].mean())
        assert (one.choices[0].policy, one.choices[0].aggregation) == best
        assert len(one.choices) == 4
        for each in one.choices:
            mine = scores[each.policy, each.aggregation]
            assert each.score == pytest.approx(mine.mean(), rel=1e-5)
            assert each.behind == pytest.approx((scores[best] - mine).mean(), abs=1e-6)
            assert (each.p is None) == (each is one.choices[0])
    text = making.guide(found)
    assert text.count("| sweep (rate") == 2


def test_evidence_needs_something_to_compare(tmp_path):
    with pytest.raises(ValueError, match="no folder has whole runs of two choices"):
        making.evidence_of([])
    alone = tmp_path / "alone"
    agewise.run(tiny(**{"run.rounds": 2}), "random", 1, alone, engine="inline", quiet=True)
    with pytest.raises(ValueError, match="no folder has whole runs of two choices"):
        making.evidence_of([alone])


def test_changed_evidence_is_refused():
    content = making.EVIDENCE.read_bytes()
    with pytest.raises(ValueError, match="evidence.json of the package was changed"):
        Evidence.from_bytes(content.replace(b'"score"', b'"scorn"', 1))


def test_the_guide_is_that_of_the_package():
    known = Evidence.read()
    assert making.GUIDE.read_text(encoding="utf-8") == making.guide(known)
    assert all(len(one.choices) > 1 and one.choices[0].p is None for one in known.settings)


def test_the_command_says_what_python_says(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny().to_toml())
    said = agewise_command("advise", "tiny.toml", "--json", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    made = agewise.advise(tiny())
    assert json.loads(said.stdout) == json.loads(json.dumps(made.to_dict()))
    shown = agewise_command("advise", "tiny.toml", cwd=tmp_path).stdout
    for sentence in made.sentences:
        assert sentence in shown
    assert f"{100 * made.features.needs[0]:.1f}" in shown
