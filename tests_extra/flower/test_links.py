"""Links as gains: shares, measured airtime, reports, and what is learned from late uploads."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

from agewise import schedule
from agewise.flower import Airtime, Delivery, FederationError, Modelled, Reported, Slots
from agewise.flower.links import gain_of_shares
from tests.scenarios import tiny

SHARES = 12


def subchannels_used(x):
    """How many of 12 subchannels a lone client of x shares is given; 0 if it is out of reach."""
    gain = gain_of_shares(np.array([x]))[0] if x <= SHARES else 0.0
    gains = np.full((1, SHARES), gain)
    allocation = schedule(gains, [1], power=1.0, rate_threshold=1.0, policy="max-pack")
    return int((allocation.owner == 0).sum())


def test_x_shares_take_as_many_subchannels():
    """1,000 random x up to beyond N, and every whole one."""
    rng = np.random.default_rng(5)
    for x in [*rng.uniform(0.001, 1.2 * SHARES, 1000), *range(1, SHARES + 1)]:
        assert subchannels_used(x) == (np.ceil(x) if x <= SHARES else 0), x


def test_slots_are_places():
    allocation = schedule(Slots(3).gains(0, list("abcde")), [0, 4, 1, 3, 2], power=1.0,
                          rate_threshold=1.0)  # fmt: skip
    assert np.flatnonzero(allocation.scheduled).tolist() == [1, 3, 4]


def delivered(seconds, transfer_s, megabits):
    return Delivery(seconds, transfer_s, megabits * 1e6)


def test_airtime_measures_throughput_and_takes_off_computing():
    links = Airtime(shares=10, deadline_s=20.0)
    links.gains(0, ["a", "b", "c"])
    assert links.needed_shares().tolist() == [1.0, 1.0, 1.0]  # nobody was measured
    links.observe(0, 0, delivered(10.0, 4.0, 8.0))  # 2 Mbit/s, 6 s of computing
    links.observe(0, 1, delivered(30.0, 10.0, 8.0))  # it computes for longer than there is
    x = links.needed_shares()
    assert x[0] == pytest.approx(10 * 8.0 / ((20.0 - 6.0) * 2.0))
    assert x[1] == np.inf
    links.observe(1, 0, delivered(3.0, 1.0, 8.0))  # the newest counts half: 5 Mbit/s, 4 s
    assert links.needed_shares()[0] == pytest.approx(10 * 8.0 / ((20.0 - 4.0) * 5.0))
    gains = links.gains(2, ["a", "b", "c"])
    assert (gains[1] == 0).all()
    assert (gains[0] == gains[0, 0]).all()


def test_a_missed_deadline_is_out_of_reach_until_heard_or_retried():
    links = Airtime(shares=4, deadline_s=5.0, retry_rounds=3)
    links.gains(0, ["a"])
    links.miss(0, 0)
    reach = [bool(links.gains(t, ["a"]).any()) for t in range(1, 5)]
    assert reach == [False, False, True, True]
    assert subchannels_of(links.gains(3, ["a"])) == 4  # as if it needed all shares
    links.observe(3, 0, delivered(1.0, 0.5, 1.0))
    assert subchannels_of(links.gains(4, ["a"])) == 1


def subchannels_of(gains):
    allocation = schedule(gains, [1], power=1.0, rate_threshold=1.0, policy="max-pack")
    return int((allocation.owner >= 0).sum())


def test_what_airtime_learned_survives():
    links = Airtime(shares=4, deadline_s=5.0)
    links.gains(0, ["a", "b"])
    links.observe(0, 1, delivered(2.0, 1.0, 3.0))
    again = Airtime(shares=4, deadline_s=5.0)
    again.restore(links.state())
    assert again.gains(1, ["a", "b"]).tobytes() == links.gains(1, ["a", "b"]).tobytes()


def test_modelled_links_are_those_of_the_scenario():
    with pytest.raises(FederationError, match="13 clients joined, and the modelled channel has 12"):
        Modelled(tiny()).gains(0, [str(k) for k in range(13)])


def test_modelled_links_have_no_batteries():
    timing = {
        "kind": "seconds",
        "slot_s": 1.0,
        "downlink_s": 0.0,
        "transmit_power_w": 0.1,
        "computing": {"kind": "log-normal", "median_s": 1.0, "sigma": 0.0, "power_w": 1.0},
        "battery": {"kind": "budget", "energy_j": 10.0, "sigma": 0.0},
    }
    with pytest.raises(ValueError, match="modelled links have no batteries: set timing.battery"):
        Modelled(tiny(timing=timing))


def test_reports_in_a_file(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("client,shares\na,1.5\nb,9\n")
    links = Reported(subchannels=4, csv=file)
    gains = links.gains(0, ["b", "a", "never-heard-of"])
    assert [subchannels_of(row[np.newaxis]) for row in gains] == [0, 2, 0]
    file.write_text("client,gain,,,\nb,1.0,2.0,3.0,4.5\n")
    assert links.gains(1, ["b"]).tolist() == [[1.0, 2.0, 3.0, 4.5]]
    file.write_text("client,gain,,,\nb,1.0,2.0,3.0\n")
    with pytest.raises(ValueError, match=r"links.csv, line 2: client b: 3 gains for 4"):
        links.gains(2, ["b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line must be client,shares or client,gain"),
        (f"client,shares\n{'a' * 200_000},1\n", "cannot be read: field larger than"),
        ("client,shares\na,nan\n", "line 2: client a: .* must be non-negative, finite numbers"),
    ],
)
def test_a_file_that_is_no_report(text, message, tmp_path):
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"links.csv.*{message}"):
        Reported(subchannels=2, csv=file).gains(0, ["a"])


class Busy(dict):
    """Reports, one of which comes while they are gone through."""

    def __iter__(self):
        yield from list(self.keys())
        self["late"] = np.ones(2)


def test_a_report_may_come_while_the_state_is_taken(tmp_path):
    links = Reported(subchannels=2, csv=tmp_path / "links.csv")
    links._rows = Busy(a=np.zeros(2))
    state = links.state()
    assert len(state["clients"]) == len(state["gains"])


def test_reports_by_http_need_the_token():
    links = Reported(subchannels=2, port=0, token="secret")

    def post(report, token="secret"):
        content = report if isinstance(report, bytes) else json.dumps(report).encode()
        request = urllib.request.Request(links.address, content, method="POST")
        request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status

    def refused(*args):
        with pytest.raises(urllib.error.HTTPError) as error:
            post(*args)
        error.value.close()
        return error.value.code

    try:
        assert links.address.startswith("http://127.0.0.1:")
        assert post({"client": "a", "gains": [3.0, 5.0]}) == 200
        assert post({"client": "b", "shares": 2}) == 200
        assert refused({"client": "a", "gains": [9.0, 9.0]}, "guess") == 401
        assert refused({"client": "a", "gains": [-1.0, 9.0]}) == 400
        assert refused(b"[1]") == 400
        assert refused({"client": "a"}) == 400
        assert refused({"client": "a", "gains": [10**400, 1.0]}) == 400
        port = int(links.address.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(ValueError, match=f"port {port} on 127.0.0.1 is not free"):
            Reported(subchannels=2, port=port)
        gains = links.gains(0, ["a", "b"])
        assert gains[0].tolist() == [3.0, 5.0]
        assert subchannels_of(gains[1:]) == 2
    finally:
        links.close()


def test_links_say_what_is_wrong():
    for make, message in (
        (lambda: Slots(0), "count must be a whole number of at least 1"),
        (lambda: Airtime(shares=4, deadline_s=0.0), "deadline_s must be positive"),
        (lambda: Reported(subchannels=2), "a csv file or a port"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
