"""The certificate names the constraint that is violated."""

import numpy as np
import pytest

from agewise import Allocation, InfeasibleAllocation, Uplink

UPLINK = Uplink(np.array([[3.0, 1.0, 0.0], [1.0, 15.0, 3.0]]), 1.0, 1.0)


def test_what_an_allocation_says():
    allocation = Allocation.of(UPLINK, [0, 1, -1], [1.0, 1.0, 0.0])
    allocation.validate()
    assert allocation.scheduled.tolist() == [True, True]
    assert allocation.rate.tolist() == pytest.approx([1.0, 2.0])
    assert allocation.subchannels_of(1).tolist() == [1]
    nobody = Allocation.of(UPLINK, [-1, -1, -1], np.zeros(3))
    nobody.validate()
    assert not nobody.scheduled.any()
    assert nobody.rate.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="no UE 2"):
        nobody.subchannels_of(2)


def test_an_allocation_cannot_be_changed():
    allocation = Allocation.of(UPLINK, [0, 1, -1], [1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="read-only"):
        allocation.power[0] = 2.0


@pytest.mark.parametrize(
    ("owner", "power", "message"),
    [
        ([0, 1, -1], [1.1, 1.0, 0.0], r"power constraint \(3c\).*UE 0 spends 1.1"),
        ([1, 1, 1], [0.4, 0.4, 0.4], r"power constraint \(3c\).*UE 1 spends 1.2"),
        ([0, 1, -1], [0.9, 1.0, 0.0], r"rate constraint \(3b\).*UE 0 reaches 0.94"),
        ([0, -1, 0], [0.5, 0.0, 0.5], r"rate constraint \(3b\).*UE 0"),
        ([0, 1, -1], [1.0, 1.0, 0.1], r"channel constraint \(3e\).*subchannel 2.*no owner"),
        ([0, 1, 2], [1.0, 1.0, 0.1], r"channel constraint \(3e\).*subchannel 2 belongs to UE 2"),
        ([0, 1, -2], [1.0, 1.0, 0.0], r"channel constraint \(3e\).*UE -2"),
        ([0, 1, -1], [1.0, -1.0, 0.0], "subchannel 1 has power -1"),
        ([0, 1, -1], [1.0, np.nan, 0.0], "subchannel 1 has power nan"),
        ([0, 1, -1], [1.0 + 1e-6, 1.0, 0.0], r"power constraint \(3c\).*UE 0 spends 1.000001"),
        ([0, 1, -1], [1.0 - 1e-6, 1.0, 0.0], r"rate constraint \(3b\).*UE 0 reaches 0.99999"),
        ([0, 1], [1.0, 1.0, 0.0], "one entry for each of the 3 subchannels"),
        ([0.0, 1.0, -1.0], [1.0, 1.0, 0.0], "UE indices"),
    ],
)
def test_violations_are_named(owner, power, message):
    with pytest.raises(InfeasibleAllocation, match=message):
        Allocation.of(UPLINK, owner, power).validate()


def test_proof_against_other_gains():
    allocation = Allocation.of(UPLINK, [0, 1, -1], [1.0, 1.0, 0.0])
    allocation.validate(UPLINK.gains)
    with pytest.raises(InfeasibleAllocation, match=r"\(3b\).*UE 1"):
        allocation.validate(UPLINK.gains * np.array([[1.0], [0.1]]))
    with pytest.raises(ValueError, match=r"shape \(3, 3\), the allocation is of 2 UEs"):
        allocation.validate(np.ones((3, 3)))


def test_proof_against_an_uplink():
    allocation = Allocation.of(UPLINK, [0, 1, -1], [1.0, 1.0, 0.0])
    allocation.validate(UPLINK)
    with pytest.raises(InfeasibleAllocation, match=r"\(3b\).*UE 0 reaches"):
        allocation.validate(Uplink(UPLINK.gains, UPLINK.power_budget, 1.5))
    with pytest.raises(InfeasibleAllocation, match=r"\(3c\).*UE 0 spends"):
        allocation.validate(Uplink(UPLINK.gains, 0.5, UPLINK.rate_threshold))
    with pytest.raises(InfeasibleAllocation, match=r"\(3b\).*UE 1 reaches"):
        allocation.validate(
            Uplink(UPLINK.gains * np.array([[1.0], [0.1]]), 1.0, UPLINK.rate_threshold)
        )


def test_each_ue_is_proven_against_its_own_budget_and_threshold():
    gains, owner, power = np.full((2, 2), 3.0), [0, 1], [1.0, 5.0]
    Allocation.of(Uplink(gains, [1.0, 5.0], [1.0, 2.0]), owner, power).validate()
    Allocation.of(Uplink(gains, [1.0, 5.0], [1.0, 2.0]), owner, power).validate(gains)
    over = Allocation.of(Uplink(gains, [5.0, 1.0], [1.0, 2.0]), owner, power)
    with pytest.raises(InfeasibleAllocation, match=r"\(3c\).*UE 1 spends 5 of a budget of 1"):
        over.validate()
    below = Allocation.of(Uplink(gains, [1.0, 5.0], [1.0, 3.0]), owner, power)
    with pytest.raises(InfeasibleAllocation, match=r"\(3b\).*UE 1 reaches 2 of the 3 bits"):
        below.validate()


@pytest.mark.parametrize("limits", [(1.0, 1.0), (np.ones(2), np.ones(3)), (np.ones((2, 1)),) * 2])
def test_budgets_and_thresholds_that_are_not_those_of_the_ues_prove_nothing(limits):
    made = Allocation(np.array([0, 1]), np.ones(2), np.full(2, 3.0), *limits)
    with pytest.raises(InfeasibleAllocation, match="must have an entry per UE"):
        made.validate()


def test_a_forged_allocation_is_not_proven():
    """The constructor takes anything; the proof does not."""
    sound = (np.array([0, 1]), np.ones(2), np.full(2, 3.0))
    Allocation(*sound, np.ones(2), np.ones(2)).validate()
    for gain in (np.nan, -2.0, np.inf):
        forged = (np.array([0, 1]), np.ones(2), np.array([gain, 3.0]))
        with pytest.raises(InfeasibleAllocation, match="non-negative and finite"):
            Allocation(*forged, np.ones(2), np.ones(2)).validate()
    for power, said in ((np.ones(2) * 1j, "numbers, not complex128"), (np.array("ab"), "same")):
        with pytest.raises(InfeasibleAllocation, match=said):
            Allocation(sound[0], power, sound[2], np.ones(2), np.ones(2)).validate()
    with pytest.raises(InfeasibleAllocation, match="same length"):
        Allocation(np.array([0, 1]), np.ones(3), np.ones(2), np.ones(2), np.ones(2)).validate()


@pytest.mark.parametrize(
    ("gain", "budget", "threshold", "message"),
    [
        (30.0, 1.0, 1.0, r"\(3b\).*UE 0 reaches 0.5 of the 1 bits"),
        (3.0, 1.0, 0.4, r"\(3b\).*UE 0 reaches 0.5 of the 1 bits"),
        (3.0, 2.0, 1.0, r"\(3b\).*UE 0 reaches 0.5 of the 1 bits"),
    ],
)
def test_what_an_allocation_says_of_itself_proves_nothing(gain, budget, threshold, message):
    """Gains, budget and threshold of the proof are those of the round."""
    forged = Allocation(
        np.array([0, -1, -1]), np.array([1 / 3, 0.0, 0.0]), np.array([gain, 0.0, 0.0]),
        np.full(2, budget), np.full(2, threshold),
    )  # fmt: skip
    with pytest.raises(InfeasibleAllocation, match=message):
        forged.validate(UPLINK)
    spent = Allocation(
        np.array([0, -1, -1]), np.array([2.0, 0, 0]), forged.gain, np.full(2, 9.0), np.zeros(2)
    )
    with pytest.raises(InfeasibleAllocation, match=r"\(3c\).*UE 0 spends 2 of a budget of 1"):
        spent.validate(UPLINK)


def test_an_unknown_owner_is_found_whatever_the_gains():
    forged = Allocation(np.array([0, 7, -1]), np.ones(3), np.full(3, 9.0), np.ones(2), np.ones(2))
    for gains in (None, UPLINK, UPLINK.gains):
        with pytest.raises(InfeasibleAllocation, match="subchannel 1 belongs to UE 7"):
            forged.validate(gains)


def test_small_types_are_as_good():
    owner, power = np.array([0, 1, -1], np.int8), np.array([1, 1, 0], np.float32)
    Allocation(owner, power, np.array([3, 15, 0]), np.ones(2), np.ones(2)).validate(UPLINK)
