"""The pictures of the page: each with its finding as a title, and below it what was measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from agewise import statistics
from agewise.report import numbers
from agewise.report.claims import EARLY
from agewise.report.draw.ages import age_distribution, age_heat_map, cell_map
from agewise.report.draw.comparison import class_gains, forest, trade_off
from agewise.report.draw.curves import accuracy_curves, gain_curve, over_rounds, policy_lines
from agewise.report.draw.idea import chosen_ages, water_filling
from agewise.report.setting import Need, Setting
from agewise.report.text import (
    FEWEST_SEEDS,
    is_sure,
    p_text,
    percent_text,
    points_text,
)
from agewise.report.verdict import Row


@dataclass(frozen=True, eq=False)
class Card:
    """One picture: its name, what it shows to be so, what was measured, and how to draw it.

    ``linked`` is "rounds" if its horizontal axis counts rounds; ``kind`` is a class of the page.
    """

    name: str
    finding: str
    measured: str
    draw: Callable[[Axes], object]
    height_in: float = 2.9
    linked: str = ""
    kind: str = ""


def heat_maps(setting: Setting) -> Iterator[Card]:
    """The age of every UE over the rounds: the compared policies first."""
    names = [*setting.pair, *(name for name in setting.runs if name not in setting.pair)]
    for name in names:
        ages = setting.history(name).ages
        where = setting.distances_m(name)
        old = int(np.sum(ages[-1] >= setting.oldest))
        far = "near the access point at the bottom" if where is not None else "in their order"
        yield Card(
            f"heat-{setting.indices[name]}",
            f"{name}: {_phones(old, setting.ues)} not heard from for {setting.oldest:g} rounds",
            f"Age of every phone after each round: a row is a phone, {far}. Seed {setting.seed}.",
            lambda axis, a=ages, w=where: age_heat_map(a, w, setting.oldest, axis),  # type: ignore[misc]
            2.5,
            "rounds",
            "heat",
        )


def idea(setting: Setting) -> Iterator[Card]:
    """What one UE needs, who is chosen, and what grows stale."""
    found = setting.needs()
    t = setting.rounds // 2
    if found is not None:
        t, (low, high) = found
        yield Card(
            "needs",
            f"{_place(high)} needs {_subchannels(high)}; {_place(low, small=True)} needs "
            f"{_number(low.gain.size)}",
            f"Water-filling in round {t + 1} of seed {setting.seed}: power fills the subchannels "
            "of a phone up to one level, above the inverse of their gains (grey, high where the "
            f"channel is bad). Both reach {setting.scenario.rate_threshold:.3g} bits per use.",
            lambda axis: water_filling([(_tick(n), n.gain, n.power) for n in (low, high)], axis),
        )
    for name in setting.pair:
        choice = setting.choice(name, t)
        waited = float(choice.ages[choice.chosen].mean()) if choice.chosen.size else 0.0
        index = setting.indices[name]
        yield Card(
            f"chosen-{index}",
            f"{name} chooses phones that waited {waited:.1f} rounds",
            f"Ages at the start of round {t + 1}, the stalest phones on the left. Over each phone "
            "that uploads stands how many subchannels it takes.",
            lambda axis, c=choice, i=index: chosen_ages(  # type: ignore[misc]
                c.ages, c.chosen, c.subchannels, axis, index=i
            ),
            2.3,
        )
    unheard = {name: setting.unheard(name) for name in setting.pair}
    said = "; ".join(f"{name}: {each[-1]:.0f}" for name, each in unheard.items())
    yield Card(
        "unheard",
        f"Phones never heard from after {setting.rounds} rounds: {said}",
        f"How many of {setting.ues} phones had sent no update by then, mean over the seeds.",
        lambda axis: over_rounds(unheard, "UEs never heard from", axis, indices=setting.indices),
        linked="rounds",
    )


def cells(setting: Setting) -> Iterator[Card]:
    """The cell in the last round, for those who see the page without its script."""
    for name in setting.pair:
        history = setting.history(name)
        positions = history.info.positions_m
        if positions is None:
            continue
        choice = setting.choice(name, setting.rounds - 1)
        yield Card(
            f"cell-{setting.indices[name]}",
            f"{name} in round {setting.rounds}",
            "Phones around the access point (the triangle); those that upload are ringed.",
            lambda axis, p=positions, c=choice: cell_map(  # type: ignore[misc]
                p, c.ages, c.chosen, setting.oldest, axis
            ),
            4.4,
        )


def learning(setting: Setting, rows: dict[str, Row]) -> Iterator[Card]:
    """The paired gain over rounds, all policies against the baseline, and the accuracies."""
    baseline, gains = setting.baseline, setting.gains
    if gains is not None:
        yield Card(
            "gain",
            _gain_finding(setting, rows),
            f"Test accuracy of {setting.rival} less that of {baseline} on the same seed: the mean "
            f"over {len(gains)} seeds{_with_interval(len(gains))}, and a thin line for each seed. "
            f"The dotted line is the paper's round {EARLY}.",
            lambda axis: gain_curve(statistics.mean_interval(gains), EARLY, axis, runs=gains),
            linked="rounds",
        )
    against = setting.against_baseline()
    if len(against) > 1:
        yield Card(
            "forest",
            _forest_finding(setting, rows),
            f"Gain over {baseline} after {setting.rounds} rounds, the paired mean with its 95% "
            "interval; stars are of the corrected tests (* p < 0.05, ** p < 0.01, *** p < 0.001).",
            lambda axis: forest(
                against, axis, indices=setting.indices,
                p_values={name: rows[name][f"p@{setting.rounds}"] for name in against},
            ),  # fmt: skip
            0.9 + 0.42 * len(against),
        )
    curves = setting.curves
    ends = {name: _last(np.asarray(curves[name].accuracy.mean)) for name in setting.pair}
    said = ", ".join(f"{name} {percent_text(end)}%" for name, end in ends.items())
    yield Card(
        "accuracy",
        f"After {setting.rounds} rounds: {said}",
        "Test accuracy, the mean over the seeds"
        f"{_with_interval(min(curves[name].seeds for name in setting.pair))}"
        f"{'; the other policies in grey' if len(curves) > len(setting.pair) else ''}.",
        lambda axis: accuracy_curves(
            {name: each.accuracy for name, each in curves.items()}, axis,
            runs={name: each.runs for name, each in curves.items()},
            indices=setting.indices, highlight=setting.pair,
        ),  # fmt: skip
        3.2,
        "rounds",
    )


def why(setting: Setting) -> Iterator[Card]:
    """Near and far, ages, classes, diversity, and how many against how fresh."""
    centres_m = numbers.ring_centres_m(setting.scenario)
    served = {name: each.served for name, each in setting.curves.items()}
    if centres_m is not None and all(each is not None for each in served.values()):
        lines = {
            name: (centres_m, 100 * np.asarray(each))
            for name, each in served.items()
            if name in setting.pair
        }
        edge = "; ".join(f"{name} {_last(y):.0f}%" for name, (_, y) in lines.items())
        yield Card(
            "distance",
            f"How often a phone at the edge of the cell is heard: {edge} of the rounds",
            "Share of the rounds in which an update of a phone at this distance arrived, mean over "
            "ten rings of equal width and all seeds.",
            lambda axis: policy_lines(
                lines, "distance from the AP (m)", "rounds heard (%)", axis, markers=True,
                indices=setting.indices,
            ),  # fmt: skip
        )
    ages = {name: setting.last_ages(name) for name in setting.pair}
    most = "; ".join(f"{name} {np.percentile(each, 95):.0f}" for name, each in ages.items())
    yield Card(
        "distribution",
        f"19 of 20 phones are at most this many rounds old: {most}",
        "What share of the phones is at most as old, after the last round, over all seeds.",
        lambda axis: age_distribution(ages, axis, indices=setting.indices),
    )
    classes = setting.class_gains()
    if classes is not None and len(classes[0].ravel()) > 2:
        yield Card(
            "classes",
            _class_finding(*classes),
            f"Each dot is a class in one seed: what {setting.rival} gains over {setting.baseline} "
            "on it at the end, over how far from the access point the phones that hold its samples "
            "are, on average.",
            lambda axis: class_gains(*classes, axis, index=setting.indices[setting.rival]),
        )
    diversity = {name: setting.curves[name].diversity for name in setting.pair}
    if not all(np.isnan(each).all() for each in diversity.values()):
        mean = "; ".join(f"{name} {np.nanmean(each):.2f}" for name, each in diversity.items())
        yield Card(
            "diversity",
            f"How diverse the updates of a round are: {mean}",
            "Gradient diversity: 1/S for S equal updates in a round, 1 for updates at right angles "
            "to each other, more if they oppose each other.",
            lambda axis: over_rounds(
                diversity, "gradient diversity", axis, indices=setting.indices
            ),
            linked="rounds",
        )
    if len(setting.measured) > 2:
        yield _many_or_fresh(setting)


def _many_or_fresh(setting: Setting) -> Card:
    """How many updates arrive, and how old the others become."""
    points = {
        name: (float(each.ues_per_round.mean()), float(each.age_mean.mean()))
        for name, each in setting.measured.items()
    }
    most = max(points, key=lambda name: points[name][0])
    fresh = min(points, key=lambda name: points[name][1])
    finding = (
        f"{most} collects the most updates, {fresh} keeps them freshest"
        if most != fresh
        else f"{most} collects the most updates and keeps them freshest"
    )
    return Card(
        "trade-off",
        finding,
        "Updates that arrive in a round against the mean age over all rounds and phones; lower "
        "right would be best.",
        lambda axis: trade_off(
            points, "updates a round", "mean age (rounds)", axis, indices=setting.indices
        ),
        3.2,
    )


def effect(setting: Setting, rows: dict[str, Row]) -> str:
    """The gain at the end with its interval and p-value, in words; nothing without a pair."""
    gain = setting.against_baseline().get(setting.rival)
    if gain is None:
        return ""
    text = f"{points_text(gain.difference)} percentage points"
    if gain.pairs >= FEWEST_SEEDS:
        text += f" (95% interval {points_text(gain.low)} to {points_text(gain.high)}"
        text += f"; {p_text(rows[setting.rival][f'p@{setting.rounds}'])})"
    return text


def _gain_finding(setting: Setting, rows: dict[str, Row]) -> str:
    gain = setting.against_baseline().get(setting.rival)
    if gain is None:
        return f"{setting.rival} against {setting.baseline}"
    p = rows[setting.rival][f"p@{setting.rounds}"]
    by = f"{points_text(gain.difference)} points after {setting.rounds} rounds"
    if gain.pairs < FEWEST_SEEDS:
        return f"{setting.rival} over {setting.baseline}: {by}, with too few seeds for a verdict"
    if not is_sure(p):
        return f"{setting.rival} over {setting.baseline}: {by}, not shown to differ from 0"
    word = "ahead of" if gain.difference > 0 else "behind"
    return f"{setting.rival} is {word} {setting.baseline}: {by}"


def _forest_finding(setting: Setting, rows: dict[str, Row]) -> str:
    against = setting.against_baseline()
    sure = [n for n in against if is_sure(rows[n][f"p@{setting.rounds}"])]
    if min(gain.pairs for gain in against.values()) < FEWEST_SEEDS:
        return f"All policies against {setting.baseline}: too few seeds for a verdict"
    better = sum(against[name].difference > 0 for name in sure)
    return (
        f"Against {setting.baseline}, {better} of {len(against)} policies are shown to be better "
        f"and {len(sure) - better} worse"
    )


def _class_finding(distance_m: numbers.Numbers, gain: numbers.Numbers) -> str:
    x, y = distance_m.ravel(), gain.ravel()
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "Classes held far away against those held near"
    link = stats.pearsonr(x, y)
    word = "more" if link.statistic > 0 else "less"
    few = len(distance_m) < FEWEST_SEEDS
    if few or link.pvalue >= 0.05:
        return (
            f"Whether classes held far away gain {word} is not shown "
            f"(correlation {link.statistic:+.2f})"
        )
    return f"Classes held far away gain {word} (correlation {link.statistic:+.2f})"


def _with_interval(seeds: int) -> str:
    return " with its 95% interval" if seeds >= FEWEST_SEEDS else ""


def _phones(count: int, ues: int) -> str:
    return f"{count if count else 'no'} phone{'s' if count != 1 else ''} of {ues}"


def _number(count: int) -> str:
    return "one" if count == 1 else str(count)


def _subchannels(need: Need) -> str:
    return f"{_number(need.gain.size)} subchannel{'s' if need.gain.size > 1 else ''}"


def _place(need: Need, *, small: bool = False) -> str:
    article = "a" if small else "A"
    return f"{article} phone at {need.distance_m:.0f} m" if need.distance_m else f"Phone {need.ue}"


def _tick(need: Need) -> str:
    where = "" if need.distance_m is None else f"\n{need.distance_m:.0f} m away"
    return f"UE {need.ue}{where}"


def _last(values: numbers.Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else float("nan")
