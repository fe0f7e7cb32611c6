"""Where which policy wins: the gains of a sweep laid out as a map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Measured
from agewise.report.names import short_names

if TYPE_CHECKING:
    from agewise.experiment import Result


@dataclass(frozen=True, eq=False)
class Squares:
    """``gains[policy, row, column]`` of mean accuracy over the baseline, with corrected p-values.

    NaN where a policy and the baseline have no finished seed in common.
    """

    policies: list[str]
    baseline: str
    column_name: str
    columns: list[str]
    rows: list[str]
    gains: NDArray[np.float64]
    p_values: NDArray[np.float64]

    def counts(self, policy: int) -> tuple[int, int, int, int]:
        """In how many squares a policy wins, ties, loses (5% level), and how many there are."""
        gains, sure = self.gains[policy], self.p_values[policy] < 0.05
        wins, losses = int(np.sum(sure & (gains > 0))), int(np.sum(sure & (gains < 0)))
        measured = int(np.sum(~np.isnan(gains)))
        return wins, measured - wins - losses, losses, measured

    @property
    def limit(self) -> float:
        """The largest gain or loss, at least one percentage point."""
        known = np.abs(self.gains[~np.isnan(self.gains)])
        return max(0.01, float(known.max(initial=0.0)))


def squares(result: "Result") -> Squares | None:
    """The map of a sweep over at least two variations with at least two policies, else nothing."""
    baseline = result.baseline
    if len(result.variations) < 2 or baseline is None:
        return None
    names = short_names(result.policies)
    others = [policy for policy in result.policies if policy != baseline]
    column, columns, rows = layout(result.variations)
    shape = (len(others), len(rows), len(columns))
    gains, p_values = np.full(shape, np.nan), np.full(shape, np.nan)
    for variation in result.variations:
        row, place = (
            rows.index(_rest(variation, column)),
            columns.index(variation.get(column or "")),
        )
        packed = Measured.of(result.histories(baseline, variation))
        for layer, policy in enumerate(others):
            own = Measured.of(result.histories(policy, variation))
            paired = _gain(own, packed)
            gains[layer, row, place], p_values[layer, row, place] = (
                paired.difference,
                paired.p_value,
            )
    return Squares(
        [names[str(policy)] for policy in others], names[str(baseline)], column or "",
        [_word(value) for value in columns], [say(row) for row in rows],
        gains, statistics.holm(p_values.ravel()).reshape(shape),
    )  # fmt: skip


def layout(
    variations: Sequence[Mapping[str, Any]],
) -> tuple[str | None, list[Any], list[dict[str, Any]]]:
    """The name along the columns, its values, and what each row changes besides.

    The name is the first, numbers before words, whose values make a full rectangle with the
    rest; without one every variation is a row of its own.
    """
    names = [name for name in variations[0] if all(name in varied for varied in variations)]
    for name in sorted(names, key=lambda name: isinstance(variations[0][name], str)):
        columns = _distinct([varied[name] for varied in variations])
        rows = _distinct([_rest(varied, name) for varied in variations])
        if len(columns) * len(rows) == len(variations):
            return name, columns, rows
    return None, [None], [dict(varied) for varied in variations]


def say(variation: Mapping[str, Any]) -> str:
    """A variation in words: ``partition=iid, rate_threshold=2``."""
    return ", ".join(f"{key.split('.')[-1]}={_word(value)}" for key, value in variation.items())


def _gain(own: Measured, packed: Measured) -> statistics.Paired:
    """The paired gain in accuracy, the mean over the rounds, on the seeds that both finished."""
    common = sorted(set(own.seeds) & set(packed.seeds))
    means = [
        [float(np.nanmean(one.accuracy[one.seeds.index(seed)])) for seed in common]
        for one in (own, packed)
    ]
    return statistics.paired_difference(np.array(means[0]), np.array(means[1]))


def _rest(variation: Mapping[str, Any], column: str | None) -> dict[str, Any]:
    return {key: value for key, value in variation.items() if key != column}


def _word(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _distinct(values: list[Any]) -> list[Any]:
    return [value for i, value in enumerate(values) if value not in values[:i]]
