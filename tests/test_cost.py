"""What a round takes the UEs, and what becomes of those that are late or out of energy."""

import math
from pathlib import Path

import numpy as np
import pytest

import agewise
from agewise import Allocation, Streams, Uplink
from agewise.cost import upload_slots
from agewise.files import fingerprint
from agewise.provenance import source_names
from agewise.scenario import ScenarioError
from agewise.simulation import rounds, simulate
from tests import costs
from tests.scenarios import tiny


def computing_of(scenario, streams):
    """How long local learning takes each UE, in slots."""
    return scenario.timing.computing_slots(scenario.workload(streams))


HURRIED = {
    "kind": "slots", "compute_slots": 0.6, "compute_sigma": 1.0, "deadline_slots": 1.5,
    "eligible": "everyone",
}  # fmt: skip


def slots(median, sigma):
    return {"kind": "slots", "compute_slots": median, "compute_sigma": sigma, "deadline_slots": 3.0}


def test_computing_times_follow_the_seed():
    scenario = tiny(timing=slots(2.0, 0.5), **{"cell.ues": 50})
    first, again, other = (computing_of(scenario, Streams(seed)) for seed in (4, 4, 5))
    assert first.tolist() == again.tolist()
    assert not np.isin(first, other).any()
    assert np.unique(first).size == 50


def test_computing_times_are_log_normal():
    """The sample median of n normal draws has the standard error 1.2533 sigma / sqrt(n)."""
    count, sigma = 20_000, 0.7
    scenario = tiny(timing=slots(2.0, sigma), **{"cell.ues": count})
    logs = np.log(computing_of(scenario, Streams(1)))
    assert abs(np.median(logs) - math.log(2.0)) < 4.5 * 1.2533 * sigma / math.sqrt(count)
    assert abs(logs.std() - sigma) < 4.5 * sigma / math.sqrt(2 * count)


def test_without_timing_and_without_spread():
    assert computing_of(tiny(**{"cell.ues": 3}), Streams(0)).tolist() == [0.0, 0.0, 0.0]
    alike = tiny(timing=slots(2.0, 0.0), **{"cell.ues": 3})
    assert computing_of(alike, Streams(0)).tolist() == [2.0, 2.0, 2.0]


def test_an_upload_at_the_threshold_takes_one_slot():
    assert upload_slots(np.array([2.0, 4.0, 1.0]), 2.0).tolist() == [1.0, 0.5, 2.0]
    assert upload_slots(np.array([3.0]), 0.0).tolist() == [0.0]


@pytest.mark.parametrize("threshold", [0.0, 4.0])
def test_who_is_late_is_scheduled_but_not_received_and_goes_on_ageing(threshold):
    scenario, seed = tiny(timing=HURRIED, **{"run.rounds": 20, "threshold.rate": threshold}), 2
    streams = Streams(seed)
    channel = scenario.make_channel(streams)
    computing = computing_of(scenario, streams)
    ages, counts, late = np.zeros(12, int), np.zeros(12, int), 0
    for t, record in enumerate(rounds(scenario, "max-pack", seed)):
        uplink = Uplink(channel.block(t).true, channel.power_budget, threshold)
        rate = Allocation.of(uplink, record.delivery.owner, record.delivery.power).rate
        in_time = [
            ue for ue in record.delivery.scheduled if computing[ue] + threshold / rate[ue] <= 1.5
        ]
        assert record.delivery.received.tolist() == in_time
        late += record.delivery.scheduled.size - len(in_time)
        counts[in_time] += 1
        ages += 1
        ages[in_time] = 0
        assert record.ages.tolist() == ages.tolist()
        assert record.participation.tolist() == counts.tolist()
    assert late > 0
    assert counts.sum() > 0


@pytest.mark.parametrize("policy", ["age-based", "max-pack", "random", "age-based:packing=exact"])
def test_policies_are_only_offered_ues_that_can_be_in_time(policy):
    """An upload at the threshold takes a slot: who computes longer than until then is left out."""
    timing = HURRIED | {"eligible": "in-time", "deadline_slots": 1.6}
    scenario = tiny(timing=timing, **{"run.rounds": 12})
    computing = computing_of(scenario, Streams(2))
    in_time = set(np.flatnonzero(computing <= 0.6).tolist())
    assert 0 < len(in_time) < 12
    heard: set[int] = set()
    for record in rounds(scenario, policy, 2):
        assert record.delivery.received.tolist() == record.delivery.scheduled.tolist()
        heard |= set(record.delivery.scheduled.tolist())
    assert heard
    assert heard <= in_time


def test_the_optimum_is_that_of_those_who_were_offered():
    sampled = {"kind": "sampled", "every": 1, "work_limit": 100_000}
    scenario = tiny(timing=HURRIED | {"eligible": "in-time"}, **{"run.optimum": sampled})
    everyone = scenario.with_(**{"timing.eligible": "everyone"})
    in_time = simulate(scenario, "age-based:packing=exact", 2)
    np.testing.assert_allclose(in_time.numbers("weight"), in_time.numbers("optimum"))
    # Ages of those left out grow for ever, and would be the larger part of any optimum.
    assert (
        simulate(everyone, "age-based", 2).numbers("optimum")[-1] > in_time.numbers("optimum")[-1]
    )


def test_a_deadline_that_nobody_meets_leaves_the_model_as_it_was():
    hopeless = HURRIED | {"compute_slots": 100.0, "compute_sigma": 0.0}
    records = list(rounds(tiny(timing=hopeless), "round-robin"))
    assert all(
        record.delivery.received.size == 0 < record.delivery.scheduled.size for record in records
    )
    assert len({(record.evaluation.accuracy, record.evaluation.loss) for record in records}) == 1
    assert records[-1].ages.tolist() == [8] * 12


def test_a_generous_deadline_changes_nothing():
    generous = HURRIED | {"deadline_slots": 1e9}
    for timed, plain in zip(
        rounds(tiny(timing=generous), "age-based", 1), rounds(tiny(), "age-based", 1),
        strict=True,
    ):  # fmt: skip
        assert timed.delivery.received.tolist() == plain.delivery.received.tolist()
        assert timed.evaluation.loss == plain.evaluation.loss


@pytest.mark.parametrize("change", [{"deadline_slots": 0.0}, {"compute_sigma": -1.0}])
def test_times_that_cannot_be(change):
    with pytest.raises(ScenarioError, match=f"timing.{next(iter(change))}"):
        tiny(timing=HURRIED | change)


# ------------------------------------------------------------------------------ seconds and joules
DOCUMENT = Path(__file__).parent.parent / "docs" / "accounting.md"
CYCLES = {
    "kind": "cycles", "cycles_per_sample": 2e4, "frequency_hz": 1e9, "frequency_sigma": 0.0,
    "kappa": 1e-28,
}  # fmt: skip
SECONDS = {
    "kind": "seconds", "slot_s": 0.5, "downlink_s": 0.0, "transmit_power_w": 0.1,
    "computing": {"kind": "log-normal", "median_s": 0.3, "sigma": 1.0, "power_w": 2.0},
}  # fmt: skip


def test_the_example_by_hand():
    """That of docs/accounting.md, whose figures are these."""
    timing = {"kind": "seconds", "downlink_s": 0.01, "transmit_power_w": 0.1, "computing": CYCLES}
    scenario = tiny(
        threshold={"kind": "model", "deadline_s": 0.1},
        timing=timing,
        **{
            "cell.ues": 3, "cell.subchannels": 3, "cell.subchannel_bandwidth_hz": 15e3,
            "learn.local_steps": 50, "learn.batch_size": 20,
        },
    )  # fmt: skip
    model = scenario.cost_model(Streams(0), 1.0, 210)
    uplink = Uplink(np.array([[63.0, 0, 0], [1, 1, 1], [0, 30, 30]]), 1.0, model.threshold)
    allocation = Allocation.of(uplink, [0, 2, 2], [1.0, 0.5, 0.5])
    allocation.validate(uplink)
    scheduled = np.array([0, 2])
    assert allocation.rate[scheduled] == pytest.approx([3.0, 4.0])
    _, spent, _ = model.deliver(allocation, None, None)
    found = {
        "payload_bits": (model.payload_bits, 6720),
        "threshold": (model.threshold, 2.24),
        "bits": (spent.bits, 13440),
        "channel_uses": (spent.channel_uses, 5600),
        "seconds": (spent.seconds, 0.10467),
        "joules": (spent.energy_j.sum(), 0.017067),
    }
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, (value, by_hand) in found.items():
        assert value == pytest.approx(by_hand, rel=5e-5), name
        assert f"**{by_hand:g}" in text.replace(",", ""), name
    assert spent.energy_j == pytest.approx([0.0094667, 0.0076], rel=1e-5)


def test_slots_have_an_equivalent_in_seconds():
    """A slot of half a second, which divides exactly: the same run to the last bit."""
    in_slots = {
        "kind": "slots", "compute_slots": 0.6, "compute_sigma": 1.0, "deadline_slots": 1.5,
    }  # fmt: skip
    for eligible in ("in-time", "everyone"):
        slotted, timed = (
            simulate(tiny(timing=one | {"eligible": eligible}, **{"run.rounds": 15}), "fed-cs", 2)
            for one in (in_slots, SECONDS | {"deadline_s": 0.75})
        )
        np.testing.assert_array_equal(slotted.owner, timed.owner)
        np.testing.assert_array_equal(slotted.accuracy, timed.accuracy)
        np.testing.assert_array_equal(slotted.ages, timed.ages)
        assert np.isnan(slotted.numbers("seconds")).all()
        assert (timed.numbers("seconds") <= 0.75).all()


def test_every_round_is_paid_for_also_by_those_who_are_late():
    scenario = tiny(
        timing=SECONDS | {"deadline_s": 0.7, "downlink_s": 0.05, "eligible": "everyone"}
    )
    streams = Streams(1)
    devices = scenario.timing.computing.devices(scenario.workload(streams))
    late, total = 0, np.zeros(12)
    for record in rounds(scenario, "round-robin", 1):
        upload_s = 0.5 * 4.0 / record.delivery.rate
        taken_s = 0.05 + devices.compute_s[record.delivery.scheduled] + upload_s
        assert (
            record.delivery.received.tolist() == record.delivery.scheduled[taken_s <= 0.7].tolist()
        )
        assert record.cost.seconds == pytest.approx(min(0.7, taken_s.max()))
        power_w = [
            0.1 * record.delivery.power[record.delivery.owner == ue].sum()
            for ue in record.delivery.scheduled
        ]
        energy_j = 2.0 * devices.compute_s[record.delivery.scheduled] + power_w * upload_s
        np.testing.assert_allclose(record.cost.energy_j, energy_j)
        assert max(power_w) <= 0.1 * (1 + 1e-9)
        total[record.delivery.scheduled] += energy_j
        late += record.delivery.scheduled.size - record.delivery.received.size
    assert late > 0
    np.testing.assert_allclose(simulate(scenario, "round-robin", 1).energy_j, total)


def test_a_round_of_nobody_goes_by():
    hopeless = tiny(timing=SECONDS | {"downlink_s": 0.25}, **{"threshold.rate": 900.0})
    history = simulate(hopeless, "max-pack")
    assert history.numbers("seconds").tolist() == [0.75] * 8
    for name in ("joules", "channel_uses", "bits"):
        assert history.numbers(name).tolist() == [0.0] * 8


def test_a_link_budget_knows_the_watts():
    physical = agewise.Scenario.preset("physical").with_(
        **{"run.rounds": 2, "data.dataset": "synthetic"},
        timing={"kind": "seconds", "downlink_s": 0.0, "computing": CYCLES},
    )
    record = next(rounds(physical, "max-pack"))
    upload_s = 0.15 * physical.rate_threshold / record.delivery.rate  # the payload's own deadline
    power_w = [
        record.delivery.power[record.delivery.owner == ue].sum() for ue in record.delivery.scheduled
    ]
    compute_j = 1e-28 * 2e4 * 50 * 1e18
    np.testing.assert_allclose(record.cost.energy_j, compute_j + power_w * upload_s)
    assert max(power_w) == pytest.approx(0.01)  # 10 dBm


@pytest.mark.parametrize(
    "preset", ["urban-micro", "urban-macro", "indoor-factory", "office", "vehicular"]
)
def test_presets_of_cells_count_times_and_energy_and_learn_the_same_without(preset):
    """Three rounds. An upload takes at most a slot, and UEs pay for computing and radio."""
    cell = agewise.Scenario.preset(preset).with_(**{"run.rounds": 3})
    counted, plain = (
        simulate(cell, "age-based", 1),
        simulate(cell.with_(timing="none"), "age-based", 1),
    )
    np.testing.assert_array_equal(counted.ages, plain.ages)
    np.testing.assert_array_equal(counted.accuracy, plain.accuracy)
    seconds, joules = counted.numbers("seconds"), counted.numbers("joules")
    slowest = cell.threshold.deadline_s + 0.01 + 50 * 2e4 / 1e9 * 3  # a device of a third the speed
    assert ((seconds > 0.011) & (seconds < slowest)).all()
    assert (joules > 50 * 2e4 * 1e-28 * 1e18 * 0.25).all()  # one UE of half the speed


def test_cycles_with_a_spread():
    """Slower processors take longer and less energy: T f and E / f^2 are the same for all."""
    timing = SECONDS | {"computing": CYCLES | {"frequency_sigma": 0.5}}
    scenario = tiny(timing=timing, **{"cell.ues": 20})
    devices = scenario.timing.computing.devices(scenario.workload(Streams(3)))
    cycles = 2e4 * 10
    frequency = cycles / devices.compute_s
    assert np.unique(frequency).size == 20
    np.testing.assert_allclose(devices.compute_j, 1e-28 * cycles * frequency**2)


# ---------------------------------------------------------------------------------------- devices
@pytest.fixture
def profiles(tmp_path):
    file = tmp_path / "devices.csv"
    file.write_text("name,samples_per_s,compute_w\nfast,100, 4\nslow,25,1\nidle,50,0\n")
    computing = {"kind": "profiles", "path": str(file), "assignment": "in-order"}
    return tiny(timing=SECONDS | {"computing": computing}), file


def test_measured_devices(profiles):
    scenario, _ = profiles
    devices = scenario.timing.computing.devices(scenario.workload(Streams(0)))  # 10 samples a round
    assert devices.compute_s.tolist() == [0.1, 0.4, 0.2] * 4
    np.testing.assert_allclose(devices.compute_j, [0.4, 0.4, 0.0] * 4)
    drawn = scenario.with_(**{"timing.computing.assignment": "random"})
    one, again, other = (
        drawn.timing.computing.devices(drawn.workload(Streams(seed))).compute_s.tolist()
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert set(one) <= {0.1, 0.4, 0.2}


def test_devices_are_a_source_of_the_run(profiles):
    scenario, file = profiles
    name = f"devices:{file}"
    assert simulate(scenario, "random").info.sources[name] == fingerprint(file)
    assert source_names(scenario) == {name}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("samples_per_s\n1\n", "there is no column compute_w in its first line"),
        ("samples_per_s,compute_w\n", "there is no device in it"),
        (
            "samples_per_s,compute_w\n1,2\nfast,2\n",
            "line 3: samples_per_s = fast: must be a num",
        ),
        (
            "samples_per_s,compute_w\n0,2\n",
            "line 2: samples_per_s = 0: must be a number from 1e-09",
        ),
        ("samples_per_s,compute_w\n1,nan\n", "line 2: compute_w = nan: must be a number from 0 to"),
        ("samples_per_s,compute_w\n1\n", "line 2: compute_w = None: must be a number from 0 to"),
        (b"\xff\xfe\x00", "there is no column samples_per_s"),
        (None, "no such file"),
    ],
)
def test_files_of_devices_that_cannot_be(text, said, profiles):
    scenario, file = profiles
    file.unlink()
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="devices.csv") as error:
        simulate(scenario, "random")
    assert said in str(error.value)


# -------------------------------------------------------------------------------------- batteries
def test_empty_batteries_leave():
    """Nobody spends more than it had, and who has nothing left is not scheduled again."""
    battery = {"kind": "budget", "energy_j": 1.5, "sigma": 0.3}
    scenario = tiny(timing=SECONDS | {"battery": battery}, **{"run.rounds": 40})
    had = scenario.timing.batteries(12, Streams(2)).left_j
    spent, gone, lost = np.zeros(12), set(), 0
    for record in rounds(scenario, "age-based", 2):
        assert not gone & set(record.delivery.scheduled.tolist())
        spent[record.delivery.scheduled] += record.cost.energy_j
        assert set(record.cost.emptied.tolist()) <= set(record.delivery.scheduled.tolist())
        gone |= set(record.cost.emptied.tolist())
        missing = set(record.delivery.scheduled.tolist()) - set(record.delivery.received.tolist())
        assert missing <= set(record.cost.emptied.tolist())
        lost += len(missing)
    assert (spent <= had * (1 + 1e-12)).all()
    np.testing.assert_allclose(spent[sorted(gone)], had[sorted(gone)])
    assert len(gone) > 5
    assert lost == len(gone)  # no battery ends exactly with an upload
    history = simulate(scenario, "age-based", 2)
    assert {ue for ues in history.emptied for ue in ues.tolist()} == gone


@pytest.mark.parametrize("policy", ["random", "max-pack", "age-based:packing=exact"])
def test_when_all_are_empty_nobody_is_scheduled(policy):
    battery = {"kind": "budget", "energy_j": 0.1, "sigma": 0.0}
    for rate in (0.0, 4.0):
        scenario = tiny(timing=SECONDS | {"battery": battery}, **{"threshold.rate": rate})
        history = simulate(scenario.with_(**{"run.rounds": 25}), policy, 1)
        assert [ues.size for ues in history.scheduled][-1] == 0
        assert np.isfinite(history.numbers("channel_uses")).all()


def test_a_battery_that_lasts_changes_nothing():
    large = SECONDS | {"battery": {"kind": "budget", "energy_j": 1e9, "sigma": 1.0}}
    with_, without = (simulate(tiny(timing=one), "age-based", 1) for one in (large, SECONDS))
    assert with_.frame.equals(without.frame)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slot_s": None}, "timing.slot_s is missing"),
        ({"transmit_power_w": None}, "timing.transmit_power_w is missing"),
        ({"deadline_s": 0.1, "downlink_s": 0.2}, "deadline_s = 0.1: must be above timing.downlink"),
        ({"slot_s": 0.0}, "timing.slot_s = 0.0: must be from 1e-12 to"),
        ({"battery": "full"}, "timing.battery.kind = 'full': there are none, budget"),
        ({"computing": "cycle"}, "timing.computing.kind = 'cycle': did you mean cycles?"),
        ({"battery": {"kind": "budget", "energy_j": 0, "sigma": 0}}, "energy_j = 0: must be from"),
    ],
)
def test_seconds_that_cannot_be(change, said):
    given = {name: value for name, value in (SECONDS | change).items() if value is not None}
    with pytest.raises(ScenarioError) as error:
        tiny(timing=given)
    assert said in str(error.value)


def test_what_follows_from_elsewhere_is_left_out():
    carried = {"threshold": {"kind": "model", "deadline_s": 1.0}}
    with pytest.raises(ScenarioError, match=r"timing\.slot_s follows from threshold\.deadline_s"):
        tiny(timing=SECONDS, **carried, **{"cell.subchannel_bandwidth_hz": 15e3})
    physical = agewise.Scenario.preset("physical")
    with pytest.raises(ScenarioError, match=r"timing\.transmit_power_w follows from channel\.link"):
        physical.with_(timing={k: v for k, v in SECONDS.items() if k != "slot_s"})


# ------------------------------------------------------------------------------ rounds or joules
def test_who_wins_by_round_may_lose_by_joule():
    """16 seeds, samples dealt at random: max-pack hears more UEs a round, and pays for them all."""
    table, gains = costs.table(), costs.gains()
    assert table in DOCUMENT.read_text(encoding="utf-8"), table
    by_round, by_joule = gains["rounds"], gains["joules"]
    assert by_round.low > 0
    assert by_joule.high < 0
