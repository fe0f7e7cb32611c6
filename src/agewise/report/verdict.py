"""The question that a result answers, the answer in one sentence, and what is missing."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from agewise.experiment import Entry, FailedRun, Folder, Result
from agewise.experiment.runs import variation_key
from agewise.policies import AgeBased
from agewise.records import PolicyKey
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


def verdict(result: Result, rows: list[Row], squares: SweepMap | None) -> Verdict:
    """The verdict of the rows of ``result.table()``, or of the map of a sweep."""
    if squares is not None:
        question = f"Where does a policy learn better than {squares.baseline}?"
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
        return Verdict(f"How well does {name} learn {where}?", _alone(row, name, cell.ues))
    question = f"Does {name} learn better than {baseline} {where}?"
    return Verdict(question, _pair(row, other, name, baseline))


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


def checkpoints_of(row: Row) -> list[int]:
    """The rounds at which a row has accuracies."""
    return [int(name.partition("@")[2]) for name in row if name.startswith("accuracy@")]


def _pair(row: Row, other: Row, name: str, baseline: str) -> str:
    measured = [at for at in checkpoints_of(row) if row[f"accuracy@{at}"] is not None]
    last = measured[-1]
    gain, p = row[f"gain@{last}"], row[f"p@{last}"]
    if gain is None or math.isnan(gain):
        return f"{name} and {baseline} have no finished seed in common yet."
    better = [at for at in measured if is_sure(row[f"p@{at}"]) and row[f"gain@{at}"] > 0]
    worse = [at for at in measured if is_sure(row[f"p@{at}"]) and row[f"gain@{at}"] < 0]
    few = too_few(row["seeds"])
    head = "Yes" if last in better else "No" if last in worse else not_shown(row["seeds"])
    head = f"{_sentence(few)}. After" if few else f"{_sentence(head)}: after"
    facts = filter(None, (f"{points_text(gain)} points", p_text(p)))
    text = (
        f"{head} {last} rounds {name} reaches {percent_text(row[f'accuracy@{last}'])}% and "
        f"{baseline} {percent_text(other[f'accuracy@{last}'])}% ({', '.join(facts)}; {_seeds(row)})"
    )
    earlier = [at for at in measured if at != last]
    if p is None or few or not earlier:
        return text + "."
    phrases = [
        f"{word} after {and_list(where)}"
        for word, where in (
            ("ahead", [at for at in earlier if at in better]),
            ("behind", [at for at in earlier if at in worse]),
            ("not shown to be apart", [at for at in earlier if at not in better + worse]),
        )
        if where
    ]
    return f"{text}; earlier it is {and_list(phrases)} rounds."


def _alone(row: Row, name: str, ues: int) -> str:
    last = checkpoints_of(row)[-1]
    accuracy = row[f"accuracy@{last}"]
    reached = f"having heard from {row['distinct_ues']:.0f} of {ues} phones ({_seeds(row)})."
    if accuracy is None or math.isnan(accuracy):
        return f"{name} ran {last} rounds, {reached}"
    return f"{name} reaches {percent_text(accuracy)}% after {last} rounds, {reached}"


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
