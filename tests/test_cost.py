"""What a round takes the UEs, and what becomes of those that are late or out of energy."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import agewise
from agewise import Allocation, Streams, Uplink
from agewise.scenario import ScenarioError
from agewise.simulation import rounds, simulate
from tests import costs
from tests.scenarios import in_seconds, tiny


def computing_of(scenario, streams):
    """How long local learning takes each UE, in slots."""
    upload_s = scenario.threshold.upload_s
    return scenario.timing.computing_slots(scenario.device_table(streams), upload_s)


HURRIED = {
    "timing": {"kind": "slots", "deadline_slots": 1.5, "eligible": "everyone"},
    "devices.computing": {"kind": "slots", "median_slots": 0.6, "sigma": 1.0},
}


def slots(median, sigma):
    return {
        "timing": {"kind": "slots", "deadline_slots": 3.0},
        "devices.computing": {"kind": "slots", "median_slots": median, "sigma": sigma},
    }


def test_computing_times_follow_the_seed():
    scenario = tiny(**slots(2.0, 0.5), **{"cell.ues": 50})
    first, again, other = (computing_of(scenario, Streams(seed)) for seed in (4, 4, 5))
    assert first.tolist() == again.tolist()
    assert not np.isin(first, other).any()
    assert np.unique(first).size == 50


def test_computing_times_are_log_normal():
    """The sample median of n normal draws has the standard error 1.2533 sigma / sqrt(n)."""
    count, sigma = 20_000, 0.7
    scenario = tiny(**slots(2.0, sigma), **{"cell.ues": count})
    logs = np.log(computing_of(scenario, Streams(1)))
    assert abs(np.median(logs) - math.log(2.0)) < 4.5 * 1.2533 * sigma / math.sqrt(count)
    assert abs(logs.std() - sigma) < 4.5 * sigma / math.sqrt(2 * count)


def test_without_timing_and_without_spread():
    assert computing_of(tiny(**{"cell.ues": 3}), Streams(0)).tolist() == [0.0, 0.0, 0.0]
    alike = tiny(**slots(2.0, 0.0), **{"cell.ues": 3})
    assert computing_of(alike, Streams(0)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("threshold", [0.0, 4.0])
def test_who_is_late_is_scheduled_but_not_received_and_goes_on_ageing(threshold):
    scenario, seed = tiny(**HURRIED, **{"run.rounds": 20, "threshold.rate": threshold}), 2
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
    less = {"timing.eligible": "in-time", "timing.deadline_slots": 1.6}
    scenario = tiny(**HURRIED).with_(**less, **{"run.rounds": 12})
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
    everyone = tiny(**HURRIED, **{"run.optimum": sampled})
    scenario = everyone.with_(**{"timing.eligible": "in-time"})
    in_time = simulate(scenario, "age-based:packing=exact", 2)
    np.testing.assert_allclose(in_time.numbers("weight"), in_time.numbers("optimum"))
    # Ages of those left out grow for ever, and would be the larger part of any optimum.
    assert (
        simulate(everyone, "age-based", 2).numbers("optimum")[-1] > in_time.numbers("optimum")[-1]
    )


def test_a_deadline_that_nobody_meets_leaves_the_model_as_it_was():
    hopeless = tiny(**HURRIED | slots(100.0, 0.0), **{"timing.eligible": "everyone"})
    records = list(rounds(hopeless, "round-robin"))
    assert all(
        record.delivery.received.size == 0 < record.delivery.scheduled.size for record in records
    )
    assert len({(record.evaluation.accuracy, record.evaluation.loss) for record in records}) == 1
    assert records[-1].ages.tolist() == [8] * 12


def test_a_generous_deadline_changes_nothing():
    generous = tiny(**HURRIED, **{"timing.deadline_slots": 1e9})
    for timed, plain in zip(
        rounds(generous, "age-based", 1), rounds(tiny(), "age-based", 1),
        strict=True,
    ):  # fmt: skip
        assert timed.delivery.received.tolist() == plain.delivery.received.tolist()
        assert timed.evaluation.loss == plain.evaluation.loss


@pytest.mark.parametrize(
    "change", [{"timing.deadline_slots": 0.0}, {"devices.computing.sigma": -1.0}]
)
def test_times_that_cannot_be(change):
    with pytest.raises(ScenarioError, match=next(iter(change))):
        tiny(**HURRIED, **change)


# ------------------------------------------------------------------------------ seconds and joules
DOCUMENT = Path(__file__).parent.parent / "docs" / "accounting.md"
CYCLES = {
    "kind": "cycles", "cycles_per_sample": 2e4, "frequency_hz": 1e9, "frequency_sigma": 0.0,
    "kappa": 1e-28,
}  # fmt: skip
SECONDS = in_seconds()


def timed(**devices):
    """The tiny scenario in seconds, whose UEs have this too."""
    return tiny(**SECONDS, **{f"devices.{name}": value for name, value in devices.items()})


def example(**timing):
    """The model and the allocation of the examples in docs/accounting.md."""
    timing |= {
        "kind": "seconds",
        "downlink": {"kind": "constant", "seconds": 0.01},
        "transmit_power_w": 0.1,
    }
    scenario = tiny(
        threshold={"kind": "model", "deadline_s": 0.1},
        timing=timing,
        **{
            "devices.computing": CYCLES,
            "cell.ues": 3, "cell.subchannels": 3, "cell.subchannel_bandwidth_hz": 15e3,
            "learn.local_steps": 50, "learn.batch_size": 20,
        },
    )  # fmt: skip
    model = scenario.cost_model(scenario.device_table(Streams(0)), 1.0, 210)
    uplink = Uplink(np.array([[63.0, 0, 0], [1, 1, 1], [0, 30, 30]]), 1.0, model.threshold)
    allocation = Allocation.of(uplink, [0, 2, 2], [1.0, 0.5, 0.5])
    allocation.validate(uplink)
    return model, allocation


def require_documented(**found):
    """Each is (a value, by hand), and the document has the latter."""
    text = DOCUMENT.read_text(encoding="utf-8").replace(",", "")
    for name, (value, by_hand) in found.items():
        assert value == pytest.approx(by_hand, rel=5e-5), name
        assert f"**{by_hand:g}" in text, name


def test_the_example_by_hand():
    """That of docs/accounting.md, whose figures are these."""
    model, allocation = example()
    assert allocation.rate[[0, 2]] == pytest.approx([3.0, 4.0])
    _, spent, _ = model.deliver(allocation, None, None)
    require_documented(
        payload_bits=(model.payload_bits, 6720),
        threshold=(model.threshold, 2.24),
        bits=(spent.bits, 13440),
        channel_uses=(spent.channel_uses, 5600),
        seconds=(spent.seconds, 0.10467),
        joules=(spent.energy_j.sum(), 0.017067),
    )
    assert spent.energy_j == pytest.approx([0.0094667, 0.0076], rel=1e-5)


def test_the_example_of_a_lost_upload():
    model, allocation = example()
    true = np.array([[7.0, 0, 0], [1, 1, 1], [0, 30, 30]])
    delivery, spent, _ = model.deliver(allocation, true, None)
    assert delivery.outcome.tolist() == ["outage", "received"]
    assert delivery.rate == pytest.approx([1.5, 4.0])
    require_documented(
        bits=(spent.bits, 13440),
        channel_uses=(spent.channel_uses, 6360),
        seconds=(spent.seconds, 0.13),
        joules=(spent.energy_j.sum(), 0.0196),
    )


def test_the_example_of_an_empty_round():
    for seconds, timing in ((0.11, {}), (0.105, {"deadline_s": 0.105})):
        model, allocation = example(**timing)
        nobody = replace(allocation, owner=np.full(3, -1), power=np.zeros(3), gain=np.zeros(3))
        _, spent, _ = model.deliver(nobody, None, None)
        require_documented(seconds=(spent.seconds, seconds))
        assert (spent.energy_j.sum(), spent.channel_uses, spent.bits) == (0.0, 0.0, 0.0)


def test_slots_have_an_equivalent_in_seconds():
    """A slot of half a second, which divides exactly: the same run to the last bit."""
    for eligible in ("in-time", "everyone"):
        changes = {"timing.eligible": eligible, "run.rounds": 15}
        slotted, timed = (
            simulate(one.with_(**changes), "fed-cs", 2)
            for one in (tiny(**HURRIED), tiny(**SECONDS, **{"timing.deadline_s": 0.75}))
        )
        np.testing.assert_array_equal(slotted.owner, timed.owner)
        np.testing.assert_array_equal(slotted.accuracy, timed.accuracy)
        np.testing.assert_array_equal(slotted.ages, timed.ages)
        assert np.isnan(slotted.numbers("seconds")).all()
        assert (timed.numbers("seconds") <= 0.75).all()


def test_every_round_is_paid_for_also_by_those_who_are_late():
    late = {
        "timing.deadline_s": 0.7,
        "timing.downlink.seconds": 0.05,
        "timing.eligible": "everyone",
    }
    scenario = tiny(**SECONDS, **late)
    devices = scenario.device_table(Streams(1))
    late, total = 0, np.zeros(12)
    for record in rounds(scenario, "round-robin", 1):
        upload_s = 0.5 * 4.0 / record.delivery.rate
        taken_s = 0.05 + devices.compute_time[record.delivery.scheduled] + upload_s
        assert (
            record.delivery.received.tolist() == record.delivery.scheduled[taken_s <= 0.7].tolist()
        )
        assert record.cost.seconds == pytest.approx(min(0.7, taken_s.max()))
        power_w = [
            0.1 * record.delivery.power[record.delivery.owner == ue].sum()
            for ue in record.delivery.scheduled
        ]
        energy_j = 2.0 * devices.compute_time[record.delivery.scheduled] + power_w * upload_s
        np.testing.assert_allclose(record.cost.energy_j, energy_j)
        assert max(power_w) <= 0.1 * (1 + 1e-9)
        total[record.delivery.scheduled] += energy_j
        late += record.delivery.scheduled.size - record.delivery.received.size
    assert late > 0
    np.testing.assert_allclose(simulate(scenario, "round-robin", 1).energy_j, total)


def test_a_round_of_nobody_goes_by():
    hopeless = tiny(**SECONDS, **{"timing.downlink.seconds": 0.25, "threshold.rate": 900.0})
    history = simulate(hopeless, "max-pack")
    assert history.numbers("seconds").tolist() == [0.75] * 8
    for name in ("joules", "channel_uses", "bits"):
        assert history.numbers(name).tolist() == [0.0] * 8


def test_a_link_budget_knows_the_watts():
    physical = agewise.Scenario.preset("physical").with_(
        **{"run.rounds": 2, "data.dataset": "synthetic", "devices.computing": CYCLES},
        timing={"kind": "seconds", "downlink": {"kind": "constant", "seconds": 0.0}},
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
    untimed = cell.with_(timing="none", **{"devices.computing": None})
    counted, plain = (simulate(each, "age-based", 1) for each in (cell, untimed))
    np.testing.assert_array_equal(counted.ages, plain.ages)
    np.testing.assert_array_equal(counted.accuracy, plain.accuracy)
    seconds, joules = counted.numbers("seconds"), counted.numbers("joules")
    slowest = cell.threshold.deadline_s + 0.01 + 50 * 2e4 / 1e9 * 3  # a device of a third the speed
    assert ((seconds > 0.011) & (seconds < slowest)).all()
    assert (joules > 50 * 2e4 * 1e-28 * 1e18 * 0.25).all()  # one UE of half the speed


def test_cycles_with_a_spread():
    """Slower processors take longer and less energy: T f and E / f^2 are the same for all."""
    varied = {"devices.computing": CYCLES | {"frequency_sigma": 0.5}, "cell.ues": 20}
    scenario = tiny(**SECONDS).with_(**varied)
    devices = scenario.device_table(Streams(3))
    cycles = 2e4 * 10
    frequency = cycles / devices.compute_time
    assert np.unique(frequency).size == 20
    np.testing.assert_allclose(devices.compute_j, 1e-28 * cycles * frequency**2)


# -------------------------------------------------------------------------------------- batteries
def test_empty_batteries_leave():
    """Nobody spends more than it had, and who has nothing left is not scheduled again."""
    scenario = timed(battery_j=1.5, battery_sigma=0.3).with_(**{"run.rounds": 40})
    had = scenario.device_table(Streams(2)).battery_j
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
    for rate in (0.0, 4.0):
        scenario = timed(battery_j=0.1).with_(**{"threshold.rate": rate})
        history = simulate(scenario.with_(**{"run.rounds": 25}), policy, 1)
        assert [ues.size for ues in history.scheduled][-1] == 0
        assert np.isfinite(history.numbers("channel_uses")).all()


def test_a_battery_that_lasts_changes_nothing():
    large = timed(battery_j=1e9, battery_sigma=1.0)
    with_, without = (simulate(each, "age-based", 1) for each in (large, timed()))
    assert with_.frame.equals(without.frame)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"timing.slot_s": None}, "timing.slot_s is missing"),
        ({"timing.transmit_power_w": None}, "timing.transmit_power_w is missing"),
        (
            {"timing.deadline_s": 0.1, "timing.downlink.seconds": 0.2},
            "deadline_s = 0.1: must be above timing.downlink",
        ),
        ({"timing.slot_s": 0.0}, "timing.slot_s = 0.0: must be from 1e-12 to"),
        ({"devices.computing": "cycle"}, "devices.computing.kind = 'cycle': did you mean cycles?"),
        (
            {"devices.computing": None},
            "which timing.kind = seconds counts: there are log-normal, cycles",
        ),
        (
            {"devices.computing": {"kind": "slots", "median_slots": 1, "sigma": 0}},
            "devices.computing = slots is in slots, and timing.kind is seconds: set timing.kind",
        ),
        (
            {"timing": "none"},
            "set timing.kind to seconds, or leave devices.computing out",
        ),
        ({"devices.battery_j": 0}, "devices.battery_j = 0: must be from 1e-12"),
        ({"devices.battery_sigma": 1}, "battery_sigma goes with battery_j, which is missing"),
        (
            {"timing": "none", "devices.computing": None, "devices.battery_j": 1},
            "devices.battery_j needs joules, which timing.kind = seconds counts",
        ),
    ],
)
def test_seconds_that_cannot_be(change, said):
    with pytest.raises(ScenarioError) as error:
        tiny(**SECONDS).with_(**change)
    assert said in str(error.value)


def test_what_follows_from_elsewhere_is_left_out():
    carried = {"threshold": {"kind": "model", "deadline_s": 1.0}}
    with pytest.raises(ScenarioError, match=r"timing\.slot_s follows from threshold\.deadline_s"):
        tiny(**SECONDS, **carried, **{"cell.subchannel_bandwidth_hz": 15e3})
    physical = agewise.Scenario.preset("physical")
    with pytest.raises(ScenarioError, match=r"timing\.transmit_power_w follows from channel\.link"):
        physical.with_(**SECONDS, **{"timing.slot_s": None})


# ------------------------------------------------------------------------------ rounds or joules
def test_who_wins_by_round_may_lose_by_joule():
    """16 seeds, samples dealt at random: max-pack hears more UEs a round, and pays for them all."""
    table, gains = costs.table(), costs.gains()
    assert table in DOCUMENT.read_text(encoding="utf-8"), table
    by_round, by_joule = gains["rounds"], gains["joules"]
    assert by_round.low > 0
    assert by_joule.high < 0


# ------------------------------------------------------------------------------------ the downlink
BROADCAST = {
    "timing": {
        "kind": "seconds",
        "slot_s": 0.5,
        "downlink": {"kind": "broadcast", "power_db": 10.0},
        "transmit_power_w": 0.1,
    },
    "devices.computing": {"kind": "log-normal", "median_s": 0.3, "sigma": 0.5, "power_w": 2.0},
    "cell.subchannel_bandwidth_hz": 10e3,
}


def test_a_broadcast_goes_at_the_rate_of_the_worst_ue_addressed():
    """32 bits for each of 210 weights over five subchannels of 10 kHz, by hand."""
    scenario, streams = tiny(**BROADCAST), Streams(1)
    channel = scenario.make_channel(streams)
    gains = channel.block(0).true
    costs = scenario.cost_model(scenario.device_table(streams), channel.power_budget)
    snr = 10.0 * channel.power_budget / 5 * gains.mean(axis=1)
    seconds = 32 * 210 / (5 * 10e3 * np.log2(1 + snr))
    np.testing.assert_allclose(costs.downlink_slots(gains), seconds / 0.5, rtol=1e-12)

    constant = {"kind": "constant", "seconds": 0.0}
    quick = simulate(scenario.with_(**{"timing.downlink": constant}), "age-based", 1)
    slow = simulate(scenario, "age-based", 1)
    np.testing.assert_array_equal(slow.owner, quick.owner)
    worst = [
        32
        * 210
        / (5 * 10e3 * np.log2(1 + 2.0 * channel.power_budget * gain.mean(axis=1)[ues].min()))
        for ues, gain in (
            (ues, channel.block(t).true) for t, ues in enumerate(quick.scheduled) if ues.size
        )
    ]
    more = slow.numbers("seconds") - quick.numbers("seconds")
    np.testing.assert_allclose(more[[ues.size > 0 for ues in quick.scheduled]], worst, rtol=1e-9)


def test_a_broadcast_takes_time_from_a_deadline_and_from_a_period():
    """Whom the model reaches too late is not eligible, or ready in a later period."""
    scenario = tiny(**BROADCAST, **{"timing.downlink.power_db": -20.0})
    free = simulate(scenario, "max-pack", 1)
    hurried = simulate(scenario.with_(**{"timing.deadline_s": 1.5}), "max-pack", 1)
    assert sum(len(ues) for ues in hurried.scheduled) < sum(len(ues) for ues in free.scheduled)
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "hold"}
    near = simulate(tiny(**BROADCAST, pace=pace), "max-pack", 1)
    far = simulate(scenario.with_(pace=pace), "max-pack", 1)
    assert len(near.received[0]) > len(far.received[0])


def test_a_broadcast_needs_a_bandwidth():
    with pytest.raises(ScenarioError, match="timing.downlink needs cell.subchannel_bandwidth_hz"):
        tiny(**BROADCAST).with_(**{"cell.subchannel_bandwidth_hz": None})
