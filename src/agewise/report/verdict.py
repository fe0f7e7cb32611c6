"""The question that a result answers, and the answer in one sentence."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agewise.policies import AgeBased
from agewise.records import PolicyKey
from agewise.report.names import short_names
from agewise.report.squares import Squares

if TYPE_CHECKING:
    from agewise.experiment import Result

LEVEL = 0.05
Row = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What was asked, and what came out."""

    question: str
    answer: str


def verdict(result: "Result", rows: list[Row], drawn: Squares | None) -> Verdict:
    """The verdict of the rows of ``result.table()``, or of the map of a sweep."""
    cell = result.scenario.cell
    where = f"when {cell.ues} UEs share {cell.subchannels} subchannels"
    if drawn is not None:
        return Verdict(
            f"Where does a policy learn better than {drawn.baseline}?",
            _over_squares(drawn),
        )
    names = short_names(result.policies)
    first, second = map(str, compared(result))
    row = next((row for row in rows if row["policy"] == first), rows[0])
    other = next((row for row in rows if row["policy"] == second), None)
    name = names[row["policy"]]
    if other is None or other is row:
        return Verdict(f"How well does {name} learn {where}?", _alone(row, name, cell.ues))
    question = f"Does {name} learn better than {names[other['policy']]} {where}?"
    return Verdict(question, _pair(row, other, name, names[other["policy"]]))


def compared(result: "Result") -> tuple[PolicyKey, PolicyKey | None]:
    """The two policies that the verdict and the replay put side by side."""
    others = [policy for policy in result.policies if policy != result.baseline]
    others = others or list(result.policies)
    aged = [policy for policy in others if policy.name == AgeBased.name]
    usual = [policy for policy in aged if policy.parameters["alpha"] == AgeBased().alpha]
    return (usual or aged or others)[0], result.baseline


def points(row: Row) -> list[int]:
    """The rounds at which a row has accuracies."""
    return [int(name.split("@")[1]) for name in row if name.startswith("accuracy@")]


def chance(p: float | None) -> str:
    """A p-value in words; nothing if there was no test."""
    if p is None or math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def is_sure(row: Row, at: int) -> bool:
    """Whether the gain after so many rounds differs from zero at the 5% level."""
    p = row[f"p@{at}"]
    return p is not None and p < LEVEL


def _pair(row: Row, other: Row, name: str, baseline: str) -> str:
    measured = [at for at in points(row) if row[f"accuracy@{at}"] is not None]
    last = measured[-1]
    gain = row[f"gain@{last}"]
    if gain is None or math.isnan(gain):
        return f"{name} and {baseline} have no finished seed in common yet."
    better = [at for at in measured if is_sure(row, at) and row[f"gain@{at}"] > 0]
    worse = [at for at in measured if is_sure(row, at) and row[f"gain@{at}"] < 0]
    head = "Yes" if last in better else "No" if last in worse else "There is no sure difference"
    facts = filter(None, (f"{100 * gain:+.1f} points", chance(row[f"p@{last}"])))
    text = (
        f"{head}: after {last} rounds {name} reaches {100 * row[f'accuracy@{last}']:.1f}% and "
        f"{baseline} {100 * other[f'accuracy@{last}']:.1f}% ({', '.join(facts)}; {_seeds(row)})"
    )
    earlier = [at for at in measured if at != last]
    if row[f"p@{last}"] is None or not earlier:
        return text + "."
    said = [
        f"{word} after {_and(where)}"
        for word, where in (
            ("ahead", [at for at in earlier if at in better]),
            ("behind", [at for at in earlier if at in worse]),
            ("not surely apart", [at for at in earlier if at not in better + worse]),
        )
        if where
    ]
    return f"{text}; earlier it is {_and(said)} rounds."


def _alone(row: Row, name: str, ues: int) -> str:
    last = points(row)[-1]
    reached = f"having heard {row['distinct_ues']:.0f} of {ues} UEs ({_seeds(row)})."
    if row[f"accuracy@{last}"] is None or math.isnan(row[f"accuracy@{last}"]):
        return f"{name} ran {last} rounds, {reached}"
    return f"{name} reaches {100 * row[f'accuracy@{last}']:.1f}% after {last} rounds, {reached}"


def _over_squares(drawn: Squares) -> str:
    told = []
    for place, policy in enumerate(drawn.policies):
        wins, ties, losses, all_ = drawn.counts(place)
        told.append(f"{policy} wins in {wins}, ties in {ties} and loses in {losses} of {all_}")
    text = "; ".join(told) + " settings (5% level, corrected for all tests)"
    if np.isnan(drawn.gains).all():
        return text + "."
    layer, row, column = np.unravel_index(int(np.nanargmax(drawn.gains)), drawn.gains.shape)
    at = ", ".join(
        filter(None, (drawn.rows[row], _equals(drawn.column_name, drawn.columns[column])))
    )
    gain = 100 * drawn.gains[layer, row, column]
    return f"{text}; the largest gain is {gain:+.1f} points of {drawn.policies[layer]} at {at}."


def _equals(name: str, value: str) -> str:
    return f"{name.split('.')[-1]}={value}" if name else ""


def _seeds(row: Row) -> str:
    return "one seed, so no test" if row["seeds"] == 1 else f"{row['seeds']} seeds"


def _and(words: list[Any]) -> str:
    *most, last = map(str, words)
    return f"{', '.join(most)} and {last}" if most else last
