"""Scenarios: TOML there and back, presets, changes by name, and errors that lead somewhere."""

import re

import pytest

from agewise.scenario import Scenario, ScenarioError, presets, summary, toml
from tests.scenarios import tiny


@pytest.mark.parametrize("name", presets())
def test_presets_are_complete_and_survive_a_round_trip(name, tmp_path):
    scenario = Scenario.preset(name)
    path = tmp_path / "mine.toml"
    path.write_text(scenario.to_toml())
    assert Scenario.load(path) == scenario
    assert summary(name).endswith(".")
    assert (scenario.cell.ues, scenario.cell.subchannels) == (100, 20)


def test_the_paper_preset_is_the_papers_section():
    paper = Scenario.preset("paper")
    assert paper.cell.radius_m == 100.0
    assert paper.channel.path_loss_exponent == 3.5
    assert (paper.data.dataset, paper.learn.loss, paper.learn.batch_size) == ("mnist", "hinge", 1)
    iid = Scenario.preset("paper-iid")
    assert iid == paper.with_(**{"data.partition": "iid"})


def test_every_field_is_explained_in_the_file():
    lines = Scenario.preset("physical").to_toml().splitlines()
    fields = [i for i, line in enumerate(lines) if re.match(r"(# )?\w+ =", line)]
    assert len(fields) > 30
    for i in fields:
        assert lines[i - 1].startswith("# "), lines[i]
    text = " ".join(line.lstrip("# ") for line in lines)
    assert "(hinge, squared-hinge, logistic, multinomial, squared-error, k-means)" in text


def test_changes_by_dotted_name():
    changed = tiny().with_(**{"learn.local_steps": 20, "channel.rate_threshold": 1.5})
    assert changed.learn.local_steps == 20
    assert changed.channel.rate_threshold == 1.5
    assert tiny().learn.local_steps == 10
    upload = {"payload_bits": 1e5, "deadline_s": 0.1}
    other = tiny().with_(
        **{"channel.rate_threshold": None, "channel.upload": upload,
           "channel.subchannel_bandwidth_hz": 1e5}
    )  # fmt: skip
    assert other.channel.threshold_bits == pytest.approx(5.0)
    assert other.with_(**{"channel.upload.deadline_s": 0.2}).channel.threshold_bits == 2.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channel.rate_treshold": 1}, "there is no channel.rate_treshold; did you mean rate_thre"),
        ({"chanel.rate_threshold": 1}, "did you mean channel"),
        ({"learn.local_steps.more": 1}, "there is no learn.local_steps.more"),
        ({"learn.local_steps": 0}, "learn.local_steps = 0: input should be greater than or equal"),
        ({"learn.loss": "hing"}, "learn.loss = 'hing': input should be 'hinge'"),
        ({"learn.step_size": "big"}, "learn.step_size = 'big'"),
        ({"learn.step_size": None}, "learn.step_size is missing"),
        ({"channel.edge_snr_db": None}, "channel: give exactly one of edge_snr_db and link_budget"),
        ({"data.partition": "dirichlet", "data.concentration": None}, "dirichlet needs concentra"),
        ({"learn.loss": "k-means", "learn.clusters": None}, "k-means needs clusters"),
        ({"run.age_alpha": 2.0}, "run.age_alpha = 2.0"),
    ],
)
def test_impossible_changes(changes, message):
    with pytest.raises(ScenarioError, match=re.escape(message)):
        tiny().with_(**changes)


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
    wrong = message(whole.replace("radius_m", "radius").replace("ues = 12", "ues = 0"))
    assert wrong.startswith(f"{path}: ")
    assert "cell.ues = 0" in wrong
    assert "there is no cell.radius; did you mean radius_m?" in wrong
    assert "cell.radius_m is missing" in wrong
    assert "data is missing" in message(whole.split("# What is learned")[0])
    path.unlink()
    with pytest.raises(ScenarioError, match=r"mine.toml: cannot be read"):
        Scenario.load(path)
    with pytest.raises(ScenarioError, match="there is no preset 'papr'; did you mean paper"):
        Scenario.preset("papr")


@pytest.mark.parametrize(
    ("text", "value"),
    [("20", 20), ("2.5", 2.5), ("true", True), ("iid", "iid"), ("none", None), ("[3, 8]", [3, 8]),
     ('"x y"', "x y"), ("-1e-3", -1e-3)],
)  # fmt: skip
def test_values_as_written(text, value):
    assert toml.value(text) == value
