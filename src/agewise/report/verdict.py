"""The question that a result answers, the answer in one sentence, and what is missing."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from agewise import statistics
from agewise.experiment import Entry, FailedRun, Folder, Result, point_name
from agewise.experiment.plan import variation_key
from agewise.policies import AgeBased
from agewise.records import PolicyKey
from agewise.report.amounts import amount_text, at_text
from agewise.report.numbers import SweepMap
from agewise.report.text import (
    and_list,
    is_sure,
    last_part,
    not_shown,
    p_text,
    percent_text,
    points_text,
    short_names,
    squares_text,
    too_few,
    variation_text,
)
from agewise.version import __version__

#: A row of ``Result.table()``.
Row = dict[str, Any]
#: The most of a kind that are named; more are counted.
_NAMED = 8


@dataclass(frozen=True)
class Verdict:
    """What was asked, and what came out."""

    question: str
    answer: str


def verdict(
    result: Result,
    rows: list[Row],
    squares: SweepMap | None,
    axis: statistics.Axis = statistics.AXES["rounds"],
) -> Verdict:
    """The verdict of the rows of ``result.table(axis)``, or of the map of a sweep."""
    equal = "" if axis.column is None else f" {axis.equal}"
    if squares is not None:
        question = f"Where does a policy learn better than {squares.baseline}{equal}?"
        return Verdict(question, _over_squares(squares))
    cell = result.scenario.cell
    where = f"when {cell.ues} phones share {cell.subchannels} subchannels"
    by_policy = {row["policy"]: row for row in rows}
    both = compared(result)
    pair = [str(policy) for policy in both]
    names = {str(policy): name for policy, name in short_names(result.policies).items()}
    if len({policy.name for policy in both}) == len(both):  # the bare names tell them apart
        names |= {str(policy): policy.name for policy in both}
    row = by_policy.get(pair[0], rows[0])
    other = by_policy.get(pair[-1], row)
    name, baseline = names[row["policy"]], names[other["policy"]]
    if other is row:
        return Verdict(f"How well does {name} learn {where}?", _alone(row, name, cell.ues, axis))
    question = f"Does {name} learn better than {baseline}{equal} {where}?"
    return Verdict(question, _pair(row, other, (name, baseline), axis))


def compared(result: Result) -> list[PolicyKey]:
    """The policies that the verdict and the replay put side by side: a rival and the baseline.

    The rival is age-based, the one with the parameters nearest to the default if there are
    several, else the first policy that is not the baseline.
    """
    others = [policy for policy in result.policies if policy != result.baseline]
    others = others or list(result.policies)
    usual = AgeBased().key
    aged = [policy for policy in others if policy.name == usual.name]
    rival = min(aged, key=lambda policy: _differences(policy, usual)) if aged else others[0]
    return list(dict.fromkeys(filter(None, (rival, result.baseline))))


def _differences(policy: PolicyKey, other: PolicyKey) -> int:
    """How many parameters of two policies of one name differ."""
    return len(set(policy.parameters.items()) ^ set(other.parameters.items()))


def checkpoints_of(row: Row) -> list[float]:
    """The points (rounds, seconds, joules, ...) at which a row has accuracies, in its order."""
    return [float(name.partition("@")[2]) for name in row if name.startswith("accuracy@")]


def at_point(row: Row, name: str, point: float) -> float | None:
    """The number ``name@point`` of a row; ``None`` if there is none, or it is not known."""
    value = row.get(f"{name}@{point_name(point)}")
    return None if value is None or math.isnan(value) else float(value)


def known_gains(row: Row) -> dict[float, float]:
    """The gain over the baseline at every point where it is known."""
    points = [float(name.partition("@")[2]) for name in row if name.startswith("gain@")]
    found = {point: at_point(row, "gain", point) for point in points}
    return {point: gain for point, gain in found.items() if gain is not None}


def last_point(row: Row, name: str = "accuracy") -> float:
    """The last point at which this number of a row is known, else the last of all."""
    points = checkpoints_of(row)
    return max((at for at in points if at_point(row, name, at) is not None), default=points[-1])


def _pair(row: Row, other: Row, names: tuple[str, str], axis: statistics.Axis) -> str:
    name, baseline = names
    known = known_gains(row)
    if not known:
        return _no_gain(row, names, axis)
    last, few = max(known), too_few(row["seeds"])
    p_values = {at: at_point(row, "p", at) for at in known}
    better = [at for at in known if is_sure(p_values[at]) and known[at] > 0]
    worse = [at for at in known if is_sure(p_values[at]) and known[at] < 0]
    head = "Yes" if last in better else "No" if last in worse else not_shown(row["seeds"])
    where = at_text(last, axis)
    head = f"{_sentence(few)}. {_sentence(where)}" if few else f"{_sentence(head)}: {where}"
    facts = filter(None, (f"{points_text(known[last])} points", p_text(p_values[last])))
    reached, others = (at_point(each, "accuracy", last) for each in (row, other))
    text = (
        f"{head} {name} reaches {_percent(reached)} and {baseline} {_percent(others)} "
        f"({', '.join(facts)}; {_seeds(row)})"
    )
    earlier = [at for at in known if at != last]
    if p_values[last] is None or few or not earlier:
        return text + "."
    phrases = [
        f"{word} {_points_list(points, axis)}"
        for word, points in (
            ("ahead", [at for at in earlier if at in better]),
            ("behind", [at for at in earlier if at in worse]),
            ("not shown to be apart", [at for at in earlier if at not in better + worse]),
        )
        if points
    ]
    return f"{text}; earlier it is {and_list(phrases)}{' rounds' if axis.column is None else ''}."


def _no_gain(row: Row, names: tuple[str, str], axis: statistics.Axis) -> str:
    """Why two policies cannot be compared."""
    name, baseline = names
    points = checkpoints_of(row)
    if row[f"gain@{point_name(points[-1])}"] is None or axis.column is None:
        return f"There is no seed in which the accuracies of both {name} and {baseline} are known."
    return f"Some runs of {name} or {baseline} were not measured {at_text(points[-1], axis)}."


def _points_list(points: list[float], axis: statistics.Axis) -> str:
    """Points in a sentence that ends in "rounds" if that is what they are."""
    if axis.column is None:
        return f"after {and_list(f'{point:g}' for point in points)}"
    word = at_text(points[0], axis).partition(" ")[0]
    return f"{word} {and_list(amount_text(point, axis) for point in points)}"


def _percent(share: float | None) -> str:
    return "an unknown accuracy" if share is None else f"{percent_text(share)}%"


def _alone(row: Row, name: str, ues: int, axis: statistics.Axis) -> str:
    last = last_point(row)
    accuracy = at_point(row, "accuracy", last)
    heard = f"{row['distinct_ues']:.0f} of {ues} phones ({_seeds(row)})"
    text = f"{name} reaches {_percent(accuracy)} {at_text(last, axis)}"
    if axis.column is not None:
        return f"{text}; a whole run hears from {heard}."
    if accuracy is None:
        text = f"{name} ran {amount_text(last, axis)}"
    return f"{text}, having heard from {heard}."


def _over_squares(squares: SweepMap) -> str:
    seeds = int(squares.pairs.max(initial=0))
    text = "; ".join(
        squares_text(policy, squares.counts(index), "settings", seeds)
        for index, policy in enumerate(squares.policies)
    )
    text += "" if too_few(seeds) else " (5% level, corrected for all squares together)"
    if np.isnan(squares.gains).all():
        return text + "."
    best = np.unravel_index(int(np.nanargmax(squares.gains)), squares.gains.shape)
    layer, row, column = map(int, best)
    at = filter(None, (squares.rows[row], _equals(squares.column_name, squares.columns[column])))
    gain = points_text(squares.gains[layer, row, column])
    return (
        f"{text}; the largest gain is {gain} points of {squares.policies[layer]} at "
        f"{', '.join(at)}."
    )


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _equals(name: str, value: str) -> str:
    return f"{last_part(name)}={value}" if name else ""


def _seeds(row: Row) -> str:
    return "one seed, so no test" if row["seeds"] == 1 else f"{row['seeds']} seeds"


def missing(result: Result) -> list[str]:
    """One sentence for each thing that is missing, damaged or foreign."""
    return [*_unfinished(result), *failed(result), *_damaged(result), *_foreign(result)]


def failed(result: Result) -> list[str]:
    """How many runs failed, and why the first of them did."""
    if not result.failed:
        return []
    count = len(result.failed)
    lines = [f"{count} of {result.expected} runs failed; the same command tries them again:"]
    lines += [f"failed: {each}" for each in result.failed[:_NAMED]]
    return lines + ([f"and {count - _NAMED} others that failed"] if count > _NAMED else [])


def _unfinished(result: Result) -> list[str]:
    names = short_names(result.policies)
    tried: list[Entry | FailedRun] = [*result.entries, *result.failed]
    finished = Counter((variation_key(one.variation), one.policy) for one in tried)
    absent = Counter(
        {
            (variation_text(variation), names[policy]): len(result.seeds) - count
            for variation in result.variations
            for policy in result.policies
            if (count := finished[variation_key(variation), policy]) < len(result.seeds)
        }
    )
    if not absent:
        return []
    lines = [f"{absent.total()} of {result.expected} runs are not finished."]
    lines += [
        f"{' · '.join(filter(None, where))}: {count} of {len(result.seeds)} seeds missing"
        for where, count in absent.most_common(_NAMED)
    ]
    return lines + ([f"and {len(absent) - _NAMED} others"] if len(absent) > _NAMED else [])


def _damaged(result: Result) -> list[str]:
    lines = [f"Damaged: {problem}" for problem in result.damaged[:_NAMED]]
    if len(result.damaged) > _NAMED:
        lines.append(f"and {len(result.damaged) - _NAMED} other damaged files")
    return lines


def _foreign(result: Result) -> list[str]:
    made = Folder(result.path).description().version
    if made == __version__:
        return []
    return [f"The results were made with agewise {made}, this page with {__version__}."]
