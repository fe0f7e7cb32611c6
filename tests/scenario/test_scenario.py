"""Scenarios: TOML there and back, presets, changes by name, and errors that lead somewhere."""

import functools
import re

import pytest

from agewise.scenario import Scenario, ScenarioError, presets, toml
from tests.scenarios import tiny


@pytest.mark.parametrize("name", presets())
def test_presets_are_complete_and_survive_a_round_trip(name, tmp_path):
    scenario = Scenario.preset(name)
    path = tmp_path / "mine.toml"
    path.write_text(scenario.to_toml())
    assert Scenario.load(path) == scenario
    assert (scenario.cell.ues, scenario.cell.subchannels) == (100, 20)


def test_the_paper_preset_is_the_papers_section():
    paper = Scenario.preset("paper")
    assert paper.channel.placement.radius_m == 100.0
    assert paper.channel.path_loss.exponent == 3.5
    assert (paper.data.dataset.kind, paper.learn.model.loss) == ("mnist", "hinge")
    assert paper.learn.batch_size == 1
    iid = Scenario.preset("paper-iid")
    assert iid == paper.with_(**{"data.partition": "iid"})


def test_every_field_is_explained_in_the_file():
    lines = Scenario.preset("physical").to_toml().splitlines()
    fields = [i for i, line in enumerate(lines) if re.match(r"(# )?\w+ =", line)]
    assert len(fields) > 30
    for i in fields:
        assert lines[i - 1].startswith("# "), lines[i]


def test_every_kind_is_explained_in_the_file_of_another():
    text = " ".join(line.lstrip("# ") for line in tiny().to_toml().splitlines())
    assert "(hinge, squared-hinge, logistic, multinomial, squared-error)" in text
    for kind, field in (
        ("dirichlet", "concentration: the lower, the less alike are the UEs"),
        ("budget", "noise_figure_db: noise figure of the access point in dB"),
        ("k-means", "clusters: the number of centres"),
        ("slots", "deadline_slots: an update that takes longer is lost"),
        ("trace", "path: an .npz with an array gains[round, ue, subchannel]"),
    ):
        assert f'or kind = "{kind}"' in text
        assert field in text


def test_a_file_has_no_field_that_means_nothing():
    """What another kind would need is neither written nor accepted."""
    assert "concentration =" not in Scenario.preset("paper").to_toml()
    with pytest.raises(ScenarioError, match=r"no data.partition.concentration with kind = iid"):
        tiny(**{"data.partition": {"kind": "iid", "concentration": 0.5}})


def test_changes_by_dotted_name():
    changed = tiny(**{"learn.local_steps": 20, "threshold.rate": 1.5})
    assert changed.learn.local_steps == 20
    assert changed.rate_threshold == 1.5
    assert tiny().learn.local_steps == 10
    payload = {"kind": "payload", "payload_bits": 1e5, "deadline_s": 0.1}
    other = tiny(threshold=payload, **{"cell.subchannel_bandwidth_hz": 1e5})
    assert other.rate_threshold == pytest.approx(5.0)
    assert other.with_(**{"threshold.deadline_s": 0.2}).rate_threshold == 2.5
    assert tiny(timing=None) == tiny(timing="none") == tiny()
    assert other.with_(threshold=payload, **{"threshold.payload_bits": 2.0}) != other
    assert payload == {"kind": "payload", "payload_bits": 1e5, "deadline_s": 0.1}


def test_a_change_of_kind_keeps_the_fields_that_both_have_in_any_order():
    changes = {"learn.penalty": "l1", "data.partition": "dirichlet"}
    field = {"data.partition.concentration": 0.5}
    one, other = tiny(**changes, **field), tiny(**field, **changes)
    assert one == other
    assert one.learn.penalty.weight == tiny().learn.penalty.weight
    assert one.data.partition.concentration == 0.5
    again = one.with_(**{"data.partition.classes_per_ue": 3, "data.partition.kind": "shards"})
    assert again.data.partition.classes_per_ue == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold.rat": 1}, "there is no threshold.rat; did you mean threshold.rate?"),
        ({"chanel.fading": "none"}, "did you mean channel"),
        ({"learn.local_steps.more": 1}, "there is no learn.local_steps.more"),
        ({"learn.local_steps": 0}, "learn.local_steps = 0: must be from 1 to 2147483647"),
        ({"learn.model.loss": "hing"}, "learn.model.loss = 'hing': input should be 'hinge'"),
        ({"learn.step_size": "big"}, "learn.step_size = 'big': must be a number"),
        ({"learn.step_size": None}, "learn.step_size is missing"),
        ({"data.partition": "shardz"}, "data.partition.kind = 'shardz': did you mean shards?"),
        ({"data.dataset": "digits.csv"}, 'a file is read by {kind = "table", path = "digits.csv",'),
        ({"channel": "gains.npz"}, 'a file is read by {kind = "trace", path = "gains.npz", ...}'),
        ({"data.dataset": "digits.xyz"}, "there are idx, "),
        ({"data.partition": {}}, "data.partition.kind is missing; there are iid, shards, dirich"),
        ({"data.partition": "dirichlet"}, "data.partition.concentration is missing"),
        ({"data.partition.kind": "dirichlet"}, "data.partition.concentration is missing"),
        ({"learn.model": "k-means"}, "learn.model.clusters is missing"),
        ({"run.age_alpha": 2.0}, "run.age_alpha = 2.0"),
        ({"threshold": {"kind": "payload", "payload_bits": 1e5, "deadline_s": 0.1}},
         "threshold.kind = payload needs cell.subchannel_bandwidth_hz"),
        ({"channel.link": {"kind": "budget", "transmit_power_dbm": 10, "noise_figure_db": 7,
                           "noise_density_dbm_hz": -174}}, 'kind = "log-distance"'),
    ],
)  # fmt: skip
def test_impossible_changes(changes, message):
    with pytest.raises(ScenarioError, match=re.escape(message)):
        tiny(**changes)


def test_files_at_fault_are_named(tmp_path):
    path = tmp_path / "mine.toml"

    def message(text):
        path.write_text(text)
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        return str(caught.value)

    whole = tiny().to_toml()
    assert "mine.toml: not valid TOML" in message("[cell\n")
    assert "(at line 1, column 6)" in message("[cell\n")
    wrong = message(whole.replace("radius_m", "radius").replace("\nues = 12", "\nues = 0"))
    assert wrong.startswith(f"{path}: ")
    assert "cell.ues = 0" in wrong
    assert "no channel.placement.radius with kind = disc; did you mean radius_m?" in wrong
    assert "channel.placement.radius_m is missing" in wrong
    assert "data is missing" in message(whole.split("[data]")[0])
    path.unlink()
    with pytest.raises(ScenarioError, match=r"mine.toml: cannot be read"):
        Scenario.load(path)
    with pytest.raises(ScenarioError, match="there is no preset 'papr'; did you mean paper"):
        Scenario.preset("papr")


@pytest.mark.parametrize(
    ("text", "value"),
    [("20", 20), ("2.5", 2.5), ("true", True), ("iid", "iid"), ("[3, 8]", [3, 8]),
     ('"x y"', "x y"), ("-1e-3", -1e-3)],
)  # fmt: skip
def test_values_as_written(text, value):
    assert toml.value(text) == value


def test_a_key_of_several_lines_is_shown_in_one(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('"a\\nb" = 1\n' + tiny().to_toml())
    with pytest.raises(ScenarioError, match=r"there is no 'a\\nb'; there are") as error:
        Scenario.load(path)
    assert "\n" not in str(error.value)


def test_values_that_are_nested_beyond_all_need():
    deep = functools.reduce(lambda inside, _: {"a": inside}, range(5000), {})
    with pytest.raises(ScenarioError, match="nested too deeply"):
        tiny(**{"data.partition": deep})
