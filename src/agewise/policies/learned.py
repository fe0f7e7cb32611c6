"""Learned policies: a perceptron scores every UE, with weights from a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core import scorer as kernels
from agewise.readers import read_arrays
from agewise.scheduling import Policy, RoundView
from agewise.spectrum.uplink import read_only

#: What a learned policy sees of each UE: `features_of` has a column for each.
FEATURES = ("age", "need", "best SNR in dB", "staleness", "reliability", "data size")
_SHIPPED = Path(__file__).with_name("learned.npz")


class Scorer(NamedTuple):
    """A perceptron with one hidden layer, which scores UEs alike whatever their number.

    ``weights[unit, feature]`` weigh a UE's own `FEATURES`, ``context[unit, feature]`` their means
    over the UEs, ``bias[unit]`` is added, and ``output[unit]`` weighs the hidden units.
    """

    weights: NDArray[np.float64]
    context: NDArray[np.float64]
    bias: NDArray[np.float64]
    output: NDArray[np.float64]

    @classmethod
    def load(cls, path: Path) -> "Scorer":
        """Read the NPZ file that `save` wrote; ``ValueError`` says what is wrong with it."""
        _read_provenance(path)
        *arrays, names = read_arrays(path, [*cls._fields, "features"])
        if tuple(map(str, names.ravel())) != FEATURES:
            raise ValueError(
                f"{path}: its features are {', '.join(map(str, names.ravel()))}, and learned "
                f"policies see {', '.join(FEATURES)}: train it on these"
            )
        units = arrays[-1].size
        shapes = [(units, len(FEATURES))] * 2 + [(units,)] * 2
        for name, array, shape in zip(cls._fields, arrays, shapes, strict=True):
            if array.dtype != np.float64 or array.shape != shape:
                raise ValueError(
                    f"{path}: {name} must be float64 of shape {shape}, not {array.dtype} of shape "
                    f"{array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"{path}: {name} has an entry that is not a finite number")
        return cls(*(read_only(np.array(array, np.float64, order="C")) for array in arrays))

    def save(self, path: Path, provenance: str) -> None:
        """Write an NPZ file: the arrays, the names of the features, and how it was made."""
        if not provenance.strip():
            raise ValueError("provenance must say how the weights were made")
        np.savez(path, **self._asdict(), features=FEATURES, provenance=provenance)

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score each UE by its features, ``[ue, feature]``."""
        found: NDArray[np.float64] = kernels.score(features, *self)
        return found


def _read_provenance(path: Path) -> str:
    """Read how the weights of a file were made; ``ValueError`` unless it says so in a text."""
    (found,) = read_arrays(path, ["provenance"])
    if found.dtype.kind != "U" or found.ndim or not (text := str(found).strip()):
        raise ValueError(f"{path}: provenance must be a text that says how the weights were made")
    return text


def features_of(view: RoundView) -> NDArray[np.float64]:
    """Return the `FEATURES` of each UE, ``float64[ue, feature]``.

    The need is 0 for who cannot reach the threshold or is not eligible. The reliability is the
    share of the attempts that succeeded, with a success added to both. SNRs are those of the best
    subchannel with all the power, from -100 to 100 dB.
    """
    uplink = view.uplink
    need, _ = uplink.needs()
    found: NDArray[np.float64] = kernels.observe(
        view.ages, need, uplink.best_gains, uplink.power_budget, view.staleness, view.attempts,
        view.successes, view.data_sizes,
    )  # fmt: skip
    return found


@dataclass(frozen=True, kw_only=True)
class Learned(Policy):
    """Highest score of a small perceptron per subchannel needed, trained for low ages.

    The perceptron (`Scorer`) sees each UE's age, need, SNR, staleness, reliability and data size,
    and the means of these over the UEs, so that it takes any number of UEs and subchannels. Its
    weights are those of the NPZ file at ``path``, of which nothing is executed; without one those
    that the package ships, trained on the preset ``paper`` (examples/learned).
    """

    name: ClassVar[str] = "learned"
    equation: ClassVar[str] = "U_k = MLP(T_k, n_k, SNR_k, s_k, reliability_k, |D_k|, their means)"
    path: str = ""
    scorer: ClassVar[Scorer]
    provenance: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.path, str):
            raise ValueError(f"path must be the name of an NPZ file, not {self.path!r}")
        path = Path(self.path) if self.path else _SHIPPED
        object.__setattr__(self, "scorer", Scorer.load(path))
        object.__setattr__(self, "provenance", _read_provenance(path))

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Score the UEs."""
        return self.scorer.scores(features_of(view))
