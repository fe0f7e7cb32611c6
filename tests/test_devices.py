"""Devices that differ: classes, files with a row each, and who is there when."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewise import Scenario, Streams, compare, simulate
from agewise.devices import Availability
from agewise.files import fingerprint
from agewise.provenance import source_names
from agewise.report.page import make_page
from agewise.scenario import ScenarioError
from agewise.simulation import rounds, samples_of
from agewise.spectrum import fill
from agewise.tables import device_table
from tests.scenarios import tiny
from tests.test_cli import agewise_command
from tests.test_cost import SECONDS

MARKOV = {"kind": "markov", "mean_on_rounds": 6.0, "mean_off_rounds": 3.0}


def in_classes(classes, **changes):
    return tiny(devices={"kind": "classes", "classes": classes}, **changes)


# ---------------------------------------------------------------------------------------- classes
def test_members_of_classes_by_hand():
    """Of 7 UEs 3.5, 2.1 and 1.4: the one that is left goes to the largest remainder."""
    shares = {"phones": 0.5, "tablets": 0.3, "sensors": 0.2}
    scenario = in_classes({k: {"share": x} for k, x in shares.items()}, **{"cell.ues": 7})
    tables = [scenario.device_table(Streams(seed)) for seed in range(20)]
    assert tables[0].class_names == ("phones", "tablets", "sensors")
    assert {tuple(np.bincount(table.class_of)) for table in tables} == {(4, 2, 1)}
    assert len({tuple(table.class_of) for table in tables}) > 10  # who is what follows the seed
    again = scenario.device_table(Streams(3)).class_of
    assert tables[3].class_of.tolist() == again.tolist()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 300))
def test_members_of_classes_are_within_one_of_their_share(parts, ues):
    shares = np.array(parts) / sum(parts)
    classes = {f"c{i}": {"share": share} for i, share in enumerate(shares.tolist())}
    table = in_classes(classes, **{"cell.ues": ues}).device_table(Streams(0))
    counts = np.bincount(table.class_of, minlength=len(parts))
    assert counts.sum() == ues
    assert (np.abs(counts - ues * shares) < 1).all()


def test_classes_that_do_not_differ_are_alike():
    """To the last bit, whatever is drawn: computing, sizes, batteries, availability."""
    same = {
        "computing": {"kind": "log-normal", "median_s": 0.3, "sigma": 1.0, "power_w": 2.0},
        "samples_sigma": 0.7, "battery_j": 2.0, "battery_sigma": 0.5, "availability": MARKOV,
    }  # fmt: skip
    alike = tiny(timing=SECONDS["timing"], devices={"kind": "alike"} | same)
    classes = {name: {"share": 0.5} | same for name in ("one", "other")}
    twice = alike.with_(devices={"kind": "classes", "classes": classes})
    assert simulate(alike, "age-based", 1).frame.equals(simulate(twice, "age-based", 1).frame)


def test_classes_differ_in_data_time_and_battery():
    fast = {"kind": "log-normal", "median_s": 0.1, "sigma": 0.0, "power_w": 1.0}
    classes = {
        "large": {"share": 0.25, "samples": 3.0, "computing": fast},
        "small": {"share": 0.75, "computing": fast | {"median_s": 0.4}, "battery_j": 5.0},
    }
    scenario = in_classes(classes, **{"timing": SECONDS["timing"], "data.partition": "iid"})
    table = scenario.device_table(Streams(1))
    large = table.class_of == 0
    sizes = samples_of(scenario, Streams(1)).learner.sizes
    assert sizes[large] / 3 == pytest.approx(sizes[~large][:3], abs=1)
    assert set(table.compute_time[large]) == {0.1}
    assert set(table.compute_time[~large]) == {0.4}
    assert table.battery_j[large].tolist() == [np.inf] * 3
    assert table.battery_j[~large].tolist() == [5.0] * 9
    for record in rounds(scenario, "round-robin", 1):
        energy_j = record.cost.energy_j[large[record.delivery.scheduled]]
        assert (energy_j < 0.1 + 0.1 * 0.5 * (1 + 1e-9)).all()  # computing and a slot of radio


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ({"a": {"share": 0.6}, "b": {"share": 0.3}}, "add up to 0.9, 0.1 less than 1: set b.share"),
        ({"a": {"share": 0.6}, "b": {"share": 0.5}}, "to 1.1, 0.1 more than 1: set b.share to 0.4"),
        ({"a": {"share": 1.0}, "b": {"share": 0.5}}, "0.5 more than 1: lower them"),
        ({"a": {"share": -1.0}}, "devices.classes.a.share = -1.0: must be above 0 to 1"),
        ({"a": {}}, "devices.classes.a.share is missing"),
        ({"a": {"share": 1, "sample": 2}}, "no devices.classes.a.sample; did you mean samples or"),
        ({"a": {"share": 1, "samples": 0}}, "devices.classes.a.samples = 0: must be from 1e-09"),
        ({"a": {"share": 1, "availability": "marko"}}, "a.availability.kind = 'marko': did you"),
        ({"a": {"share": 1, "availability": MARKOV | {"mean_on_rounds": 0.5}}}, "the nearest is 1"),
        ({}, "there is no class: give one, such as"),
        ({"a.b": {"share": 1}}, "a class is called 'a.b': take letters"),
    ],
)
def test_classes_that_cannot_be(classes, said):
    with pytest.raises(ScenarioError) as error:
        in_classes(classes)
    assert said in str(error.value)


def test_classes_are_written_read_and_changed_by_name(tmp_path):
    scenario = in_classes({"phones": {"share": 0.5}, "my-sensors": {"share": 0.5, "samples": 0.5}})
    file = tmp_path / "classes.toml"
    file.write_text(scenario.to_toml())
    assert Scenario.load(file) == scenario == Scenario.read(scenario.resolved())
    assert hash(scenario.devices) == hash(Scenario.load(file).devices)
    more = scenario.with_(**{"devices.classes.my-sensors.availability": MARKOV})
    assert more.resolved()["devices"]["classes"]["my-sensors"]["availability"] == MARKOV
    alone = {"devices.classes.my-sensors": None, "devices.classes.phones.share": 1.0}
    assert list(dict(scenario.with_(**alone).devices.classes)) == ["phones"]
    with pytest.raises(ScenarioError, match="no devices.classes.phones.shar; did you mean share"):
        scenario.with_(**{"devices.classes.phones.shar": 1.0})


# -------------------------------------------------------------------- power, payload and thresholds
@pytest.mark.parametrize(
    "policy",
    ["age-based", "max-pack", "best-channel", "proportional-fair", "age-based:packing=exact"],
)
def test_a_class_with_more_power_is_one_with_better_gains(policy, tmp_path):
    classes = {"weak": {"share": 0.5}, "strong": {"share": 0.5, "power_db": 10.0}}
    scenario = in_classes(classes, **{"run.rounds": 20})
    strong = scenario.device_table(Streams(1)).class_of == 1
    plain, channel = tiny(**{"run.rounds": 20}), scenario.make_channel(Streams(1))
    gains = np.array([channel.block(t).true for t in range(20)])
    np.savez(tmp_path / "better.npz", gains=gains * np.where(strong, 10.0, 1.0)[:, np.newaxis],
             power_budget=channel.power_budget)  # fmt: skip
    better = plain.with_(channel={"kind": "trace", "path": str(tmp_path / "better.npz")})
    one, other = (simulate(each, policy, 1) for each in (scenario, better))
    np.testing.assert_array_equal(one.owner, other.owner)
    np.testing.assert_array_equal(one.accuracy, other.accuracy)
    factors = np.where(strong, 10.0, 1.0)[one.owner] * (one.owner >= 0)
    np.testing.assert_allclose(one.power, other.power * factors, rtol=1e-9)
    assert (simulate(plain, policy, 1).owner != one.owner).any()


def test_watts_of_a_class():
    """The budget of the cell is 10 dBm on the link of the preset, 0.1 W where timing says so."""
    classes = {"a": {"share": 0.5}, "b": {"share": 0.5, "transmit_power_w": 0.04}}
    devices = {"kind": "classes", "classes": classes}
    physical = Scenario.preset("physical").with_(devices=devices)
    table = physical.device_table(Streams(0))
    costs = physical.cost_model(table, physical.make_channel(Streams(0)).power_budget)
    np.testing.assert_allclose(costs.power_budget, np.where(table.class_of == 0, 0.01, 0.04))
    for each in classes.values():
        each["computing"] = SECONDS["devices.computing"]
    timed = tiny(timing=SECONDS["timing"], devices=devices)
    table = timed.device_table(Streams(0))
    budgets = timed.cost_model(table, 3.0).power_budget
    np.testing.assert_allclose(budgets, np.where(table.class_of == 0, 3.0, 3.0 * 0.04 / 0.1))
    with pytest.raises(ScenarioError, match=r"classes\.b\.transmit_power_w needs the power budget"):
        tiny(devices={"kind": "classes", "classes": {"b": {"share": 1, "transmit_power_w": 0.04}}})


SENSORS = {
    "threshold": {"kind": "payload", "payload_bits": 6000.0, "deadline_s": 0.1},
    "cell.subchannel_bandwidth_hz": 15e3,
    "timing": {
        "kind": "seconds",
        "downlink": {"kind": "constant", "seconds": 0.01},
        "transmit_power_w": 0.1,
        "deadline_s": 0.4,
    },
}
STILL = {"kind": "log-normal", "median_s": 0.2, "sigma": 0.0, "power_w": 0.0}


def test_who_has_less_to_send_is_done_sooner():
    """R_s is that of 6,000 bits in 0.1 s for all; 1,500 bits take a quarter of time and uses."""
    classes = {
        "phones": {"share": 0.5, "computing": STILL},
        "sensors": {"share": 0.25, "computing": STILL, "payload_share": 0.25},
        "cameras": {"share": 0.25, "computing": STILL, "payload_bits": 9000.0},
    }
    scenario = in_classes(classes, **SENSORS)
    table = scenario.device_table(Streams(1))
    bits = np.array([6000.0, 1500.0, 9000.0])[table.class_of]
    costs = scenario.cost_model(table, 1.0)
    assert set(costs.threshold) == {2.0}
    assert costs.payload_bits.tolist() == bits.tolist()
    assert costs.threshold_slots.tolist() == (bits / 6000.0).tolist()
    for record in rounds(scenario, "max-pack", 1):
        delivery = record.delivery
        ues, held = delivery.scheduled, np.bincount(delivery.owner[delivery.owner >= 0])
        uses = (held[ues] * bits[ues] / delivery.rate).sum()
        assert record.cost.bits == bits[ues].sum()
        assert record.cost.channel_uses == pytest.approx(uses)
        upload_s = bits[ues] / (2 * 15e3 * delivery.rate)
        assert record.cost.seconds == pytest.approx(0.21 + upload_s.max())
    with pytest.raises(ScenarioError, match="payload_share and payload_bits say the same"):
        in_classes({"a": {"share": 1.0, "payload_share": 0.5, "payload_bits": 1.0}})


TIME_LEFT = SENSORS | {
    "threshold": {"kind": "time-left", "payload_bits": 6000.0},
    "timing": SENSORS["timing"] | {"slot_s": 0.1},
    "devices.computing": STILL | {"median_s": 0.29},
}


def test_time_left_by_hand():
    """0.4 s less 0.01 s of downlink: 0.3 s of computing leave 0.09 s, 0.19 s 0.2 s, 0.39 s none.

    6,000 bits in 0.2 s on 15 kHz are 1 bit per real channel use, 1,500 in 0.09 s are 0.556.
    """
    classes = {
        "fast": {"share": 0.5, "computing": STILL | {"median_s": 0.19}},
        "small": {"share": 0.25, "computing": STILL | {"median_s": 0.3}, "payload_share": 0.25},
        "slow": {"share": 0.25, "computing": STILL | {"median_s": 0.3}},
    }
    devices = {"kind": "classes", "classes": classes}
    scenario = tiny(**TIME_LEFT).with_(devices=devices, **{"timing.eligible": "everyone"})
    table = scenario.device_table(Streams(1))
    costs = scenario.cost_model(table, 1.0)
    rates = np.array([6000 / (3e4 * 0.2), 1500 / (3e4 * 0.09), 6000 / (3e4 * 0.09)])
    np.testing.assert_allclose(costs.threshold, rates[table.class_of])
    np.testing.assert_allclose(costs.slot_rate, np.array([2.0, 0.5, 2.0])[table.class_of])
    history = simulate(scenario, "max-pack", 1)
    assert set(history.outcome_counts) >= {"received"}
    assert history.outcome_counts["late"] == 0  # who reaches its rate is in time
    assert sum(history.outcome_counts.values()) > 0
    gone = scenario.with_(**{"devices.classes.slow.computing.median_s": 0.39})
    with pytest.raises(
        ValueError, match=r"devices \(slow\): no UE has time left .* than 0\.0002 s"
    ):
        simulate(gone, "max-pack", 1)


def test_an_upload_in_all_the_time_that_is_left_arrives():
    """One UE, whose channel carries its update at exactly R_k with all of its power."""
    scenario = tiny(**TIME_LEFT, **{"cell.ues": 1, "data.partition": "iid"})
    for seed in range(5):
        varied = scenario.with_(**{"devices.computing.sigma": 0.1})
        costs = varied.cost_model(varied.device_table(Streams(seed)), 1.0)
        gain = np.expm1(2 * np.log(2) * costs.threshold[0])
        allocation = fill(costs.uplink(np.full((1, 5), gain) * [1, 0, 0, 0, 0]), np.array([0]))
        assert allocation.rate[0] == pytest.approx(costs.threshold[0])
        delivery, cost, _ = costs.deliver(allocation, None, None)
        assert delivery.outcome.tolist() == ["received"]
        assert cost.seconds == pytest.approx(0.4)


def test_time_left_of_a_period():
    pace = {"kind": "periodic", "period_s": 0.4, "waiting": "hold"}
    periodic = tiny(**TIME_LEFT).with_(pace=pace, **{"timing.deadline_s": None})
    by_deadline, by_period = (
        each.cost_model(each.device_table(Streams(1)), 1.0).threshold
        for each in (tiny(**TIME_LEFT), periodic)
    )
    np.testing.assert_allclose(by_period, by_deadline)
    assert simulate(periodic, "age-based", 1).outcome_counts["late"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"timing.deadline_s": None}, "time-left needs to know when a round ends: set timing.kind"),
        ({"timing": "none", "devices.computing": None}, "time-left needs to know when a round end"),
        ({"cell.subchannel_bandwidth_hz": None}, "time-left needs cell.subchannel_bandwidth_hz"),
        ({"timing.slot_s": None}, "timing.slot_s is missing"),
        (
            {"timing.downlink": {"kind": "broadcast", "power_db": 10.0}},
            "needs to know how long the model takes: set timing.downlink to kind constant",
        ),
    ],
)
def test_time_left_of_what(change, said):
    with pytest.raises(ScenarioError) as error:
        tiny(**TIME_LEFT).with_(**change)
    assert said in str(error.value)


# ----------------------------------------------------------------------------------- availability
def masks(scenario, seed, count):
    table = scenario.device_table(Streams(seed))
    return np.array([table.available(t) for t in range(count)])


def test_markov_chains_keep_their_share_and_sojourns():
    """400 UEs over 2,000 rounds, on in 2/3 of them and then for 6 rounds, off for 3.

    Standard errors: of the share p(1-p)(1+r)/(1-r)/n with r = 1 - 1/6 - 1/3 from round to round;
    of mean sojourns sqrt(m(m-1)) over the root of their number.
    """
    scenario = tiny(**{"devices.availability": MARKOV, "cell.ues": 400, "run.rounds": 2000})
    on = masks(scenario, 5, 2000)
    share = np.sqrt(2 / 9 * (1 + 0.5) / (1 - 0.5) / on.size)
    assert abs(on.mean() - 2 / 3) < 4.5 * share
    assert abs(on[0].mean() - 2 / 3) < 4.5 * np.sqrt(2 / 9 / 400)  # from the start on
    turns = np.diff(on.astype(int), axis=0)
    for mean, rounds_in, ends in ((6.0, on, turns == -1), (3.0, ~on, turns == 1)):
        ends = ends.sum()
        assert abs(rounds_in[:-1].sum() / ends - mean) < 4.5 * np.sqrt(mean * (mean - 1) / ends)


def test_who_is_there_follows_from_seed_and_round():
    scenario = tiny(**{"devices.availability": MARKOV})
    table, in_order = scenario.device_table(Streams(5)), masks(scenario, 5, 30)
    for t in (7, 29, 3, 3, 0, 12):
        np.testing.assert_array_equal(table.available(t), in_order[t])
    assert (masks(scenario, 6, 30) != in_order).any()


@pytest.mark.parametrize("policy", ["age-based", "random", "age-based:packing=exact"])
def test_who_is_away_is_not_scheduled_and_goes_on_ageing(policy):
    scenario = tiny(**{"devices.availability": MARKOV, "run.rounds": 30})
    on, ages = masks(scenario, 2, 30), np.zeros(12, int)
    for t, record in enumerate(rounds(scenario, policy, 2)):
        assert on[t][record.delivery.scheduled].all()
        ages += 1
        ages[record.delivery.received] = 0
        assert record.ages.tolist() == ages.tolist()
    assert not on.all(axis=0).any()


NIGHT = np.repeat([[1, 0] * 6, [0, 1] * 6], 2, axis=0)  # even UEs for two rounds, then odd ones


@pytest.mark.parametrize("name", ["night.csv", "night.npz"])
def test_availability_from_a_file(name, tmp_path):
    file = tmp_path / name
    if name.endswith("csv"):
        np.savetxt(file, NIGHT, fmt="%d", delimiter=",")
    else:
        np.savez(file, availability=NIGHT.astype(bool))
    scenario = tiny(**{"devices.availability": {"kind": "file", "path": str(file), "repeat": True}})
    np.testing.assert_array_equal(masks(scenario, 0, 8), np.tile(NIGHT, (2, 1)))
    history = simulate(scenario, "max-pack", 1)
    for t, ues in enumerate(history.scheduled):
        assert (ues % 2 == (t // 2) % 2).all()
    assert history.info.sources[f"availability:{file}"] == fingerprint(file)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (NIGHT[:, :11], "[round, ue] for 12 UEs, not of shape (4, 11): give a column for each UE"),
        (NIGHT * 2, "availability of UE 0 in round 0 is 2: must be 1 or 0"),
        (NIGHT - 1, "availability of UE 1 in round 0 is -1: must be 1 or 0"),
        (np.where(NIGHT, 1.0, np.nan), "of UE 1 in round 0 is nan: must be 1 or 0"),
        (NIGHT[:2], "UE 1 is there in no round of the run, so it can never upload: give it a 1"),
        (np.repeat(NIGHT, 4, axis=0), "UE 1 is there in no round of the run"),
        (None, "no such file"),
    ],
)
def test_files_of_availability_that_cannot_be(table, said, tmp_path):
    file = tmp_path / "night.csv"
    if table is not None:
        np.savetxt(file, table, delimiter=",")
    scenario = tiny(**{"devices.availability": {"kind": "file", "path": str(file), "repeat": True}})
    with pytest.raises(ValueError, match=r"night\.csv") as error:
        simulate(scenario, "random")
    assert said in str(error.value)


def test_a_run_longer_than_its_file_says_so(tmp_path):
    file = tmp_path / "night.csv"
    np.savetxt(file, NIGHT, delimiter=",")
    night = {"kind": "file", "path": str(file), "repeat": False}
    with pytest.raises(ValueError, match=r"of 4 rounds for run\.rounds = 8: set repeat = true, or"):
        simulate(tiny(**{"devices.availability": night}), "random")
    assert len(simulate(tiny(**{"devices.availability": night, "run.rounds": 4}), "random")) == 4


class Odd(Availability):
    """Availability of a user's."""

    def present(self, state, t):
        return np.arange(state.ues) % 2 == 1


def test_availability_of_a_user_s_own():
    history = simulate(tiny(**{"devices.availability": Odd()}), "max-pack")
    assert (np.concatenate(history.scheduled) % 2 == 1).all()


# ------------------------------------------------------------------------------- files of devices
@pytest.fixture
def filed(tmp_path):
    """A scenario in seconds of a file of three devices, which 12 UEs share in order."""
    file = tmp_path / "devices.csv"
    file.write_text("name,samples_per_s,compute_w\nfast,100, 4\nslow,25,1\nidle,50,0\n")
    devices = {"kind": "file", "path": str(file), "assignment": "in-order"}
    return tiny(timing=SECONDS["timing"], devices=devices), file


def test_devices_of_a_file(filed):
    scenario, _ = filed
    devices = scenario.device_table(Streams(0))  # 10 samples a round
    assert devices.compute_time.tolist() == [0.1, 0.4, 0.2] * 4
    np.testing.assert_allclose(devices.compute_j, [0.4, 0.4, 0.0] * 4)
    drawn = scenario.with_(**{"devices.assignment": "random"})
    one, again, other = (
        drawn.device_table(Streams(seed)).compute_time.tolist() for seed in (1, 1, 2)
    )
    assert one == again != other
    assert set(one) <= {0.1, 0.4, 0.2}


def test_a_row_for_each_ue(filed, tmp_path):
    scenario, _ = filed
    file = tmp_path / "each.parquet"
    columns = {
        "samples": [1.0, 2.0, 4.0], "battery_j": [1.0, 5.0, 9.0], "samples_per_s": [10, 20, 40],
        "compute_w": [1, 1, 1], "mean_on_rounds": [1.0, 2.0, 1e9], "mean_off_rounds": [1, 2, 1],
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(file)
    each = scenario.with_(**{
        "devices.path": str(file), "devices.assignment": "one-to-one", "cell.ues": 3,
        "data.partition": "iid", "run.rounds": 40,
    })  # fmt: skip
    table = each.device_table(Streams(0))
    assert table.battery_j.tolist() == columns["battery_j"]
    assert table.compute_time.tolist() == [1.0, 0.5, 0.25]
    sizes = samples_of(each, Streams(0)).learner.sizes
    assert sizes / sizes.sum() == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=1e-2)
    on = masks(each, 0, 40)
    assert on[:, 2].all()
    assert (on[1:, 0] != on[:-1, 0]).all()  # both sojourns are one round
    with pytest.raises(ValueError, match=r"3 rows for cell\.ues = 4: set cell\.ues to 3, or dev"):
        each.with_(**{"cell.ues": 4}).device_table(Streams(0))


def test_a_file_of_devices_is_a_source_of_the_run(filed):
    scenario, file = filed
    name = f"devices:{file}"
    assert simulate(scenario, "random").info.sources[name] == fingerprint(file)
    assert source_names(scenario) == {name}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("samples_per_s\n1\n", "there is no column compute_w in its first line"),
        ("mean_off_rounds\n1\n", "there is no column mean_on_rounds in its first line"),
        ("samples_per_s,compute_w\n", "there is no device in it"),
        ("samples_per_s,compute_w\n1,2\nfast,2\n", "line 3: samples_per_s = fast: must be a num"),
        (
            "samples_per_s,compute_w\n0,2\n",
            "line 2: samples_per_s = 0: must be a number from 1e-09 to 1e+15; the nearest is 1e-09",
        ),
        ("samples_per_s,compute_w\n1,nan\n", "line 2: compute_w = nan: must be a number from 0 to"),
        ("samples_per_s,compute_w\n1\n", "line 2: compute_w = nothing: must be a number from 0 to"),
        ("samples_per_s,compute_w,battery_j\n1,1,-2\n", "line 2: battery_j = -2: must be a number"),
        ("samples_per_S,compute_w\n1,1\n", "no column samples_per_S; did you mean samples_per_s?"),
        ("samples,samples_sigma\n1,1\n", "no column samples_sigma; did you mean samples or"),
        ("battery_sigma\n1\n", "no column battery_sigma; did you mean battery_j?"),
        ("payload\n1\n", "no column payload; did you mean payload_share or payload_bits?"),
        ("power\n1\n", "no column power; did you mean power_db?"),
        ("availability\n1\n", "no column availability: give mean_on_rounds and mean_off_rounds"),
        ("samples,samples\n1,2\n", "the column samples is given twice: leave one of them out"),
        ("samples\n1\n", "no column samples_per_s: give it and compute_w, or set devices.comp"),
        (b"\xff\xfe\x00", "there is no column samples_per_s"),
        (None, "no such file"),
    ],
)
def test_files_of_devices_that_cannot_be(text, said, filed):
    scenario, file = filed
    file.unlink()
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"devices\.csv") as error:
        simulate(scenario, "random")
    assert said in str(error.value)


def test_a_file_without_anything_on_devices(filed):
    scenario, file = filed
    untimed = scenario.with_(timing="none")  # its columns are those of time and energy
    with pytest.raises(ValueError, match=r"devices\.csv: there is no column of power_db, "):
        simulate(untimed, "random")
    file.write_text("samples_per_s,compute_w,samples\n1,1,2\n")
    assert untimed.device_table(Streams(0)).compute_time.tolist() == [0.0] * 12


def test_what_a_column_says_no_field_does(filed):
    scenario, file = filed
    twice = scenario.with_(**{"devices.computing": SECONDS["devices.computing"]})
    with pytest.raises(ValueError, match=r"column samples_per_s and devices\.computing say"):
        twice.device_table(Streams(0))
    file.write_text("mean_on_rounds,mean_off_rounds\n2,2\n")
    twice = twice.with_(**{"devices.availability": MARKOV})
    with pytest.raises(ValueError, match=r"column mean_on_rounds and devices\.availability say"):
        twice.device_table(Streams(0))


# ------------------------------------------------------------------------------- what is said of it
def test_classes_are_shown_without_a_look_at_files(filed):
    table = device_table(Scenario.preset("mixed-devices"))
    assert [column.head for column in table.columns] == [
        "devices", "UEs", "power budget", "computing", "upload", "samples", "availability",
    ]  # fmt: skip
    assert [row[:3] for row in table.rows] == [
        ["phones", 50.0, "–"], ["tablets", 20.0, "+3 dB"], ["sensors", 30.0, "-9 dB"],
    ]  # fmt: skip
    text = table.to_text()
    for part in ("median_s=0.15", "x 0.25", "x 0.5", "mean_off_rounds=6"):
        assert part in text
    scenario, file = filed
    file.unlink()
    away = scenario.with_(**{"devices.availability": MARKOV})
    assert device_table(away).rows[0][0] == "devices.csv"
    assert device_table(tiny()) is None
    shown = agewise_command("channel", "mixed-devices", "--rounds", "2").stdout
    assert "tablets   20         +3 dB" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_page_shows_the_classes(tmp_path):
    classes = {"phones": {"share": 0.5}, "sensors": {"share": 0.5, "power_db": -6.0}}
    scenario = in_classes(classes, **{"run.rounds": 2})
    result = compare(scenario, ["age-based", "max-pack"], 2, tmp_path / "r", engine="inline",
                     quiet=True)  # fmt: skip
    page = make_page(result)
    assert "<h3>Devices</h3>" in page
    assert "-6 dB" in page
