"""What all kinds of links have in common."""

import numpy as np
import pytest

from agewise import Uplink, policies
from agewise.flower import Airtime, Modelled, Rates, Reported, Slots, UploadTiming
from agewise.random import Streams
from agewise.scheduling import AccessPoint
from tests.scenarios import tiny

IDS = [f"client {k}" for k in range(12)]
KINDS = ["slots", "rates", "airtime", "modelled", "modelled-late", "reported"]
LATE = {"kind": "delayed", "delay_s": 0.01, "carrier_hz": 3e9, "speed_m_s": 1.0}


def make(kind, folder):
    """Links of this kind that have seen two rounds."""
    if kind == "slots":
        return Slots(5)
    if kind == "rates":
        rates = {id_: 8.0 / (k + 1) for k, id_ in enumerate(IDS)}
        return Rates(lambda _: rates, shares=5, deadline_s=2.0, payload_bytes=500_000)
    if kind == "modelled":
        return Modelled(tiny())
    if kind == "modelled-late":
        return Modelled(tiny(**{"channel.csi": LATE}))
    if kind == "reported":
        file = folder / "links.csv"
        lines = [f"{id_},{0.5 * (k + 1)}" for k, id_ in enumerate(IDS)]
        file.write_text("\n".join(["client,shares", *lines]))
        return Reported(5, file)
    links = Airtime(shares=5, deadline_s=10.0)
    links.gains(0, IDS)
    for row in range(8):
        links.observe(0, row, UploadTiming(1.0 + row, 0.5 * (1 + row), 8e6))
    links.miss(1, 3)
    return links


@pytest.mark.parametrize("kind", KINDS)
def test_gains_are_an_uplink_and_the_same_when_asked_again(kind, tmp_path):
    links = make(kind, tmp_path)
    for t in (2, 5, 2):
        gains = links.gains(t, IDS)
        assert gains.shape == (12, links.subchannels)
        assert gains.tobytes() == links.gains(t, IDS).tobytes()
        Uplink(gains, links.power_budget, links.rate_threshold)


@pytest.mark.parametrize("kind", KINDS)
def test_true_gains_are_given_where_they_are_others(kind, tmp_path):
    links = make(kind, tmp_path)
    gains, true = links.gains(2, IDS), links.true_gains(2, IDS)
    assert (true is not None) == (kind == "modelled-late")
    if true is not None:
        assert true.shape == gains.shape
        assert not np.array_equal(true, gains)
        assert true.tobytes() == links.true_gains(2, IDS).tobytes()
        assert links.true_gains(2, IDS[:9]).tobytes() == true[:9].tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_clients_that_join_change_nothing_for_the_others(kind, tmp_path):
    first = make(kind, tmp_path).gains(2, IDS[:9])
    assert make(kind, tmp_path).gains(2, IDS)[:9].tobytes() == first.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_is_restored(kind, tmp_path):
    links = make(kind, tmp_path)
    before = links.gains(3, IDS)
    again = Airtime(shares=5, deadline_s=10.0) if kind == "airtime" else make(kind, tmp_path)
    again.restore(links.state())
    assert again.gains(3, IDS).tobytes() == before.tobytes()
    assert all(isinstance(array, np.ndarray) for array in links.state().values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", policies.names())
def test_every_policy_finds_someone_to_serve(kind, policy, tmp_path):
    links = make(kind, tmp_path)
    point = AccessPoint(policies.make_policy(policy), IDS, Streams(0))
    uplink = Uplink(links.gains(2, IDS), links.power_budget, links.rate_threshold)
    served = set()
    for _ in range(4):
        allocation = point.plan(uplink)
        scheduled = np.flatnonzero(allocation.scheduled)
        served |= set(scheduled.tolist())
        reports = {name: np.ones(scheduled.size) for name in point.policy.reads}
        point.receive(scheduled, reports)
    assert served
    assert uplink.gains[sorted(served)].any(axis=1).all()
