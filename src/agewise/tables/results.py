"""Results as tables: accuracies with their gains, costs to a target, and maps of a sweep."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agewise.dependencies import pl, refuse_after_fork
from agewise.records import PolicyKey, as_pandas
from agewise.statistics import FEWEST_SEEDS, Axis, Contrast, Estimate, TimeToTarget
from agewise.tables._words import (
    amount_text,
    at_text,
    counted,
    family_text,
    head_text,
    last_part,
    not_shown,
    percent_text,
    sentence_case,
    short_text,
    starred,
    too_few,
    value_text,
    variation_text,
)
from agewise.tables.table import Cell, Column, PolicyName, Table

if TYPE_CHECKING:
    import pandas

#: What a sweep changes, and a row of flat columns: values by their dotted names.
Variation = Mapping[str, Any]
Flat = dict[str, Any]
_T = TypeVar("_T")
#: Flat columns of an accuracy and of a gain, and what they are called where they stand.
_ACCURACY = (("accuracy", "mean"), ("low", "low"), ("high", "high"))
_GAIN = (("gain", "mean"), ("gain_low", "low"), ("gain_high", "high"))
#: What is told of the costs to a target, by the names of `agewise.statistics.TimeToTarget`.
_TAKEN = ("reached", "median", "low", "high", "restricted_mean", "horizon")
#: More policies than these are sorted by what they reached.
_FEW = 5
_SERVICE = {
    "ues_per_round": Column("uploads\nper round", ".1f"),
    "distinct_ues": Column("UEs\nheard", ".1f"),
    "age_mean": Column("mean\nage", ".1f"),
    "age_mean_peak": Column("peak\nage", ".1f"),
    "age_largest": Column("largest\nage", ".1f"),
    "diversity": Column("gradient\ndiversity", ".2f"),
    "outage": Column("lost\n%", ".1f", 100.0),
}


@dataclass(frozen=True, eq=False)
class Row:
    """One policy under one variation: accuracies ``at`` points of the x axis, and means of runs.

    ``metrics`` are means over the finished seeds by the names of `agewise.experiment.RunMetrics`;
    ``None`` where no run knows one.
    """

    policy: PolicyKey
    variation: Variation
    seeds: int
    at: Mapping[float, Estimate]
    metrics: Mapping[str, float | None]
    failed: int = 0

    @property
    def gains(self) -> dict[float, Contrast]:
        """The gains over the baseline, at the points where they are known."""
        found = {at: each.gain for at, each in self.at.items()}
        return {at: gain for at, gain in found.items() if gain is not None and gain.known}

    @property
    def last(self) -> float:
        """The last point at which the gain is known, else the accuracy, else the last of all."""
        known = [at for at, each in self.at.items() if each.known]
        return max(self.gains or known or self.at)


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """What tables with a row per policy and variation share."""

    policies: Sequence[PolicyKey]
    variations: Sequence[Variation]

    @property
    def varied(self) -> list[str]:
        """The fields that a sweep varies."""
        return list(dict.fromkeys(name for variation in self.variations for name in variation))

    def to_dicts(self) -> list[Flat]:
        """The flat columns, row by row, as in JSON."""
        return []

    def to_polars(self) -> "pl.DataFrame":
        """Flat columns for the user, such as ``gain@10``; docs/columns.md says what they hold."""
        refuse_after_fork()
        frame = pl.DataFrame(self.to_dicts(), infer_schema_length=None)
        return frame.with_columns(pl.col(pl.Null).cast(pl.Float64))  # numbers that no row has

    def lay_out(
        self,
        title: str,
        columns: Sequence[Column],
        cells: Sequence[tuple[PolicyKey, Variation, Sequence[Cell]]],
        note: str = "",
    ) -> Table:
        """A table of these cells behind columns for what is varied and for the policy."""
        places = {key: place for place, key in enumerate(self.policies)}
        settings = [Column(last_part(name), kind="setting") for name in self.varied]
        rows: list[list[Cell]] = []
        for policy, variation, more in cells:
            values = [value_text(variation.get(name)) or None for name in self.varied]
            rows.append([*values, PolicyName(str(policy), places[policy]), *more])
        return Table(title, [*settings, Column("policy", kind="policy"), *columns], rows, note)


@dataclass(frozen=True, eq=False, repr=False)
class ResultTable(PolicyTable):
    """A row per variation and policy, with the gains of all policies over one baseline."""

    baseline: PolicyKey | None
    axis: Axis
    rows: Sequence[Row]
    rival: PolicyKey | None = None

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.accuracy().to_html() + self.service().to_html()

    def by_policy(self, variation: Variation) -> dict[str, Row]:
        """The rows of one variation, by the name of their policy."""
        return {str(row.policy): row for row in self.rows if row.variation == variation}

    @property
    def at(self) -> list[float]:
        """The points of the x axis at which some row has an accuracy, in rising order."""
        return sorted({at for row in self.rows for at in row.at})

    @property
    def gains(self) -> dict[tuple[int, float], Contrast]:
        """The gains over the baseline by row and point."""
        return {
            (index, at): each.gain
            for index, row in enumerate(self.rows)
            for at, each in row.at.items()
            if each.gain is not None
        }

    @property
    def primary(self) -> dict[tuple[int, float], Contrast]:
        """The gain of the rival at its last point; in a sweep those of all policies there."""
        swept = len(self.variations) > 1
        last = {
            (index, row.last)
            for index, row in enumerate(self.rows)
            if swept or row.policy == self.rival
        }
        return {place: gain for place, gain in self.gains.items() if place in last}

    @property
    def family(self) -> str:
        """What intervals and p-values of gains come from; nothing if there are none."""
        if self.baseline is None:
            return ""
        primary = self.primary
        over = f"policies and {self.axis.name}"
        heads = ["At the last point", "Before it"]
        if len(self.variations) > 1:
            over = f"policies, settings and {self.axis.name}"
        elif self.rival is not None and primary:
            where = at_text(max(at for _, at in primary), self.axis)
            heads = [f"Primary comparison, {self.rival} {where}", "All others"]
        rest = [gain for place, gain in self.gains.items() if place not in primary]
        families = [family for family in (list(primary.values()), rest) if family]
        if len(families) == 1:
            heads = ["Intervals and p-values"]
        texts = map(family_text, families, repeat(str(self.baseline)), repeat(over), heads)
        return " ".join(dict.fromkeys(texts))

    def map(self) -> "GainMap":
        """The gains at the last point, for each policy and setting of a sweep.

        ``ValueError`` unless there are at least two settings and two policies.
        """
        if len(self.variations) < 2 or self.baseline is None:
            raise ValueError("a map needs a sweep with at least two policies")
        others = [policy for policy in self.policies if policy != self.baseline]
        column_name, columns, rows = _layout(self.variations)
        places = [
            (
                rows.index(_rest(variation, column_name)),
                columns.index(variation[column_name] if column_name else None),
            )
            for variation in self.variations
        ]
        squares = {}
        for row in self.rows:
            gain = row.at[max(row.at)].gain
            if gain is not None:
                place = places[self.variations.index(row.variation)]
                squares[others.index(row.policy), *place] = gain
        ends = {max(row.at) for row in self.rows}
        return GainMap(
            policies=list(map(str, others)),
            baseline=str(self.baseline),
            row_name="setting",
            rows=[variation_text(row) for row in rows],
            column_name=column_name or "",
            columns=[value_text(value) for value in columns],
            variations=dict(zip(places, self.variations, strict=True)),
            squares=squares,
            where=at_text(ends.pop(), self.axis) if len(ends) == 1 else "after the last round",
            axis=self.axis,
        )

    def accuracy(self) -> Table:
        """Accuracies with their intervals, and the gains over the baseline with their p-values."""
        one = self._one_count
        title = f"Test accuracy over {self.axis.name} in %{one and f' ({one})'}{_spread(self.rows)}"
        if self.baseline is not None:
            title += f"; below it the gain over {self.baseline}"
        columns = [Column(head_text(at, self.axis), ".1f", 100.0) for at in self.at]
        cells = [(r.policy, r.variation, [r.at.get(at) for at in self.at]) for r in self._ordered()]
        return self.lay_out(title, columns, cells, self.family)

    def service(self) -> Table:
        """Who was served, how old updates became, and what a run cost if not in rounds."""
        lossy = any(row.metrics["outage"] for row in self.rows)
        shown = {name: each for name, each in _SERVICE.items() if lossy or name != "outage"}
        costly = self.axis.column is not None
        one = self._one_count
        columns = [
            *([] if one else [Column("seeds")]),
            *shown.values(),
            *([Column(f"{self.axis.what}\na run")] if costly else []),
        ]
        cells = []
        for row in self._ordered():
            more: list[Cell] = [] if one else [row.seeds]
            more += [row.metrics[name] for name in shown]
            if costly:
                more.append(amount_text(row.metrics["cost"] or 0.0, self.axis, 3))
            cells.append((row.policy, row.variation, more))
        title = "Who was served, and how old updates became, in rounds"
        return self.lay_out(title + (f" ({one})" if one else ""), columns, cells)

    @property
    def _one_count(self) -> str:
        """How many seeds all rows have; nothing if they differ."""
        counts = {row.seeds for row in self.rows}
        return counted(min(counts), "seed") if len(counts) == 1 else ""

    def _ordered(self) -> list[Row]:
        """The rows of each variation, by the last accuracy if there are many policies."""
        if len(self.policies) <= _FEW:
            return list(self.rows)
        last = self.at[-1]

        def place(row: Row) -> tuple[int, float]:
            reached = row.at[last].mean if last in row.at else math.nan
            low = math.inf if math.isnan(reached) else -reached
            return self.variations.index(row.variation), low

        return sorted(self.rows, key=place)

    def to_text(self, width: int = 80) -> str:
        """As on a terminal of this width."""
        return "\n".join(each.to_text(width) for each in (self.service(), self.accuracy()))

    def to_markdown(self) -> str:
        """Both tables as Markdown."""
        return "\n".join(each.to_markdown() for each in (self.service(), self.accuracy()))

    def to_latex(self) -> str:
        """Both tables for a paper, with the package booktabs."""
        return "\n".join(each.to_latex() for each in (self.service(), self.accuracy()))

    def to_pandas(self) -> "pandas.DataFrame":
        """`to_polars` for those who want pandas (``pip install 'agewise[pandas]'``)."""
        return as_pandas(self.to_polars())

    def to_csv(self) -> str:
        """The flat columns as CSV."""
        return self.to_polars().write_csv()

    def to_dicts(self) -> list[Flat]:
        """The flat columns, row by row, as in JSON."""
        return [self._flat(row) for row in self.rows]

    def _flat(self, row: Row) -> Flat:
        flat = column_entries(row.variation, self.varied)
        flat |= {"policy": str(row.policy), "seeds": row.seeds, **row.metrics}
        for at in self.at:
            each = row.at.get(at)
            gain = None if each is None else each.gain
            flat |= {f"{name}@{at:.12g}": each and getattr(each, x) for name, x in _ACCURACY}
            flat |= {f"{name}@{at:.12g}": gain and getattr(gain, x) for name, x in _GAIN}
            flat[f"p@{at:.12g}"] = None if gain is None or math.isnan(gain.p) else gain.p
        return flat | {"failed": row.failed}


@dataclass(frozen=True, eq=False)
class TargetRow:
    """The costs of one policy's runs to a target, with the horizon that all policies share."""

    policy: PolicyKey
    variation: Variation
    taken: TimeToTarget


@dataclass(frozen=True, eq=False, repr=False)
class TargetTable(PolicyTable):
    """A row per variation and policy: the cost until the accuracy was at least ``target``."""

    axis: Axis
    target: float
    rows: Sequence[TargetRow]

    def __repr__(self) -> str:
        return self.table().to_text()

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def table(self) -> Table:
        """The medians with their limits, the means, and how many runs reached the target."""
        heads = ("median", "95% interval", "mean up to horizon", "reached")
        cells = []
        for row in self.rows:
            taken = row.taken
            low, high = short_text(taken.low, 4), short_text(taken.high, 4)
            more = [
                short_text(taken.median, 4),
                low if low == high else f"{low} to {high}",
                f"{short_text(taken.restricted_mean, 4)} of {short_text(taken.horizon, 4)}",
                f"{taken.reached} of {taken.runs}",
            ]
            cells.append((row.policy, row.variation, more))
        label = sentence_case(self.axis.label)
        title = f"{label} until the accuracy is {percent_text(self.target)}%"
        return self.lay_out(title, [Column(head) for head in heads], cells)

    def to_dicts(self) -> list[Flat]:
        """The flat columns, row by row, as in JSON."""
        return [
            {
                **column_entries(row.variation, self.varied),
                "policy": str(row.policy),
                "seeds": row.taken.runs,
                **{name: getattr(row.taken, name) for name in _TAKEN},
            }
            for row in self.rows
        ]


@dataclass(frozen=True, eq=False)
class GainMap:
    """``squares[policy, row, column]``: gains in accuracy over the baseline at the last point.

    They are those of the table, one family of tests; a policy and the baseline without a finished
    seed in common have no square. ``variations[row, column]`` is the setting of a square, and
    ``where`` says at which point of the axis.
    """

    policies: Sequence[str]
    baseline: str
    row_name: str
    rows: Sequence[str]
    column_name: str
    columns: Sequence[str]
    variations: Mapping[tuple[int, int], Variation]
    squares: Mapping[tuple[int, int, int], Contrast]
    where: str
    axis: Axis

    @property
    def gains(self) -> NDArray[np.float64]:
        """``[policy, row, column]``; NaN where there is none."""
        return self._array("mean")

    @property
    def p_values(self) -> NDArray[np.float64]:
        """``[policy, row, column]``; NaN where there was no test."""
        return self._array("p")

    def _array(self, name: str) -> NDArray[np.float64]:
        made = np.full((len(self.policies), len(self.rows), len(self.columns)), math.nan)
        for place, gain in self.squares.items():
            made[place] = getattr(gain, name)
        return made

    @property
    def limit(self) -> float:
        """The largest gain or loss, at least one percentage point."""
        return max([0.01, *(abs(each.mean) for each in self.squares.values() if each.known)])

    @property
    def few(self) -> str:
        """That all squares have too few seeds for a verdict; nothing if one has enough."""
        return too_few(max((each.pairs for each in self.squares.values()), default=FEWEST_SEEDS))

    @property
    def family(self) -> str:
        """The sentence on the tests behind the p-values."""
        if self.few:
            return f"{sentence_case(self.few)}."
        return family_text(self.squares.values(), self.baseline, "squares of all maps")

    def counts(self, policy: int | None = None) -> tuple[int, int, int]:
        """In how many squares a policy, or any, is shown to win, neither, and to lose."""
        found = [each.verdict for each in self._of(policy) if each.known]
        wins, losses = found.count("better"), found.count("worse")
        return wins, len(found) - wins - losses, losses

    def summary(self, name: str, what: str, policy: int | None = None) -> str:
        """In how many squares a policy, or any of them, was shown to win and to lose."""
        seeds = max((each.pairs for each in self._of(policy)), default=0)
        if too_few(seeds):
            return f"With {counted(seeds, 'seed')} no verdict on {name}"
        wins, neither, losses = self.counts(policy)
        text = f"{name} wins in {wins} and loses in {losses} of {wins + neither + losses} {what}"
        return f"{text}; in {neither} a difference is {not_shown(seeds)}" if neither else text

    def to_json(self) -> Flat:
        """All squares and what they add up to, for machines."""
        told = {n: getattr(self, n) for n in ("policies", "rows", "columns", "family", "where")}
        told |= {"gains": self.gains.tolist(), "p_values": self.p_values.tolist()}
        told |= zip(("wins", "not_shown", "losses"), self.counts(), strict=True)
        return told | {"over": self.axis.name}

    def _of(self, policy: int | None) -> list[Contrast]:
        return [each for place, each in self.squares.items() if policy in (None, place[0])]

    def table(self, policy: int) -> Table:
        """The gains of one policy with stars."""
        along = f"{last_part(self.column_name)} = " if self.column_name else ""
        columns = [Column(f"{along}{value}") for value in self.columns]
        rows: list[list[Cell]] = [
            [name, *(starred(self.squares.get((policy, y, x))) for x in range(len(columns)))]
            for y, name in enumerate(self.rows)
        ]
        title = f"{self.policies[policy]} minus {self.baseline} {self.where}, percentage points"
        return Table(title, [Column(self.row_name, kind="words"), *columns], rows)


def column_entries(variation: Variation, names: Sequence[str]) -> Flat:
    """What a variation changes as entries of a table: sections of a scenario become text.

    >>> rate = {"kind": "rate", "rate": 2.0}
    >>> column_entries({"run.rounds": 5, "threshold": rate}, ["run.rounds", "threshold"])
    {'run.rounds': 5, 'threshold': 'rate(rate=2)'}
    """
    values = {name: variation.get(name) for name in names}
    return {n: value_text(x) if isinstance(x, Mapping) else x for n, x in values.items()}


def _spread(rows: Sequence[Row]) -> str:
    """What stands beside the means: their intervals, or each of few seeds."""
    counts = [row.seeds for row in rows]
    few = "that of each seed" if any(1 < count < FEWEST_SEEDS for count in counts) else ""
    many = "its 95% interval" if any(count >= FEWEST_SEEDS for count in counts) else ""
    said = " or ".join(filter(None, (many, few)))
    return f", with {said}" if said else ""


def _layout(variations: Sequence[Variation]) -> tuple[str | None, list[object], list[Variation]]:
    """The name along the columns, its values, and what each row changes besides.

    The name is the first, numbers before words, whose values make a full rectangle with the
    rest; without one every variation is a row by itself.
    """
    names = [name for name in variations[0] if all(name in varied for varied in variations)]
    for name in sorted(names, key=lambda name: not isinstance(variations[0][name], int | float)):
        columns = _distinct([varied[name] for varied in variations])
        rows = _distinct([_rest(varied, name) for varied in variations])
        if len(columns) * len(rows) == len(variations):
            return name, columns, rows
    return None, [None], list(variations)


def _rest(variation: Variation, column: str | None) -> Variation:
    return {name: value for name, value in variation.items() if name != column}


def _distinct(values: list[_T]) -> list[_T]:
    return [value for i, value in enumerate(values) if value not in values[:i]]
