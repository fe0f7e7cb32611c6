"""Packing at prices: feasible, never a matter of numbering, and closer to the optimum."""

import numpy as np
import pytest

from agewise import Uplink
from agewise.spectrum import Auction, Greedy
from agewise.spectrum.exact import solve
from tests.cells import draw_gains
from tests.spectrum.test_pack import OneExponent

pack, auction = Greedy().pack, Auction().pack


def instances(count, ues=40, subchannels=12, **regime):
    rng = np.random.default_rng(5)
    for _ in range(count):
        gains = draw_gains(rng, ues, subchannels, regime.get("edge_snr_db", 0.0))
        weights = np.sqrt(rng.integers(0, 12, ues))
        yield Uplink(gains, 1.0, regime.get("threshold", 2.0)), weights, rng.permutation(ues)


def worth(allocation, weights):
    return float(weights[allocation.scheduled].sum())


def test_a_contested_subchannel_is_left_to_who_needs_it():
    """UE 0 would do on either subchannel, UE 1 on the first alone, which both like best."""
    uplink = Uplink(np.array([[9.0, 8.0], [9.0, 1.0]]), 1.0, 1.5)
    assert pack(uplink, [2.0, 1.0]).owner.tolist() == [0, -1]
    assert auction(uplink, [2.0, 1.0]).owner.tolist() == [1, 0]


@pytest.mark.parametrize("threshold", [0.0, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("edge_snr_db", [-10.0, 10.0])
def test_feasible_with_fewest_subchannels_and_full_power(threshold, edge_snr_db):
    for uplink, weights, rank in instances(20, threshold=threshold, edge_snr_db=edge_snr_db):
        allocation = auction(uplink, weights, rank)
        allocation.validate(uplink)
        for ue in np.flatnonzero(allocation.scheduled):
            held = allocation.subchannels_of(ue)
            assert (allocation.power[held] > 0).all()
            assert allocation.power[held].sum() == pytest.approx(1.0)
            # Its gains there and nowhere else: one subchannel less would not do.
            alone = np.zeros((1, 12))
            alone[0, held[np.argsort(uplink.gains[ue, held])[1:]]] = uplink.gains[
                ue, held[np.argsort(uplink.gains[ue, held])[1:]]
            ]
            if threshold > 0:
                assert not pack(Uplink(alone, 1.0, threshold), [1.0]).scheduled.any()


def test_nobody_is_left_out_who_would_fit():
    for uplink, weights, rank in instances(20):
        allocation = auction(uplink, weights, rank)
        left = np.where(allocation.owner < 0, uplink.gains, 0.0)
        left[allocation.scheduled] = 0.0
        assert not pack(Uplink(left, 1.0, 2.0), weights).scheduled.any()


@pytest.mark.parametrize(
    ("edge_snr_db", "threshold", "share"), [(-10.0, 2.0, 0.6), (0.0, 3.0, 0.5), (10.0, 4.0, 0.5)]
)
def test_it_loses_less_than_greedy_packing(edge_snr_db, threshold, share):
    """Of what Algorithm 2 loses against the optimum, at most this share is left."""
    greedy = priced = 0.0
    for uplink, weights, rank in instances(30, edge_snr_db=edge_snr_db, threshold=threshold):
        best = solve(uplink, weights, rank)
        assert best.proven
        of_pack, of_auction = (worth(f(uplink, weights, rank), weights) for f in (pack, auction))
        assert of_auction <= best.value * (1 + 1e-9)
        greedy += best.value - of_pack
        priced += best.value - of_auction
    assert 0 <= priced < share * greedy


def test_more_prices_and_exponents_never_lose():
    for uplink, weights, rank in instances(20, edge_snr_db=-5.0):
        one, more, most = (
            worth(kind(price_rounds=n).pack(uplink, weights, rank), weights)
            for kind, n in ((OneExponent, 0), (Auction, 0), (Auction, 5))
        )
        assert one <= more <= most


def test_numbering_does_not_matter():
    rng = np.random.default_rng(8)
    for uplink, weights, rank in instances(30, edge_snr_db=0.0, threshold=3.0):
        ues, channels = rng.permutation(40), rng.permutation(12)
        original = auction(uplink, weights, rank)
        moved = auction(
            Uplink(np.ascontiguousarray(uplink.gains[np.ix_(ues, channels)]), 1.0, 3.0),
            weights[ues], rank[ues],
        )  # fmt: skip
        back = np.append(ues, -1)[moved.owner]
        assert back.tolist() == original.owner[channels].tolist()


def test_numbering_does_not_matter_among_equal_weights():
    rng = np.random.default_rng(9)
    for uplink, weights, _ in instances(150, ues=60, edge_snr_db=0.0, threshold=3.0):
        weights, rank, ues = np.floor(weights), rng.permutation(60), rng.permutation(60)
        original = auction(uplink, weights, rank)
        moved = auction(
            Uplink(np.ascontiguousarray(uplink.gains[ues]), 1.0, 3.0), weights[ues], rank[ues]
        )
        assert np.append(ues, -1)[moved.owner].tolist() == original.owner.tolist()


def test_nothing_to_weigh_and_nothing_there():
    for uplink, weights, rank in instances(3):
        assert auction(uplink, 0.0 * weights, rank).scheduled.any()
    assert auction(Uplink(np.zeros((0, 3)), 1.0, 1.0), []).owner.tolist() == [-1] * 3
    assert auction(Uplink(np.zeros((3, 0)), 1.0, 1.0), [1, 2, 3]).owner.tolist() == []
    assert auction(Uplink(np.zeros((3, 2)), 1.0, 1.0), [1, 2, 3]).owner.tolist() == [-1, -1]
    with pytest.raises(ValueError, match="that of UE 1 is -1"):
        auction(Uplink(np.ones((2, 2)), 1.0, 1.0), [1.0, -1.0])
