"""The pictures of what was found: whether it learns better, and why."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from agewise import statistics
from agewise.report import numbers
from agewise.report.amounts import at_text
from agewise.report.cards import Card
from agewise.report.claims import EARLY
from agewise.report.draw.ages import age_distribution
from agewise.report.draw.comparison import class_gains, forest, trade_off
from agewise.report.draw.curves import accuracy_curves, gain_curve, over_rounds, policy_lines
from agewise.report.setting import Setting
from agewise.report.text import (
    FEWEST_SEEDS,
    is_sure,
    p_text,
    percent_text,
    points_text,
)
from agewise.report.verdict import Row, at_point, last_point


def learning(setting: Setting, rows: dict[str, Row]) -> Iterator[Card]:
    """The paired gain, all policies against the baseline, and the accuracies, over the axis."""
    baseline, gains, end = setting.baseline, setting.gains, compared_at(setting, rows)
    over = setting.over
    linked = "rounds" if over is None else ""
    if gains is not None:
        yield Card(
            "gain",
            _gain_finding(setting, rows, end),
            f"Test accuracy of {setting.rival} less that of {baseline} on the same seed"
            f"{_along(setting)}: the mean over {len(gains)} seeds{_with_interval(len(gains))}, and "
            f"a thin line for each seed.{_early(setting)}",
            lambda figure: gain_curve(
                statistics.mean_interval(gains),
                EARLY if over is None else None,
                figure.subplots(),
                runs=gains,
                over=over,
            ),
            linked=linked,
        )
    against = setting.against_baseline(end)
    if len(against) > 1:
        yield Card(
            "forest",
            _forest_finding(setting, rows, end),
            f"Gain over {baseline} {at_text(end, setting.axis)}, the paired mean with its 95% "
            "interval; stars are of the corrected tests (* p < 0.05, ** p < 0.01, *** p < 0.001).",
            lambda figure: forest(
                against,
                figure.subplots(),
                indices=setting.indices,
                p_values={name: at_point(rows[name], "p", end) for name in against},
            ),
            0.9 + 0.42 * len(against),
        )
    if all(np.isnan(setting.means[name].mean).all() for name in setting.pair):
        return  # nothing was evaluated, as in a federation whose clients keep their samples
    yield accuracy_card(setting, "accuracy", end, linked=linked)


def accuracy_card(setting: Setting, name: str, end: float, *, linked: str = "") -> Card:
    """The accuracies over the axis of the setting; what they are at its point ``end``."""
    reached = {each: float(setting.courses[each].at(end).mean()) for each in setting.pair}
    said = ", ".join(
        f"{setting.said(each)} {'unknown' if np.isnan(share) else f'{percent_text(share)}%'}"
        for each, share in reached.items()
    )
    where = at_text(end, setting.axis)
    return Card(
        name,
        f"{where[0].upper()}{where[1:]}: {said}",
        f"Test accuracy{_along(setting)}, the mean over the seeds"
        f"{_with_interval(min(len(setting.runs[each]) for each in setting.pair))}"
        f"{'; the other policies in grey' if len(setting.runs) > len(setting.pair) else ''}.",
        lambda figure: accuracy_curves(
            setting.means,
            figure.subplots(),
            runs=setting.accuracies,
            indices=setting.indices,
            highlight=setting.pair,
            over=setting.over,
        ),
        3.2,
        linked,
    )


def compared_at(setting: Setting, rows: dict[str, Row]) -> float:
    """The point of the axis at which policies are compared: the last at which the pair is known."""
    return last_point(rows[setting.rival], "accuracy" if setting.baseline is None else "gain")


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
        edge = ", ".join(f"{setting.said(name)} {_last(y):.0f}%" for name, (_, y) in lines.items())
        yield Card(
            "distance",
            f"Rounds in which a phone at the edge is heard: {edge}",
            "Share of the rounds in which an update of a phone at this distance arrived, mean over "
            "ten rings of equal width and all seeds.",
            lambda figure: policy_lines(
                lines,
                "distance from the AP (m)",
                "rounds heard (%)",
                figure.subplots(),
                markers=True,
                indices=setting.indices,
            ),
        )
    ages = {name: setting.last_ages(name) for name in setting.pair}
    most = ", ".join(
        f"{setting.said(name)} {np.percentile(each, 95):.0f}" for name, each in ages.items()
    )
    yield Card(
        "distribution",
        f"The age that 19 of 20 phones stay within: {most} rounds",
        "What share of the phones is at most as old, after the last round, over all seeds.",
        lambda figure: age_distribution(ages, figure.subplots(), indices=setting.indices),
    )
    classes = setting.class_gains()
    if classes is not None and len(classes[0].ravel()) > 2:
        yield Card(
            "classes",
            _class_finding(*classes),
            f"Each dot is a class in one seed: what {setting.rival} gains over {setting.baseline} "
            "on it at the end, over how far from the access point the phones that hold its samples "
            "are, on average.",
            lambda figure: class_gains(
                *classes, figure.subplots(), index=setting.indices[setting.rival]
            ),
        )
    diversity = {name: setting.curves[name].diversity for name in setting.pair}
    if not all(np.isnan(each).all() for each in diversity.values()):
        mean = ", ".join(
            f"{setting.said(name)} {np.nanmean(each):.2f}" for name, each in diversity.items()
        )
        yield Card(
            "diversity",
            f"How diverse the updates of a round are: {mean}",
            "Gradient diversity: 1/S for S equal updates in a round, 1 for updates at right angles "
            "to each other, more if they oppose each other.",
            lambda figure: over_rounds(
                diversity, "gradient diversity", figure.subplots(), indices=setting.indices
            ),
            linked="rounds",
        )
    if len(setting.measured) > 2:
        yield _many_or_fresh(setting)
    reached = {
        name: (each.reached, np.asarray(each.accuracy.mean))
        for name, each in setting.curves.items()
        if name in setting.pair
    }
    if all(np.isnan(y).all() for _, y in reached.values()):
        return
    heard = ", ".join(f"{setting.said(name)} {x[-1]:.0f}" for name, (x, _) in reached.items())
    yield Card(
        "reached",
        f"Distinct phones heard from at the end: {heard}",
        "Test accuracy over the number of distinct phones whose update had arrived by then, means "
        "over the seeds.",
        lambda figure: policy_lines(
            reached,
            "distinct UEs heard from",
            "test accuracy",
            figure.subplots(),
            indices=setting.indices,
        ),
    )


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
        lambda figure: trade_off(
            points,
            "updates a round",
            "mean age (rounds)",
            figure.subplots(),
            indices=setting.indices,
        ),
        3.2,
    )


def effect(setting: Setting, rows: dict[str, Row]) -> str:
    """The gain at the end with its interval and p-value, in words; nothing without a pair."""
    end = compared_at(setting, rows)
    gain = setting.against_baseline(end).get(setting.rival)
    if gain is None:
        return ""
    text = f"{points_text(gain.difference)} percentage points"
    if gain.pairs >= FEWEST_SEEDS:
        text += f" (95% interval {points_text(gain.low)} to {points_text(gain.high)}"
        text += f"; corrected {p_text(at_point(rows[setting.rival], 'p', end))})"
    return f"{text}: {setting.rival} less {setting.baseline}"


def _gain_finding(setting: Setting, rows: dict[str, Row], end: float) -> str:
    gain = setting.against_baseline(end).get(setting.rival)
    rival, baseline = (setting.said(name) for name in setting.pair)
    if gain is None:
        return f"{rival} against {baseline}"
    by = f"{points_text(gain.difference)} points {at_text(end, setting.axis)}"
    if gain.pairs < FEWEST_SEEDS:
        return f"{rival} over {baseline}: {by}, with too few seeds for a verdict"
    if not is_sure(at_point(rows[setting.rival], "p", end)):
        return f"{rival} over {baseline}: {by}, not shown to differ from 0"
    word = "ahead of" if gain.difference > 0 else "behind"
    return f"{rival} is {word} {baseline}: {by}"


def _forest_finding(setting: Setting, rows: dict[str, Row], end: float) -> str:
    against, baseline = setting.against_baseline(end), setting.said(setting.pair[-1])
    sure = [n for n in against if is_sure(at_point(rows[n], "p", end))]
    if min(gain.pairs for gain in against.values()) < FEWEST_SEEDS:
        return f"All policies against {baseline}: too few seeds for a verdict"
    better = sum(against[name].difference > 0 for name in sure)
    return (
        f"Against {baseline}, {better} of {len(against)} policies are shown to be better "
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


def _along(setting: Setting) -> str:
    """What accuracies are shown over, if not rounds."""
    axis = setting.axis
    return "" if axis.column is None else f" over {axis.what}, up to what the cheapest run spent"


def _early(setting: Setting) -> str:
    shown = setting.axis.column is None and setting.rounds > EARLY
    return f" The dotted line is the paper's round {EARLY}." if shown else ""


def _with_interval(seeds: int) -> str:
    return " with its 95% interval" if seeds >= FEWEST_SEEDS else ""


def _last(values: numbers.Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else float("nan")
