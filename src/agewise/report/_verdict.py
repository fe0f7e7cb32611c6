"""What a result says in a headline and in a sentence, and what is missing."""

from collections import Counter
from typing import NamedTuple

from agewise.experiment import Entry, FailedRun, Folder, Result
from agewise.experiment.plan import variation_key
from agewise.records import PolicyKey
from agewise.statistics import Axis, Contrast
from agewise.tables import GainMap, ResultTable, Row
from agewise.tables._words import (
    amount_text,
    and_list,
    at_text,
    counted,
    judged_text,
    last_part,
    limits_text,
    not_shown,
    percent_text,
    points_text,
    sentence_case,
    too_few,
    variation_text,
)
from agewise.version import __version__

#: The most of a kind that are named; more are counted.
_NAMED = 8


class Answer(NamedTuple):
    """What came out: a headline, what more there is to say of a sweep, and all in one sentence."""

    headline: str
    detail: str
    answer: str


def verdict(result: Result, table: ResultTable) -> Answer:
    """What the table of a result says, or the map of a sweep."""
    axis = table.axis
    if len(result.variations) > 1 and result.baseline is not None:
        return _over_squares(table.map())
    by_policy, pair = {row.policy: row for row in table.rows}, result.compared
    row = by_policy.get(pair[0], table.rows[0])
    other = by_policy.get(pair[-1], row)
    name, baseline = (display_name(each.policy, result) for each in (row, other))
    if other is row:
        answer = _alone(row, name, result.scenario.cell.ues, axis)
        return Answer(answer.partition(",")[0].partition(";")[0], "", answer)
    return Answer(
        _headline(row, name, baseline, axis), "", _pair(row, other, (name, baseline), axis)
    )


def _headline(row: Row, name: str, baseline: str, axis: Axis) -> str:
    """What the gate of verdicts says of the last point, with the gain there."""
    equal = "" if axis.column is None else f" {axis.equal}"
    if not row.gains:
        return f"{name} and {baseline} cannot be compared{equal}"
    last = max(row.gains)
    gain = row.gains[last]
    heads = {
        "better": f"{name} learns better than {baseline}{equal}",
        "worse": f"{name} learns worse than {baseline}{equal}",
        "not shown": f"No difference between {name} and {baseline}{equal} is shown with "
        f"{counted(gain.pairs, 'seed')}",
        "too few seeds": f"With {counted(gain.pairs, 'seed')} no verdict",
    }
    return f"{heads[gain.verdict]}: {points_text(gain.mean)} points {at_text(last, axis)}"


def display_name(policy: PolicyKey, result: Result) -> str:
    """A policy in a title or a sentence: its bare name, if it is the only one of that name."""
    alone = [each.name for each in result.policies].count(policy.name) == 1
    return policy.name if alone else str(policy)


def _pair(row: Row, other: Row, names: tuple[str, str], axis: Axis) -> str:
    name, baseline = names
    gains = row.gains
    if not gains:
        last = max(row.at)
        if row.at[last].gain is None or axis.column is None:
            return (
                f"There is no seed in which the accuracies of both {name} and {baseline} are known."
            )
        return f"Some runs of {name} or {baseline} were not measured {at_text(last, axis)}."
    last = max(gains)
    gain, where = gains[last], at_text(last, axis)
    few = too_few(gain.pairs)
    heads = {"better": "Yes", "worse": "No", "not shown": sentence_case(not_shown(gain.pairs))}
    head = heads.get(gain.verdict)
    head = f"{sentence_case(few)}. {sentence_case(where)}" if head is None else f"{head}: {where}"
    text = (
        f"{head} {name} reaches {_percent(row, last)} and {baseline} {_percent(other, last)} "
        f"({_effect_text(gain)}; {_seeds(row)})"
    )
    earlier = [at for at in gains if at != last]
    if few or not earlier:
        return text + "."
    phrases = []
    for found, word in (("better", "ahead"), ("worse", "behind"), ("not shown", "")):
        points = [at for at in earlier if gains[at].verdict == found]
        where = _points_list(points, axis)
        if points:
            phrases.append(f"it is {word} {where}" if word else f"no difference is shown {where}")
    return f"{text}; earlier, {and_list(phrases)}."


def _effect_text(gain: Contrast) -> str:
    """A gain in points with its interval and p-value; with few seeds that of each."""
    few = gain.verdict == "too few seeds"
    limits = limits_text(gain)
    said = f"{'each seed' if few else '95% interval'} {limits}" if limits else ""
    return ", ".join(filter(None, (f"{points_text(gain.mean)} points", said, judged_text(gain))))


def _points_list(points: list[float], axis: Axis) -> str:
    if axis.column is None:
        rounds = "round" if points == [1] else "rounds"
        return f"after {and_list(f'{point:g}' for point in points)} {rounds}"
    word = at_text(0.0, axis).partition(" ")[0]
    return f"{word} {and_list(amount_text(point, axis) for point in points)}"


def _percent(row: Row, at: float) -> str:
    reached = row.at.get(at)
    if reached is None or not reached.known:
        return "an unknown accuracy"
    return f"{percent_text(reached.mean)}%"


def _alone(row: Row, name: str, ues: int, axis: Axis) -> str:
    last = row.last
    heard = f"{row.metrics['distinct_ues']:.0f} of {ues} phones ({_seeds(row)})"
    text = f"{name} reaches {_percent(row, last)} {at_text(last, axis)}"
    if axis.column is not None:
        return f"{text}; a whole run hears from {heard}."
    if not row.at[last].known:
        text = f"{name} ran {amount_text(last, axis)}"
    return f"{text}, having heard from {heard}."


def _over_squares(squares: GainMap) -> Answer:
    first, *others = (
        squares.summary(policy, "settings", layer) for layer, policy in enumerate(squares.policies)
    )
    shown = {place: each.mean for place, each in squares.squares.items() if each.shown}
    if shown:
        layer, row, column = max(shown, key=lambda place: abs(shown[place]))
        along = f"{last_part(squares.column_name)}={squares.columns[column]}"
        at = filter(None, (squares.rows[row], along if squares.column_name else ""))
        others.append(
            f"the largest difference is {points_text(shown[layer, row, column])} points of "
            f"{squares.policies[layer]} at {', '.join(at)} (5% level, all squares together)"
        )
    detail = f"{sentence_case('; '.join(others))}." if others else ""
    return Answer(first, detail, f"{'; '.join([first, *others])}.")


def _seeds(row: Row) -> str:
    return "one seed, so no test" if row.seeds == 1 else counted(row.seeds, "seed")


def missing(result: Result) -> list[str]:
    """One sentence for each thing that is missing, damaged or foreign."""
    found = [*_unfinished(result), *failed_runs(result)]
    found += _first_of([f"Damaged: {each}" for each in result.damaged], "other damaged files")
    if (made := Folder(result.path).description().version) != __version__:
        found.append(f"The results were made with agewise {made}, this page with {__version__}.")
    return found


def _first_of(lines: list[str], others: str) -> list[str]:
    """The first of many lines, and how many others there are."""
    more = [f"and {len(lines) - _NAMED} {others}"] if len(lines) > _NAMED else []
    return lines[:_NAMED] + more


def failed_runs(result: Result) -> list[str]:
    """How many runs failed, and why the first of them did."""
    if not result.failed:
        return []
    count = f"{len(result.failed)} of {counted(result.expected, 'run')} failed"
    lines = [f"failed: {each}" for each in result.failed]
    return [f"{count}; the same command tries them again:", *_first_of(lines, "others that failed")]


def _unfinished(result: Result) -> list[str]:
    tried: list[Entry | FailedRun] = [*result.entries, *result.failed]
    finished = Counter((variation_key(one.variation), one.policy) for one in tried)
    absent = Counter(
        {
            (variation_text(variation), str(policy)): len(result.seeds) - count
            for variation in result.variations
            for policy in result.policies
            if (count := finished[variation_key(variation), policy]) < len(result.seeds)
        }
    )
    if not absent:
        return []
    seeds = counted(len(result.seeds), "seed")
    lines = [
        f"{' · '.join(filter(None, where))}: {count} of {seeds} missing"
        for where, count in absent.most_common()
    ]
    are = "is" if absent.total() == 1 else "are"
    head = f"{absent.total()} of {counted(result.expected, 'run')} {are} not finished."
    return [head, *_first_of(lines, "others")]
