"""The age of update: how it evolves (Eq. 2) and what it weighs (f_alpha)."""

import math
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import real_number
from agewise.core.pack import CONTINUOUS, PAPER, weigh_ages

Form = Literal["paper", "continuous"]
_FORMS = get_args(Form)
_CODES = {"paper": PAPER, "continuous": CONTINUOUS}
#: Above this not every whole number is a float64, and squares of ages could overflow.
_LARGEST_AGE = 2**53
_Age = TypeVar("_Age", np.int64, np.float64)


def next_ages(
    ages: NDArray[_Age],
    received: NDArray[np.bool_] | NDArray[np.int64],
    update_ages: NDArray[np.int64] | int = 0,
) -> NDArray[_Age]:
    """Eq. 2: ``T[t+1] = (T[t] + 1) (1 - S[t])``.

    ``received`` are the UEs whose update arrived, as a mask or by index; that is what resets an
    age: a scheduled UE whose upload was lost goes on ageing. An update that was not new when it
    was sent resets the age to its own, ``update_ages``.

    >>> next_ages(np.array([0, 3, 5]), np.array([False, True, False]))
    array([1, 0, 6])
    """
    if received.dtype.kind == "b" and ages.shape != received.shape:
        raise ValueError(
            f"ages and received must have one entry per UE: {ages.shape} and {received.shape}"
        )
    following = ages + 1
    following[received] = update_ages
    return following


def check_alpha(alpha: float, form: Form = "paper") -> None:
    """Raise ``ValueError`` unless ``f_alpha`` of this form is a sensible weight of an age."""
    if form not in _FORMS:
        raise ValueError(f"form must be one of {', '.join(_FORMS)}, not {form!r}")
    real_number("alpha", alpha)
    if form == "paper" and alpha > 1:
        raise ValueError(
            f"alpha must be at most 1, not {alpha:g}: above 1 the paper's f_alpha is negative, so "
            'scheduling nobody would be optimal; form="continuous" is positive for every alpha'
        )


def check_ages(ages: ArrayLike, ue_count: int) -> NDArray[np.int64] | NDArray[np.float64]:
    """The ages as an array with one non-negative, finite number per UE, or ``ValueError``."""
    array = np.asarray(ages)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"ages must be real numbers, not {array.dtype}")
    if array.shape != (ue_count,):
        raise ValueError(
            f"ages must have one entry per UE: the gains have {ue_count} UEs (rows), "
            f"the ages have shape {array.shape}"
        )
    converted: NDArray[np.int64] | NDArray[np.float64]
    if array.dtype.kind == "f" or array.dtype == np.uint64:
        converted = array.astype(np.float64, copy=False)
    else:
        converted = array.astype(np.int64, copy=False)
    whole = converted.dtype.kind == "i"
    if converted.size and not (converted.min() >= 0 and (whole or converted.max() < np.inf)):
        ue = int((~(np.isfinite(converted) & (converted >= 0))).argmax())
        raise ValueError(
            f"ages must be non-negative and finite: the age of UE {ue} is {converted[ue]}"
        )
    if converted.size and converted.max() > _LARGEST_AGE:
        ue = int(converted.argmax())
        raise ValueError(
            f"ages must be at most 2**53 rounds: the age of UE {ue} is {converted[ue]}"
        )
    return converted


def f_alpha(ages: ArrayLike, alpha: float, form: Form = "paper") -> NDArray[np.float64]:
    """How much staleness counts: the paper's f_alpha, or its continuous variant.

    The paper's form is ``x^(1-alpha) / (1-alpha)`` for ``alpha < 1`` and ``log(1+x)`` at
    ``alpha = 1``, which is not the limit of the others. The continuous form
    ``((1+x)^(1-alpha) - 1) / (1-alpha)`` has that limit and allows every alpha.

    >>> f_alpha([0, 1, 4], alpha=0.5)
    array([0., 2., 4.])
    """
    check_alpha(alpha, form)
    x = np.asarray(ages)
    weights = np.empty(x.shape)
    if x.dtype.kind not in "iufb":
        raise ValueError(f"ages must be real numbers, not {x.dtype}")
    flat = np.ascontiguousarray(x, x.dtype if x.dtype == np.int64 else np.float64).reshape(-1)
    power = 1.0 - alpha
    lowest, highest = weigh_ages(flat, power, _CODES[form], weights.reshape(-1))
    if not lowest >= 0:
        raise ValueError("ages must be non-negative")
    try:
        math.pow(1.0 + highest, power)
    except OverflowError:
        raise ValueError(
            f"f_alpha overflows: an age of {highest:g} with alpha={alpha:g} is too large"
        ) from None
    return weights
