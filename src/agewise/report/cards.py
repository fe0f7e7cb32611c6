"""The pictures of the page: each with its finding as a title, and below it what was measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from agewise.age import Form
from agewise.report.draw.ages import age_heat_map, cell_map
from agewise.report.draw.curves import over_rounds
from agewise.report.draw.idea import offered_gains, ranked_scores, water_filling
from agewise.report.setting import Need, Ranking, Setting
from agewise.report.style import CARD_IN

#: The pictures beside the answer are wider than the others.
_HERO_IN = 5.2


@dataclass(frozen=True, eq=False)
class Card:
    """One picture: its name, what it shows to be so, what was measured, and how to draw it.

    ``linked`` is "rounds" if its horizontal axis counts rounds; ``kind`` is a class of the page.
    """

    name: str
    finding: str
    measured: str
    draw: Callable[[Figure], object]
    height_in: float = 2.9
    linked: str = ""
    kind: str = ""
    width_in: float = CARD_IN


def heat_maps(setting: Setting) -> Iterator[Card]:
    """The age of every UE over the rounds: the compared policies first."""
    for name in [*setting.pair, *(name for name in setting.runs if name not in setting.pair)]:
        ages, where = setting.history(name).ages, setting.distances_m(name)
        old = int(np.sum(ages[-1] >= setting.oldest))
        order = "near the access point at the bottom" if where is not None else "in their order"
        yield Card(
            f"heat-{setting.indices[name]}",
            f"{setting.said(name)} leaves {_phones(old, setting.ues)} unheard for "
            f"{setting.oldest:g} rounds",
            f"Age of every phone after each round of seed {setting.seed}: a row is a phone, "
            f"{order}.",
            partial(_on_axis, age_heat_map, ages, where, setting.oldest),
            2.6,
            "rounds",
            "heat",
            _HERO_IN,
        )


def idea(setting: Setting) -> Iterator[Card]:
    """What one UE needs, who is chosen, and what grows stale."""
    found = setting.needs()
    if found is not None:
        t, (low, high) = found
        ues = [(_tick(need), need.gain, need.power) for need in (low, high)]
        yield Card(
            "needs",
            f"{_place(high)} needs {_subchannels(high)}, {_place(low).lower()} "
            f"{_number(low.gain.size)}",
            f"Water-filling in round {t + 1} of seed {setting.seed}: power fills the subchannels "
            "of a phone up to one level, above the inverse of their gains (grey, high where the "
            f"channel is bad). A phone must reach {setting.scenario.rate_threshold:.3g} bits per "
            "channel use.",
            partial(_on_axis, water_filling, ues),
            4.4,
        )
    yield from _chosen(setting)
    unheard = {name: setting.unheard(name) for name in setting.pair}
    said = ", ".join(f"{setting.said(name)} {each[-1]:.0f}" for name, each in unheard.items())
    yield Card(
        "unheard",
        f"Phones never heard from in {setting.rounds} rounds: {said}",
        f"How many of {setting.ues} phones had sent no update by then, mean over the seeds.",
        lambda figure: over_rounds(
            unheard, "UEs never heard from", figure.subplots(), indices=setting.indices
        ),
        4.8,
        "rounds",
    )


def cells(setting: Setting) -> Iterator[Card]:
    """The cell in the last round, for those who see the page without its script."""
    for name in setting.pair:
        history = setting.history(name)
        moved, positions = history.positions_m, history.info.positions_m
        positions = positions if moved is None else moved[-1].astype(np.float64)
        if positions is not None:
            choice = setting.choice(name, setting.rounds - 1)
            yield Card(
                f"cell-{setting.indices[name]}",
                f"{name} in round {setting.rounds}",
                "Phones around the access point (the triangle); those that upload are ringed.",
                partial(_on_axis, cell_map, positions, choice.ages, choice.chosen, setting.oldest),
                4.4,
            )


def _on_axis(draw: Callable[..., object], *given: object) -> object:
    """Draw what is given on the only axis of the figure, which comes last."""
    *values, figure = given
    return draw(*values, figure.subplots())  # type: ignore[attr-defined]


def _chosen(setting: Setting) -> Iterator[Card]:
    """Who is chosen from whom, where a run recorded what its policy could choose from."""
    found = {name: setting.ranking(name) for name in setting.pair}
    rankings = {name: each for name, each in found.items() if each is not None}
    if not rankings:
        return
    taken = [
        f"{setting.said(name)} {'takes ' if place == 0 else ''}{each.first} of "
        f"{'the top ' if place == 0 else ''}{each.chosen.size}"
        for place, (name, each) in enumerate(rankings.items())
    ]
    t = next(iter(rankings.values())).t
    shown = any(each.gain is not None for each in rankings.values())
    below = (
        " Under the bars: gains on each subchannel, which stand out where they are good; dots mark "
        "what was given out."
        if shown
        else ""
    )
    yield Card(
        "chosen",
        f"By age per subchannel, {', '.join(taken)}",
        f"The phones in round {t + 1} of seed {setting.seed} by {_weight_text(*setting.weighing)} "
        "per subchannel that they need. As many as upload stand before the cut; who waits there "
        f"lost subchannels to others.{below}",
        lambda figure: _draw_rankings(figure, setting, rankings),
        0.6 + (2.1 if shown else 1.7) * len(rankings),
    )


def _weight_text(alpha: float, form: Form) -> str:
    """The weight of an age as a formula."""
    power = 1.0 - alpha
    if alpha == 0:
        return "age"
    if form == "continuous" and alpha != 1:
        return f"f(age) = ((1 + age)^{power:g} − 1) / {power:g}"
    return "f(age) = log(1 + age)" if alpha == 1 else f"f(age) = {1 / power:.3g}·age^{power:g}"


def _draw_rankings(figure: Figure, setting: Setting, rankings: dict[str, Ranking]) -> None:
    """Ranked bars of each policy, over the gains of its UEs if they are known."""
    parts = [
        (name, each, bars)
        for name, each in rankings.items()
        for bars in (True, False)
        if bars or each.gain is not None
    ]
    ratios = [1.0 if bars else 0.55 for _, _, bars in parts]
    axes = figure.subplots(len(parts), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for axis, (name, each, bars) in zip(axes, parts, strict=True):
        index = setting.indices[name]
        if bars:
            ranked_scores(each.score, each.chosen, axis, index=index)
            axis.set_title(name, fontsize="medium", loc="left")
        elif each.gain is not None:
            offered_gains(each.gain, each.owner, axis, index=index)
        axis.label_outer()


def _phones(count: int, ues: int) -> str:
    return f"{count} of {ues} phones" if count else "no phone"


def _number(count: int) -> str:
    return "one" if count == 1 else str(count)


def _subchannels(need: Need) -> str:
    return f"{_number(need.gain.size)} subchannel{'s' if need.gain.size > 1 else ''}"


def _place(need: Need) -> str:
    return f"A phone at {need.distance_m:.0f} m" if need.distance_m else f"Phone {need.ue}"


def _tick(need: Need) -> str:
    where = "" if need.distance_m is None else f"\n{need.distance_m:.0f} m away"
    return f"UE {need.ue}{where}"
