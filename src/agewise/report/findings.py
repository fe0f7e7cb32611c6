"""The pictures of what was found: whether it learns better, and why."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from agewise import statistics
from agewise.report import numbers
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
from agewise.report.verdict import Row


def learning(setting: Setting, rows: dict[str, Row]) -> Iterator[Card]:
    """The paired gain over rounds, all policies against the baseline, and the accuracies."""
    baseline, gains = setting.baseline, setting.gains
    if gains is not None:
        yield Card(
            "gain",
            _gain_finding(setting, rows),
            f"Test accuracy of {setting.rival} less that of {baseline} on the same seed: the mean "
            f"over {len(gains)} seeds{_with_interval(len(gains))}, and a thin line for each seed."
            f"{_early(setting.rounds)}",
            lambda figure: gain_curve(
                statistics.mean_interval(gains), EARLY, figure.subplots(), runs=gains
            ),
            linked="rounds",
        )
    against = setting.against_baseline()
    if len(against) > 1:
        yield Card(
            "forest",
            _forest_finding(setting, rows),
            f"Gain over {baseline} after {setting.rounds} rounds, the paired mean with its 95% "
            "interval; stars are of the corrected tests (* p < 0.05, ** p < 0.01, *** p < 0.001).",
            lambda figure: forest(
                against,
                figure.subplots(),
                indices=setting.indices,
                p_values={name: rows[name][f"p@{setting.rounds}"] for name in against},
            ),
            0.9 + 0.42 * len(against),
        )
    curves = setting.curves
    if all(np.isnan(curves[name].accuracy.mean).all() for name in setting.pair):
        return  # nothing was evaluated, as in a federation whose clients keep their samples
    ends = {name: _last(np.asarray(curves[name].accuracy.mean)) for name in setting.pair}
    said = ", ".join(
        f"{setting.said(name)} {'not measured' if np.isnan(end) else f'{percent_text(end)}%'}"
        for name, end in ends.items()
    )
    yield Card(
        "accuracy",
        f"After {setting.rounds} rounds: {said}",
        "Test accuracy, the mean over the seeds"
        f"{_with_interval(min(curves[name].seeds for name in setting.pair))}"
        f"{'; the other policies in grey' if len(curves) > len(setting.pair) else ''}.",
        lambda figure: accuracy_curves(
            {name: each.accuracy for name, each in curves.items()},
            figure.subplots(),
            runs={name: each.runs for name, each in curves.items()},
            indices=setting.indices,
            highlight=setting.pair,
        ),
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
    if setting.scenario.timing.kind == "seconds":
        yield from (_over_cost(setting, statistics.AXES[name]) for name in ("seconds", "joules"))
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


def _over_cost(setting: Setting, axis: statistics.Axis) -> Card:
    """The accuracy of the compared policies over what rounds cost."""
    points, every = setting.over(axis)
    runs = {name: every[name] for name in setting.pair}
    curves = {name: statistics.mean_interval(each) for name, each in runs.items()}
    ends = ", ".join(
        f"{setting.said(name)} {percent_text(_last(np.asarray(curve.mean)))}%"
        for name, curve in curves.items()
    )
    return Card(
        f"over-{axis.name}",
        f"After {points[-1]:.3g} {axis.unit}: {ends}",
        f"Test accuracy over {axis.label}, up to what the cheapest run spent; mean over the seeds"
        f"{_with_interval(min(len(each) for each in runs.values()))}.",
        lambda figure: accuracy_curves(
            curves,
            figure.subplots(),
            runs=runs,
            indices=setting.indices,
            over=(axis.label, points),
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
    gain = setting.against_baseline().get(setting.rival)
    if gain is None:
        return ""
    text = f"{points_text(gain.difference)} percentage points"
    if gain.pairs >= FEWEST_SEEDS:
        text += f" (95% interval {points_text(gain.low)} to {points_text(gain.high)}"
        text += f"; corrected {p_text(rows[setting.rival][f'p@{setting.rounds}'])})"
    return f"{text}: {setting.rival} less {setting.baseline}"


def _gain_finding(setting: Setting, rows: dict[str, Row]) -> str:
    gain = setting.against_baseline().get(setting.rival)
    rival, baseline = (setting.said(name) for name in setting.pair)
    if gain is None:
        return f"{rival} against {baseline}"
    p = rows[setting.rival][f"p@{setting.rounds}"]
    by = f"{points_text(gain.difference)} points after {setting.rounds} rounds"
    if gain.pairs < FEWEST_SEEDS:
        return f"{rival} over {baseline}: {by}, with too few seeds for a verdict"
    if not is_sure(p):
        return f"{rival} over {baseline}: {by}, not shown to differ from 0"
    word = "ahead of" if gain.difference > 0 else "behind"
    return f"{rival} is {word} {baseline}: {by}"


def _forest_finding(setting: Setting, rows: dict[str, Row]) -> str:
    against, baseline = setting.against_baseline(), setting.said(setting.pair[-1])
    sure = [n for n in against if is_sure(rows[n][f"p@{setting.rounds}"])]
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


def _early(rounds: int) -> str:
    return f" The dotted line is the paper's round {EARLY}." if rounds > EARLY else ""


def _with_interval(seeds: int) -> str:
    return " with its 95% interval" if seeds >= FEWEST_SEEDS else ""


def _last(values: numbers.Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else float("nan")
