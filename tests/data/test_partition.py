"""Partitions: disjoint covers with nobody left empty, of the promised shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import dirichlet, equal_shares, iid, log_normal_shares, shards

LABELS = np.random.default_rng(0).choice(10, 6000, p=np.linspace(0.06, 0.14, 10))


def assert_cover(partition, samples, ues):
    assert sorted(partition.order.tolist()) == list(range(samples))
    assert partition.sizes.size == ues
    assert partition.sizes.min() >= 1
    together = np.concatenate([partition.samples_of(ue) for ue in range(ues)])
    np.testing.assert_array_equal(together, partition.order)


@given(st.integers(1, 40), st.integers(0, 200), st.integers(0, 3), st.integers(1, 5))
def test_every_scheme_covers_disjointly(ues, extra, seed, classes):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, ues + extra)
    for shares in (equal_shares(ues), log_normal_shares(ues, 1.0, rng)):
        assert_cover(iid(labels, shares, rng), labels.size, ues)
        for concentration in (1e-4, 0.1, 100.0):
            assert_cover(dirichlet(labels, shares, concentration, rng), labels.size, ues)


def test_iid_sizes():
    rng = np.random.default_rng(1)
    equal = iid(LABELS, equal_shares(70), rng)
    assert set(equal.sizes) == {6000 // 70, 6000 // 70 + 1}
    uneven = iid(LABELS, log_normal_shares(70, 1.0, rng), rng)
    assert uneven.sizes.max() > 4 * np.median(uneven.sizes)
    counts = equal.label_counts(LABELS, 10)
    assert counts.sum() == 6000
    assert (counts > 0).sum(axis=1).min() >= 9


@pytest.mark.parametrize("classes_per_ue", [1, 2, 5, 10])
@pytest.mark.parametrize("ues", [10, 33, 100])
def test_shards_hold_exactly_so_many_classes(ues, classes_per_ue):
    rng = np.random.default_rng(2)
    for shares in (equal_shares(ues), log_normal_shares(ues, 0.5, rng)):
        made = shards(LABELS, shares, classes_per_ue, rng)
        assert_cover(made, 6000, ues)
        counts = made.label_counts(LABELS, 10)
        assert ((counts > 0).sum(axis=1) == classes_per_ue).all()
    sizes = shards(LABELS, equal_shares(ues), classes_per_ue, rng).sizes
    assert sizes.max() <= 2 * 6000 / ues


def test_dirichlet_goes_from_one_class_to_all():
    def classes_held(concentration):
        rng = np.random.default_rng(3)
        made = dirichlet(LABELS, equal_shares(20), concentration, rng)
        return (made.label_counts(LABELS, 10) > 0.05 * made.sizes[:, None]).sum(axis=1).mean()

    assert classes_held(0.02) < 2
    assert 3 < classes_held(0.5) < 8
    assert classes_held(1000.0) > 9


def test_label_counts_by_hand():
    made = shards(np.array([0, 0, 1, 1]), equal_shares(2), 1, np.random.default_rng(0))
    counts = made.label_counts(np.array([0, 0, 1, 1]), 3)
    assert sorted(counts.tolist()) == [[0, 2, 0], [2, 0, 0]]


def test_the_seed_decides():
    for scheme, options in ((iid, ()), (shards, (2,)), (dirichlet, (0.5,))):
        shares = equal_shares(20)
        first, again, other = (
            scheme(LABELS, shares, *options, np.random.default_rng(s)).order for s in (0, 0, 1)
        )
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_impossible_partitions():
    rng, few = np.random.default_rng(0), np.array([0, 1, 2])
    with pytest.raises(ValueError, match="3 samples are too few for 4 UEs"):
        iid(few, equal_shares(4), rng)
    with pytest.raises(ValueError, match="too few for 4 UEs"):
        dirichlet(few, equal_shares(4), 1.0, rng)
    with pytest.raises(ValueError, match="4 classes per UE, but the data have 3"):
        shards(few, equal_shares(2), 4, rng)
    with pytest.raises(ValueError, match="2 UEs with 1 classes each cannot hold all 3"):
        shards(few, equal_shares(2), 1, rng)
    with pytest.raises(ValueError, match="class 0 has 1 samples for the 3 UEs"):
        shards(few, equal_shares(3), 3, rng)
