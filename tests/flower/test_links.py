"""Links as gains: shares, measured airtime, reports, and what is learned from late uploads."""

import numpy as np
import pytest

from agewise import Uplink, policies, schedule
from agewise.flower import Airtime, FederationError, Modelled, Rates, Reported, Slots, UploadTiming
from agewise.flower.clients import RoundPlanner
from agewise.flower.links import Links, _flat_gains
from tests.scenarios import tiny

SHARES = 12


def subchannels_used(x):
    """How many of 12 subchannels a lone client of x shares is given; 0 if it is out of reach."""
    return subchannels_of(Reported(SHARES, lambda _: {"a": x}).gains(0, ["a"]))


def subchannels_of(gains):
    allocation = schedule(gains, [1], power=1.0, rate_threshold=1.0, policy="max-pack")
    return int((allocation.owner == 0).sum())


def test_x_shares_take_as_many_subchannels():
    """1,000 random x up to beyond N, and every whole one."""
    rng = np.random.default_rng(5)
    for x in [*rng.uniform(0.001, 1.2 * SHARES, 1000), *range(1, SHARES + 1)]:
        assert subchannels_used(x) == (np.ceil(x) if x <= SHARES else 0), x


#: Policies that rank by SNR: to them the gains that are made up for a link are its worth.
RANKED_BY_SNR = {"alternating", "best-channel", "best-channel-norm", "learned", "proportional-fair"}


class ByGain(Links):
    """Clients that need ``shares[t, client]`` of the uplink, said in gains."""

    subchannels, shares = 8, np.random.default_rng(3).uniform(0.2, 11.0, (20, 24))

    def gains(self, t, ids):
        return _flat_gains(self.shares[t], self.subchannels)


class ByThreshold(ByGain):
    """The same clients, said in thresholds on equal gains."""

    def gains(self, t, ids):
        self.needed = np.maximum(self.shares[t] * (1 - 1e-9), 0.05)
        return np.full((len(ids), self.subchannels), 3.0)

    def uplink(self, gains):
        rate = self.needed / 2 * np.log2(1 + 3.0 / self.needed)
        return Uplink(gains, 1.0, np.where(self.needed <= self.subchannels, rate, np.inf))


@pytest.mark.parametrize("name", policies.names())
def test_gains_of_shares_say_what_thresholds_would_not(name):
    """Most policies look at needs alone; those that rank by SNR would choose otherwise."""
    ids, chosen = [f"client {i:02}" for i in range(24)], []
    for links in (ByGain(), ByThreshold()):
        planner = RoundPlanner([name], links, sizes={id_: 9 + i for i, id_ in enumerate(ids)})
        for _ in range(20):
            planned = planner.plan(planner.rows(ids))
            heard = dict.fromkeys(("losses", "update_norms"), planned.chosen / 24)
            planner.receive(planned, planned.chosen, reports=heard)
            chosen.append(planned.chosen.tolist())
    assert (chosen[:20] == chosen[20:]) == (name not in RANKED_BY_SNR)


def test_slots_are_places():
    allocation = schedule(Slots(3).gains(0, list("abcde")), [0, 4, 1, 3, 2], power=1.0,
                          rate_threshold=1.0)  # fmt: skip
    assert np.flatnonzero(allocation.scheduled).tolist() == [1, 3, 4]


def delivered(seconds, transfer_s, megabits):
    return UploadTiming(seconds, transfer_s, megabits * 1e6)


def test_airtime_measures_throughput_and_takes_off_computing():
    links = Airtime(shares=10, deadline_s=20.0)
    links.gains(0, ["a", "b", "c"])
    assert links.needed_shares().tolist() == [1.0, 1.0, 1.0]  # nobody was measured
    links.observe(0, 0, delivered(10.0, 4.0, 8.0))  # 2 Mbit/s, 6 s of computing
    links.observe(0, 1, delivered(30.0, 10.0, 8.0))  # it computes for longer than there is
    x = links.needed_shares()
    assert x[0] == pytest.approx(10 * 8.0 / ((20.0 - 6.0) * 2.0))
    assert x[1] == np.inf
    links.observe(1, 0, delivered(3.0, 1.0, 8.0))  # the middle between 2 and 8 Mbit/s, 6 and 2 s
    assert links.needed_shares()[0] == pytest.approx(10 * 8.0 / ((20.0 - 4.0) * 5.0))
    gains = links.gains(2, ["a", "b", "c"])
    assert (gains[0] == gains[0, 0]).all()


def test_two_slow_uploads_of_five_do_not_make_a_slow_link():
    links = Airtime(shares=10, deadline_s=20.0)
    links.gains(0, ["a", "b"])
    for t, transfer_s in enumerate((1.0, 2.0, 90.0, 2.0, 80.0, 4.0, 4.0, 4.0)):
        links.observe(t, 1, delivered(transfer_s, transfer_s, 8.0))
        if t == 4:
            assert links.rates_bits_s()[1] == 4e6
    assert links.rates_bits_s().tolist() == pytest.approx([np.nan, 2e6], nan_ok=True)


def test_airtime_has_a_deadline():
    with pytest.raises(TypeError, match="deadline_s"):
        Airtime(shares=4)


def test_who_missed_the_deadline_or_is_too_slow_is_tried_with_all_shares():
    links = Airtime(shares=4, deadline_s=5.0)
    links.gains(0, ["a"])
    links.miss(0, 0)
    assert subchannels_of(links.gains(1, ["a"])) == 4
    links.observe(3, 0, delivered(1.0, 0.5, 1.0))
    assert subchannels_of(links.gains(4, ["a"])) == 1
    links.observe(4, 0, delivered(99.0, 9.0, 1.0))
    assert links.needed_shares()[0] == np.inf
    assert subchannels_of(links.gains(5, ["a"])) == 4


def test_what_airtime_learned_survives():
    links = Airtime(shares=4, deadline_s=5.0)
    links.gains(0, ["a", "b"])
    links.observe(0, 1, delivered(2.0, 1.0, 3.0))
    again = Airtime(shares=4, deadline_s=5.0)
    again.restore(links.state())
    assert again.gains(1, ["a", "b"]).tobytes() == links.gains(1, ["a", "b"]).tobytes()


def test_the_state_of_airtime_has_whom_it_measured_and_is_small():
    links = Airtime(shares=4, deadline_s=5.0)
    links.gains(0, [str(k) for k in range(1000)])
    assert links.state() == {}
    for k in range(100):
        links.observe(0, 9 * k, delivered(2.0, 1.0, 3.0))
    assert sum(x.nbytes for x in links.state().values()) <= 45 * 100


def test_modelled_links_are_those_of_the_scenario():
    with pytest.raises(FederationError, match="13 clients joined, and the modelled channel has 12"):
        Modelled(tiny()).gains(0, [str(k) for k in range(13)])


def test_modelled_links_have_no_batteries():
    timing = {
        "kind": "seconds",
        "slot_s": 1.0,
        "downlink": {"kind": "constant", "seconds": 0.0},
        "transmit_power_w": 0.1,
    }
    computing = {"kind": "log-normal", "median_s": 1.0, "sigma": 0.0, "power_w": 1.0}
    devices = {"kind": "alike", "computing": computing, "battery_j": 10.0}
    with pytest.raises(ValueError, match="modelled links have no batteries: leave battery_j out"):
        Modelled(tiny(timing=timing, devices=devices))


def test_reports_in_a_file(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("client,shares\na,1.5\nb,9\n")
    links = Reported(4, file)
    gains = links.gains(0, ["b", "a", "never-heard-of"])
    assert [subchannels_of(row[np.newaxis]) for row in gains] == [0, 2, 0]
    file.write_text("client,gain,,,\nb,1.0,2.0,3.0,4.5\n")
    assert links.gains(1, ["b"]).tolist() == [[1.0, 2.0, 3.0, 4.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line must be client,shares or client,gain"),
        (f"client,shares\n{'a' * 200_000},1\n", "cannot be read: field larger than"),
        ("client,shares\na,nan\n", "client a: .* must be non-negative, finite numbers"),
        ("client,shares\na,many\n", "client a: could not convert string to float: 'many'"),
        ("client,shares\na,1,2\n", "client a: 2 numbers of shares in the place of one"),
        ("client,gain,,\na,1,2,3\n", "client a: 3 gains for 2 subchannels"),
        ("client,shares\na,1\n\nb,1\n a,2\n", "line 5: client a stands there a second time"),
    ],
)
def test_a_file_that_is_no_report(text, message, tmp_path):
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"links.csv.*{message}"):
        Reported(2, file).gains(0, ["a"])


def test_reports_by_a_function():
    """It is asked for every round, and gives shares or gains by client."""
    links = Reported(2, lambda t: {"a": [3.0, 5.0 + t], "b": 2})
    gains = links.gains(0, ["a", "b"])
    assert gains[0].tolist() == [3.0, 5.0]
    assert subchannels_of(gains[1:]) == 2
    assert links.gains(4, ["a"]).tolist() == [[3.0, 9.0]]


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ([-1.0, 9.0], "non-negative, finite numbers"),
        ([10**400, 1.0], "non-negative, finite numbers"),
        ("fast", "non-negative, finite numbers"),
        (None, "non-negative, finite numbers"),
        ([[1.0, 2.0]], "2 gains for 2 subchannels"),
        ([1.0], "1 gains for 2 subchannels"),
        (0, "the number of shares must be positive"),
    ],
)
def test_a_function_that_gives_no_report(report, message):
    with pytest.raises(ValueError, match=f"reported links: client a: .*{message}"):
        Reported(2, lambda _: {"a": report}).gains(0, ["a"])


#: Of ten shares in 10 s less 2 s of computing, 1 MB takes one at 10 Mbit/s.
RATES = {"shares": 10, "deadline_s": 10.0, "payload_bytes": 1e6, "compute_s": 2.0}


def test_rates_are_shares_of_the_time_that_is_left(tmp_path):
    rates, file = {"a": 10.0, "b": 4, "c": 0.9, "d": 0.0}, tmp_path / "rates.csv"
    lines = [f"{id_},{rate}" for id_, rate in rates.items()]
    file.write_text("\n".join(["client,mbit_s", *lines]))
    for source in (rates, lambda t: rates if t else {}, file):
        gains = Rates(source, **RATES).gains(1, ["e", *rates])
        assert [subchannels_of(row[np.newaxis]) for row in gains] == [0, 1, 3, 0, 0]


def test_rates_are_read_again_before_every_round(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("client,mbit_s\na,10\n")
    links = Rates(file, **RATES)
    assert subchannels_of(links.gains(0, ["a"])) == 1
    file.write_text("client,mbit_s\na,5\n")
    assert subchannels_of(links.gains(1, ["a"])) == 2


def test_numbers_of_numpy_are_rates():
    rates = {"a": np.float32(10.0), "b": np.int64(4)}
    gains = Rates(rates, **RATES).gains(0, list(rates))
    assert [subchannels_of(row[np.newaxis]) for row in gains] == [1, 3]


@pytest.mark.parametrize("kind", ["rates", "reports"])
def test_links_stay_where_their_source_fails_after_the_first_time(kind, tmp_path, caplog):
    """Of a file that is gone or half written, and of a function that raises or says nonsense."""
    file = tmp_path / "links.csv"
    head, good, bad = ("mbit_s", 5.0, -1.0) if kind == "rates" else ("shares", 2.0, -1.0)

    def ask(t):
        if t == 2:
            raise ConnectionError("no answer\nfrom the controller")
        return {"a": good if t in (0, 4) else bad}

    for source in (file, ask):
        file.write_text(f"client,{head}\na,{good}\n")
        links = Rates(source, **RATES) if kind == "rates" else Reported(10, source)
        needed = [subchannels_of(links.gains(0, ["a"]))]
        file.write_text(f"client,{head}\na,{bad}\n")
        needed.append(subchannels_of(links.gains(1, ["a"])))
        file.unlink()
        needed += [subchannels_of(links.gains(t, ["a"])) for t in (2, 3)]
        assert needed == [2] * 4
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 6
    assert all("goes on with the links that were reported last: " in line for line in lines)
    assert lines[4].endswith("of reported links failed in round 2: ConnectionError: no answer")


def test_a_function_of_links_that_fails_at_first_is_named():
    failed = "the function of reported links failed in round 0: ZeroDivisionError: division by zero"
    for make in (lambda ask: Rates(ask, **RATES), lambda ask: Reported(2, ask).gains(0, ["a"])):
        with pytest.raises(ValueError, match=failed):
            make(lambda t: 1 / t)


def test_links_say_what_is_wrong():
    for make, message in (
        (lambda: Rates({"a": -1.0}, **RATES), "client a: the rate in Mbit/s must be in .*, not -1"),
        (lambda: Rates({"a": "fast"}, **RATES), "client a: the rate in Mbit/s .*, not 'fast'"),
        (lambda: Rates({"a": True}, **RATES), "client a: the rate in Mbit/s .*, not True"),
        (lambda: Rates([1.0], **RATES), "must give a report by client"),
        (lambda: Rates({}, **RATES | {"compute_s": 10.0}), "deadline_s must be in \\(10, inf"),
        (lambda: Slots(0), "subchannels must be a whole number of at least 1"),
        (lambda: Airtime(shares=4, deadline_s=0.0), "deadline_s must be in \\(0, inf\\)"),
        (lambda: Reported(2, lambda _: [1.0]).gains(0, ["a"]), "must give a report by client"),
        (
            lambda: Reported(2, lambda _: {"a": 1}, rate_threshold=3.0).gains(0, ["a"]),
            "shares go with the usual rate threshold and power budget",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make()
