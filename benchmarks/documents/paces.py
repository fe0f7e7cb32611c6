"""Paces, staleness weights and policies at equal time: ``make study NAME=paces``.

``python -m benchmarks.documents.paces PRESET SEEDS`` runs one preset; its folders below
``runs/paces-PRESET``, one for each variant, resume. The part of docs/results.md and its picture are
written from the folders that are finished.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.age import f_alpha
from agewise.experiment import Plan, RunOptions, execute
from agewise.policies import make_policy
from agewise.random import Streams
from agewise.records import History
from agewise.scenario import Scenario
from agewise.scheduling import Policy, RoundView
from agewise.simulation import samples_of
from agewise.statistics import Contrast
from agewise.tables import Cell, Column, Table
from agewise.tables._words import and_list, judged_text, percent_text, points_text
from benchmarks.documents.pages import write_document


@dataclass(frozen=True, kw_only=True)
class AgeByStaleness(Policy):
    """The age of a UE divided by that of its update: a candidate that the study compares."""

    name: ClassVar[str] = "age/(1+s)"
    equation: ClassVar[str] = "U_k = f_½(T_k) / (1 + s_k)"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Divide the weight of the age."""
        return np.asarray(f_alpha(view.ages, 0.5) / (1.0 + view.staleness), np.float64)


ABS, MAX_PACK = "age-based", "max-pack"
_NAMED = (
    ABS, "age-based:cap=2", "age-reduction", MAX_PACK, "version-age", "whittle", "round-robin",
)  # fmt: skip
#: By what they are called.
POLICIES: Final = {
    **{name: make_policy(name) for name in _NAMED},
    AgeByStaleness.name: AgeByStaleness(),
    **{name: make_policy(name) for name in ("freshest", "random")},
}
#: Seconds of a run, and of a period: two slots, for local learning and an upload take about one.
RUN_S, PERIOD_S = 150.0, 2.0
#: Rounds that surely last as long, where no round is shorter than a slot and some computing.
_ROUNDS = 75
_FED_BUFF = {"kind": "polynomial", "exponent": 0.5, "normalised_by": "data"}
_WHOLE = {"kind": "polynomial", "exponent": 0.5, "normalised_by": "weights"}
_POWER = {"kind": "exponential", "base": 0.9, "normalised_by": "data"}
#: Pace and staleness weights, by what they are called.
SETTINGS: Final[dict[str, tuple[str, Any]]] = {
    "rounds": ("rounds", "constant"),
    "hold": ("hold", "constant"),
    "hold, FedBuff": ("hold", _FED_BUFF),
    "hold, 0.9^s": ("hold", _POWER),
    "hold, whole step": ("hold", _WHOLE),
    "restart": ("restart", "constant"),
    "restart, FedBuff": ("restart", _FED_BUFF),
    "restart, whole step": ("restart", _WHOLE),
}
FIRST, SHORT = "the usual", "periods of 1 s"
#: What is varied of computing times, steps and periods; the first has all settings, others few.
VARIANTS: Final[dict[str, dict[str, float]]] = {
    FIRST: {"sigma": 0.5, "decay": 0.0, "period_s": PERIOD_S},
    "sigma 1": {"sigma": 1.0, "decay": 0.0, "period_s": PERIOD_S},
    "a decaying step": {"sigma": 0.5, "decay": 0.05, "period_s": PERIOD_S},
    SHORT: {"sigma": 0.5, "decay": 0.0, "period_s": 1.0},
}
FEW: Final = ("rounds", "hold", "hold, FedBuff", "restart", "restart, FedBuff")
#: Those of the other variants.
VARIED: Final = ("rounds", "hold", "restart", "restart, FedBuff")


def variation(setting: str, variant: str) -> dict[str, Any]:
    """What is changed of a preset."""
    (waiting, staleness), times = SETTINGS[setting], VARIANTS[variant]
    periodic = {"kind": "periodic", "period_s": times["period_s"], "waiting": waiting}
    return {
        "pace": "rounds" if waiting == "rounds" else periodic,
        "learn.staleness": staleness,
        "learn.step_decay": times["decay"],
        "devices.computing": {
            "kind": "log-normal", "median_s": 1.0, "sigma": times["sigma"], "power_w": 1.0,
        },
        "run.rounds": _ROUNDS if waiting == "rounds" else int(RUN_S / times["period_s"]),
    }  # fmt: skip


class Size(NamedTuple):
    """How much of the study a preset gets; other variants than the first have two policies."""

    seeds: int
    policies: tuple[str, ...]
    settings: tuple[str, ...]
    variants: tuple[str, ...]


_ALL = tuple(POLICIES)
#: A run of the MLP takes as long as fifteen of the others.
PRESETS: Final = {
    "paper": Size(30, _ALL, tuple(SETTINGS), tuple(VARIANTS)),
    "one-digit": Size(30, _ALL[:8], FEW, tuple(VARIANTS)[:3]),
    "mlp-mnist": Size(10, (ABS, "age-reduction", MAX_PACK), FEW, tuple(VARIANTS)[:3]),
}


@dataclass(frozen=True, eq=False)
class PaceStudy:
    """``score[variant, setting, policy]`` by seed: the mean accuracy over the time of a run.

    ``joules``, ``staleness`` and ``unheard`` are means over runs of the same keys.
    """

    preset: str
    seeds: int
    score: Mapping[tuple[str, str, str], NDArray[np.float64]]
    joules: Mapping[tuple[str, str, str], float]
    staleness: Mapping[tuple[str, str, str], float]
    unheard: Mapping[tuple[str, str, str], float]

    @property
    def policies(self) -> list[str]:
        """The policies, in order."""
        return list(dict.fromkeys(policy for _, _, policy in self.score))

    @property
    def settings(self) -> list[str]:
        """The paces with their weights, in order."""
        return list(dict.fromkeys(setting for _, setting, _ in self.score))

    def gains(self) -> dict[tuple[str, str], Contrast]:
        """What age-based gains over max-pack by variant and pace, all of them one family."""
        own = [key[:2] for key in self.score if key[1] in VARIED and key[2] == ABS]
        made = [
            statistics.contrast(self.score[(*key, ABS)], self.score[(*key, MAX_PACK)])
            for key in own
        ]
        return dict(zip(own, statistics.correct(made), strict=True))

    def leads(self) -> dict[tuple[str, str, str], Contrast]:
        """By pace, its best policy and each other: what the best gains; all of them one family."""
        keys = [
            (setting, best, policy)
            for setting in FEW
            for best, *others in [self._ranked(setting)]
            for policy in others
        ]
        made = [
            statistics.contrast(
                self.score[FIRST, setting, best], self.score[FIRST, setting, policy]
            )
            for setting, best, policy in keys
        ]
        return dict(zip(keys, statistics.correct(made), strict=True))

    def _ranked(self, setting: str) -> list[str]:
        return sorted(
            self.policies, key=lambda policy: -float(self.score[FIRST, setting, policy].mean())
        )


def measure_paces(
    preset: str,
    seeds: int | Iterable[int] | None = None,
    out: Path | str | None = None,
    **options: Any,
) -> PaceStudy:
    """Run a preset in all paces; folders below ``runs/paces-PRESET`` by default resume."""
    size = PRESETS[preset]
    chosen = list(range(seeds or size.seeds) if seeds is None or isinstance(seeds, int) else seeds)
    folder = Path(f"runs/paces-{preset}" if out is None else out)
    runs: dict[tuple[str, str, str], list[History]] = {}
    for variant in size.variants:
        own = (size.policies, size.settings) if variant == FIRST else ((ABS, MAX_PACK), VARIED)
        base, (names, settings) = measured(preset), own
        changes = {setting: variation(setting, variant) for setting in settings}
        plan = Plan.of(base, [POLICIES[name] for name in names], chosen, changes.values())
        place = folder / variant.replace(" ", "-")
        result = execute(plan, place, replace(RunOptions.of(options), fail_fast=True))
        for setting, change in changes.items():
            for name in names:
                histories = result.histories(POLICIES[name], change)
                runs[variant, setting, name] = [histories[seed] for seed in chosen]
    starts = [first_accuracy(measured(preset), seed) for seed in chosen]
    means = {
        of: {key: float(np.mean([of(run) for run in found])) for key, found in runs.items()}
        for of in (_joules, _staleness, _unheard)
    }
    return PaceStudy(
        preset,
        len(chosen),
        {key: np.array(list(map(score, found, starts))) for key, found in runs.items()},
        means[_joules],
        means[_staleness],
        means[_unheard],
    )


def measured(preset: str) -> Scenario:
    """A preset in seconds; every model is evaluated, so that no pace is measured less often."""
    seconds = {
        "kind": "seconds",
        "slot_s": 1.0,
        "downlink": {"kind": "constant", "seconds": 0.0},
        "transmit_power_w": 0.1,
    }
    return Scenario.preset(preset).with_(
        **{"timing": seconds, "run.evaluate_every": 1, "run.objective_every": 0},
        **variation("rounds", FIRST),
    )


def first_accuracy(scenario: Scenario, seed: int) -> float:
    """Accuracy of the initial model, which all paces and policies of a seed share."""
    federation = samples_of(scenario, Streams(seed)).federation(scenario)
    return float(federation.learner.evaluate(federation.init().params).accuracy)


def score(run: History, start: float) -> float:
    """Mean accuracy over the time of a run: each model counts for as long as it is the newest."""
    times = np.cumsum(run.numbers("seconds"))
    if times[-1] < RUN_S:
        raise ValueError(f"a run lasts {times[-1]:.0f} s and must last {RUN_S:.0f}: raise _ROUNDS")
    newest = np.append(start, run.accuracy[:-1])
    return float(newest @ np.diff(np.minimum(times, RUN_S), prepend=0.0) / RUN_S)


def _joules(run: History) -> float:
    """Joules of all UEs in the time of a run."""
    return float(run.numbers("joules")[_in_time(run)].sum())


def _staleness(run: History) -> float:
    return float(np.concatenate(run.staleness[: _in_time(run).sum()]).mean())


def _unheard(run: History) -> int:
    """UEs of which nothing arrived in the time of a run."""
    heard = np.concatenate(run.received[: _in_time(run).sum()])
    return run.participation.size - np.unique(heard).size


def _in_time(run: History) -> NDArray[np.bool_]:
    """Rounds that end within the time of a run."""
    return np.asarray(np.cumsum(run.numbers("seconds")) <= RUN_S)


# ------------------------------------------------------------------------------------ documents
def paces_markdown(studies: Iterable[PaceStudy]) -> str:
    """The study as a part of docs/results.md."""
    found = list(studies)
    text = (
        f"Accuracy in percent, mean over {RUN_S:.0f} s with 95% intervals, at equal time: rounds "
        f"that wait for those scheduled, and periods of {PERIOD_S:g} s in which UEs learn in the "
        "background and hold a finished update or restart from the newest model "
        "([how](late-updates.md)). Every model counts for as long as it is the newest, the initial "
        "one too. Local learning takes 1 s in the median (log-normal, sigma 0.5) and 1 W, an "
        "upload at the rate threshold 1 s; the step is constant. Stale updates are shortened by "
        "(1+s)^-½ (FedBuff) or 0.9^s, or weighed by (1+s)^-½ beside fresher ones "
        "(whole step). The candidate age/(1+s) divides age-based's utility by 1 + s. "
        "Paired t tests: of a preset those against max-pack are one family, those against the best "
        "of a pace another (single-step max-t, below 20 seeds Bonferroni).\n"
    )
    parts = [
        "## Paces\n",
        text,
        "![Accuracy by pace, a line for each policy](images/paces.svg)\n",
    ]
    for study in found:
        lines: list[list[Cell]] = [
            [policy, *(statistics.estimate(study.score[FIRST, s, policy]) for s in study.settings)]
            for policy in study.policies
        ]
        heads = [Column(setting, ".1f", 100.0) for setting in study.settings]
        columns = [Column("policy", kind="words"), *heads]
        parts += [f"`{study.preset}`, {study.seeds} seeds:\n"]
        parts += [Table("", columns, lines).to_markdown(), _sentences(study), ""]
    missing = [f"`{name}`" for name in PRESETS if name not in {study.preset for study in found}]
    if missing:
        parts.append(f"Not measured: {and_list(missing)}.")
    return "\n".join(parts)


def _sentences(study: PaceStudy) -> str:
    """Tell what pace makes of the ranking, which policies lose least, and what restarting costs."""
    told = (_ranking(study), _best(study), _losses(study), _costs(study), *_by_period(study))
    return "\n".join(f"- {each}" for each in told)


def _ranking(study: PaceStudy) -> str:
    gains, paces = study.gains(), ("rounds", "hold", "restart, FedBuff")
    first = [gains[FIRST, name] for name in paces]
    in_rounds, held, restarted = (
        f"{points_text(gain.mean)} points ({judged_text(gain)})" for gain in first
    )
    turned = [gain.verdict for gain in first] == ["better", "worse", "better"]
    varied = "".join(
        f"; with {variant} "
        + and_list(
            points_text(gain.mean) + ("" if gain.shown else " (not shown)")
            for name in paces
            for gain in [gains[variant, name]]
        )
        for variant in dict.fromkeys(variant for variant, _ in gains)
        if variant != FIRST
    )
    others = [variant for variant in VARIANTS if (variant, "hold") not in gains]
    return (
        f"{'Holding turns the ranking over, restarting turns it back' if turned else 'Ranking'}: "
        f"age-based minus max-pack is {in_rounds} in rounds, {held} where UEs hold their updates "
        f"and {restarted} where they restart and stale updates count as in FedBuff{varied}."
        + (f" Not run: {and_list(others)}." if others else "")
    )


def _best(study: PaceStudy) -> str:
    """Name the best policy of each pace, and who is not shown to be behind it."""
    level: dict[tuple[str, str], list[str]] = {}
    for (name, best, policy), gain in study.leads().items():
        level.setdefault((name, best), []).extend([] if gain.shown else [policy])
    told = [
        f"{best} ({name}{f'; not shown behind: {and_list(others)}' if others else ''})"
        for (name, best), others in level.items()
    ]
    return f"The best policy depends on the pace: it is {and_list(told)}."


def _losses(study: PaceStudy) -> str:
    """Order the policies by their largest loss to the best of a pace."""
    losses = dict.fromkeys(study.policies, 0.0)
    for (_, _, policy), gain in study.leads().items():
        losses[policy] = max(losses[policy], gain.mean)
    alike: dict[str, list[str]] = {}
    for policy in sorted(losses, key=losses.__getitem__):
        alike.setdefault(percent_text(losses[policy]), []).append(policy)
    told = [f"{and_list(policies)} {loss}" for loss, policies in alike.items()]
    return (
        "What a policy loses to the best of these five paces, at most and in points: "
        f"{', '.join(told)}."
    )


def _costs(study: PaceStudy) -> str:
    """Tell the energy of all UEs, and who is left out."""
    spent = {name: study.joules[FIRST, name, ABS] for name in FEW}
    unheard = {policy: round(study.unheard[FIRST, "hold", policy]) for policy in study.policies}
    left = sorted((policy for policy in unheard if unheard[policy]), key=lambda x: -unheard[x])
    return (
        f"Restarting costs energy: in {RUN_S:.0f} s under age-based all UEs together spend "
        f"{spent['restart']:,.0f} J, where they spend {spent['hold']:,.0f} J holding and "
        f"{spent['rounds']:,.0f} J in rounds; what arrives is then "
        f"{study.staleness[FIRST, 'restart', ABS]:.1f} versions old in place of "
        f"{study.staleness[FIRST, 'hold', ABS]:.1f}. UEs unheard by then: in rounds "
        f"{study.unheard[FIRST, 'rounds', MAX_PACK]:.0f} under max-pack; where they hold "
        f"{and_list(f'{unheard[policy]} under {policy}' for policy in left)}."
    )


def _by_period(study: PaceStudy) -> list[str]:
    """Tell how much the length of a period decides, where it was varied."""
    gains = study.gains()
    if (SHORT, "restart") not in gains:
        return []
    lengths = [f"{VARIANTS[variant]['period_s']:g} s" for variant in (FIRST, SHORT)]
    held = [
        f"{percent_text(float(study.score[variant, 'hold', MAX_PACK].mean()))}% with "
        f"{study.unheard[variant, 'hold', MAX_PACK]:.0f} UEs unheard in periods of {length}"
        for variant, length in zip((FIRST, SHORT), lengths, strict=True)
    ]
    restarted = [
        f"{points_text(gain.mean)} ({judged_text(gain)}) in periods of {length} "
        f"({study.staleness[variant, 'restart', ABS]:.1f} versions old)"
        for variant, length in zip((FIRST, SHORT), lengths, strict=True)
        for gain in [gains[variant, "restart"]]
    ]
    why = (
        "A UE that was heard learns and uploads for more than 1 s, so that it leaves the next "
        "period of 1 s to others."
    )
    equal = "Where they restart and all updates count alike, age-based minus max-pack is"
    start = "The length of periods matters: where UEs hold, max-pack has"
    return [f"{start} {and_list(held)}. {why} {equal} {and_list(restarted)}."]


def draw_paces(studies: Iterable[PaceStudy], path: Path) -> Path:
    """A panel for each preset, a line for each policy over the settings."""
    found = list(studies)
    figure, axes = plt.subplots(
        1, len(found), figsize=(4.2 * len(found), 4.0), squeeze=False, layout="constrained"
    )
    markers = "oXsPD^v<>*"
    for panel, study in zip(axes[0], found, strict=True):
        for number, (policy, marker) in enumerate(zip(POLICIES, markers, strict=True)):
            if policy not in study.policies:
                continue
            estimates = [statistics.estimate(study.score[FIRST, s, policy]) for s in FEW]
            means = 100 * np.array([each.mean for each in estimates])
            halves = 100 * np.array([each.high - each.mean for each in estimates])
            panel.errorbar(
                np.arange(len(FEW)), means, halves, marker=marker, capsize=2, linewidth=1,
                color=f"C{number}", label=policy,
            )  # fmt: skip
        panel.set_xticks(np.arange(len(FEW)), [s.replace(", ", "\n") for s in FEW])
        panel.set_title(f"{study.preset}, {study.seeds} seeds")
        panel.set_ylabel(f"accuracy in %, mean over {RUN_S:.0f} s")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def main(words: list[str]) -> None:
    """Run what is named, all by default, and write the document's part."""
    presets = words[:1] or list(PRESETS)
    studies = [measure_paces(preset, int(words[1]) if words[1:] else None) for preset in presets]
    text = paces_markdown(studies)
    write_document(Path("runs/paces.md"), text)
    draw_paces(studies, Path("docs/images/paces.svg"))
    print(text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        raise SystemExit(str(error)) from None
