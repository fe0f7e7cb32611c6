"""The measured settings that `agewise advise` looks up, and docs/guide.md: ``make evidence``.

Reads results folders (those of the map, the benchmark and ``--measure`` in runs/ by default) and
writes src/agewise/studies/evidence.json and docs/guide.md, whole. ``--measure 5`` first runs the
settings of the map and of the benchmark with five seeds into runs/evidence, continuing what is
there. Folders of tuning do not belong here: their seeds and parameters were chosen.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.engines import make_engine
from agewise.experiment import Plan, Result, execute
from agewise.files import NO_CHECKSUM, seal, write_whole
from agewise.policies import AgeBased, MaxPack
from agewise.records import PolicyKey
from agewise.report.text import and_list, percent_text, points_text, short_names, value_text
from agewise.scenario import Scenario
from agewise.studies import GAP_POLICIES
from agewise.studies.advice import FILE, NEAR, STEPS, Evidence, Features, features_of, learned_of
from agewise.studies.advice import Measured as Setting
from agewise.studies.benchmark_scenarios import SCENARIOS
from agewise.studies.map import LIKENESS, THRESHOLDS, map_scenario
from agewise.version import __version__

ROOT = Path(__file__).parent.parent
EVIDENCE = ROOT / "src" / "agewise" / "studies" / FILE
GUIDE = ROOT / "docs" / "guide.md"
MEASURED = Path("runs/evidence")
USUAL = (Path("runs/map-paper"), Path("runs/benchmark"), MEASURED)
AGGREGATIONS: tuple[dict[str, Any], ...] = (
    {"kind": "average"},
    {"kind": "memory", "discount": {"kind": "agreement"}},
)
#: A choice: the policy, and the aggregation in words.
Key = tuple[PolicyKey, str]


def measure(seeds: int, out: Path, workers: int | None) -> None:
    """Run the settings of the benchmark and the map, with each aggregation."""
    engine = make_engine("local", workers)
    aggregations = [{"learn.aggregation": each} for each in AGGREGATIONS]
    for name, one in SCENARIOS.items():
        plan = Plan.of(one.scenario, GAP_POLICIES, seeds, aggregations, MaxPack())
        execute(plan, out / f"benchmark-{name}", engine)
    squares = [
        {"threshold.rate": threshold, **likeness, **aggregation}
        for likeness in LIKENESS.values()
        for threshold in THRESHOLDS
        for aggregation in aggregations
    ]
    policies = [MaxPack(), AgeBased(alpha=0.0), AgeBased()]
    execute(Plan.of(map_scenario(), policies, seeds, squares, MaxPack()), out / "map", engine)


class Gathered:
    """All runs of one setting: ``scores[choice][seed]``, the mean accuracy over the rounds."""

    def __init__(self, name: str, scenario: Scenario) -> None:
        self.name, self.scenario = name, scenario
        self.scores: dict[Key, dict[int, float]] = {}

    def best(self) -> Key:
        """The choice with the highest mean."""
        return max(self.scores, key=lambda key: float(np.mean(list(self.scores[key].values()))))

    def pairs(self, key: Key, other: Key) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scores of two choices on the seeds that both have."""
        first, second = self.scores[key], self.scores[other]
        common = sorted(first.keys() & second.keys())
        return np.array([first[s] for s in common]), np.array([second[s] for s in common])


def gather(folders: Iterable[Path]) -> list[Gathered]:
    """The settings in these folders; those that differ in the aggregation alone are one."""
    found: dict[str, Gathered] = {}
    for folder in folders:
        result = Result.open(folder)
        if result.damaged:
            print(f"{folder}: {len(result.damaged)} files left out, such as {result.damaged[0]}")
        for variation in result.variations:
            scenario = result.scenario.with_(**variation)
            values = scenario.resolved()
            aggregation = value_text(values["learn"].pop("aggregation"))
            values["run"].pop("optimum")
            key = json.dumps(values, sort_keys=True)
            setting = found.setdefault(key, Gathered(_name(folder, variation), scenario))
            for policy in result.policies:
                scores = {
                    seed: float(np.nanmean(history.accuracy))
                    for seed, history in result.histories(policy, variation).items()
                }
                if scores:
                    setting.scores.setdefault((policy, aggregation), {}).update(scores)
    return [setting for setting in found.values() if len(setting.scores) > 1]


def _name(folder: Path, variation: Mapping[str, Any]) -> str:
    """The folder and what is varied but the aggregation."""
    told = [
        value_text(value) if isinstance(value, str | dict) else f"{name.split('.')[-1]} {value:g}"
        for name, value in variation.items()
        if not name.startswith("learn.aggregation")
    ]
    return f"{folder.name} ({', '.join(told)})" if told else folder.name


def described(setting: Gathered) -> dict[str, Any]:
    """The setting as it is kept in the file."""
    best, names = setting.best(), short_names(list(dict.fromkeys(key[0] for key in setting.scores)))
    rows: list[dict[str, Any]] = []
    for key, scores in setting.scores.items():
        interval = statistics.mean_interval(list(scores.values()))
        paired = statistics.paired_difference(*setting.pairs(best, key))
        rows.append(
            {
                "policy": names[key[0]],
                "aggregation": key[1],
                "seeds": len(scores),
                "score": interval.mean,
                "score_low": interval.low,
                "score_high": interval.high,
                "behind": paired.difference,
                "behind_low": paired.low,
                "behind_high": paired.high,
                "p": None if key == best else paired.p_value,
            }
        )
    corrected = statistics.holm([np.nan if row["p"] is None else row["p"] for row in rows])
    for row, p in zip(rows, corrected, strict=True):
        row["p"] = None if np.isnan(p) else float(p)
    return {
        "name": setting.name,
        "learned": learned_of(setting.scenario),
        "rounds": setting.scenario.run.rounds,
        "features": asdict(features_of(setting.scenario)),
        "choices": sorted(rows, key=lambda row: (row["p"] is not None, -row["score"])),
    }


def evidence_of(folders: Iterable[Path]) -> bytes:
    """The content of the file."""
    settings = [described(setting) for setting in gather(folders)]
    if not settings:
        raise ValueError("no folder has whole runs of two choices in one setting: run them again")
    content = {"version": __version__, "settings": _rounded(settings), "checksum": NO_CHECKSUM}
    return seal(json.dumps(content, indent=1).encode() + b"\n")


def _rounded(value: Any) -> Any:
    """Numbers with six digits: more would be noise in the file."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


# The document

_HEAD = """\
# Regimes, and what is favoured in each

`make evidence` writes this page from the file that `agewise advise SCENARIO` looks up, which \
holds {settings} measured settings of version {version} ({seeds} seeds each). *Need* is the mean \
number of subchannels that a UE within reach needs, *out of reach* the share of UEs that no \
number is enough for in a block, *load* the UEs per subchannel, *unlike* the mean distance in \
total variation of the labels of a UE from those of all data. The score is the mean accuracy over \
the rounds of a run, in % with its 95% interval. *Not surely behind* counts the other choices \
whose paired difference from the best has p ≥ 0.05, corrected (Holm) over the choices of that \
setting: where nearly all are in it, there is nothing to choose between, or too few seeds to see \
it. The best is chosen after the fact, so its lead is a little too large.

"""
_COLUMNS = (
    "setting", "need", "out of reach %", "in time %", "load", "unlike", "best", "score %",
    "ahead of max-pack with average, points", "not surely behind",
)  # fmt: skip
_TAIL = """
A scenario is near a setting if their distance is at most {near:g}, in steps of all features \
together; a step is {steps}.
"""


def guide(evidence: Evidence) -> str:
    """The page."""
    counts = sorted({choice.seeds for each in evidence.settings for choice in each.choices})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---|" + "---:|" * (len(_COLUMNS) - 1)]
    lines += [_line(each) for each in sorted(evidence.settings, key=_order)]
    steps = and_list(f"{step:g} in {name}" for name, step in STEPS.items())
    head = _HEAD.format(settings=len(evidence.settings), version=evidence.version, seeds=seeds)
    return head + "\n".join(lines) + "\n" + _TAIL.format(near=NEAR, steps=steps)


def _order(setting: Setting) -> tuple[float, float]:
    return round(setting.features.unlike, 1), setting.features.mean_need


def _line(setting: Setting) -> str:
    features: Features = setting.features
    best, *rest = setting.choices
    half = (best.score_high - best.score_low) / 2
    tied = sum(choice.ties for choice in rest)
    entries = (
        setting.name,
        f"{features.mean_need:.1f}",
        percent_text(features.unserved),
        percent_text(features.in_time),
        f"{features.ues / features.subchannels:g}",
        f"{features.unlike:.2f}",
        best.name,
        f"{percent_text(best.score)} ± {percent_text(half)}",
        _ahead(setting),
        f"{tied} of {len(rest)}",
    )
    return "| " + " | ".join(entries) + " |"


def _ahead(setting: Setting) -> str:
    """How far the best is ahead of the paper's baseline."""
    for choice in setting.choices[1:]:
        if choice.policy == "max-pack" and choice.aggregation == "average":
            low, high = points_text(choice.behind_low), points_text(choice.behind_high)
            return f"{points_text(choice.behind)} ({low} to {high})"
    return "-"


def results_folders(below: Path) -> list[Path]:
    """The results folders below this one."""
    return sorted(file.parent for file in below.rglob("experiment.json"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders that hold results folders")
    parser.add_argument("--measure", type=int, metavar="SEEDS", help="run the settings first")
    parser.add_argument("--workers", type=int, help="processes; one per core by default")
    given = parser.parse_args(arguments)
    if given.measure is not None:
        measure(given.measure, MEASURED, given.workers)
    below = given.folders or USUAL
    folders = [folder for one in below for folder in results_folders(one)]
    if not folders:
        parser.error(f"no results folder below {and_list(below)}: give --measure SEEDS")
    content = evidence_of(folders)
    for file, written in ((EVIDENCE, content), (GUIDE, None)):
        text = guide(Evidence.from_bytes(content)).encode() if written is None else written
        with write_whole(file) as temporary:
            temporary.write_bytes(text)
        print(file)


if __name__ == "__main__":
    main()
