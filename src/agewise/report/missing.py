"""What a results folder should hold and does not."""

from collections import Counter
from typing import TYPE_CHECKING

from agewise.experiment import Folder
from agewise.report.squares import say
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.experiment import Result

#: So many of a kind are named; more are counted.
_NAMED = 8


def missing(result: "Result") -> list[str]:
    """One sentence for each thing that is missing, damaged or foreign."""
    told = []
    finished = {(say(e.variation), e.policy, e.seed) for e in result.entries}
    absent = [
        (say(variation), str(policy))
        for variation in result.variations
        for policy in result.policies
        for seed in result.seeds
        if (say(variation), policy, seed) not in finished
    ]
    if absent:
        told.append(f"{len(absent)} of {result.expected} runs are not finished.")
        told += [
            f"{' · '.join(filter(None, where))}: {count} of {len(result.seeds)} seeds missing"
            for where, count in Counter(absent).most_common(_NAMED)
        ]
        if len(set(absent)) > _NAMED:
            told.append(f"and {len(set(absent)) - _NAMED} others")
    told += [f"Damaged: {problem}" for problem in result.damaged[:_NAMED]]
    if len(result.damaged) > _NAMED:
        told.append(f"and {len(result.damaged) - _NAMED} other damaged files")
    return told + _foreign(result)


def _foreign(result: "Result") -> list[str]:
    made = Folder(result.path).description().version
    if made == __version__:
        return []
    return [f"The results were made with agewise {made}, this page with {__version__}."]
