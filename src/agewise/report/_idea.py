"""Pictures that explain the idea on one recorded round: what a UE needs, and who is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from agewise.age import Form, f_alpha
from agewise.policies import AgeBased
from agewise.report._setting import Numbers, Setting, round_distances_m
from agewise.report._style import MOST_PIXELS, Canvas, colour, ink, legend_above, on_page, ues
from agewise.report.pictures import Shown
from agewise.scenario import Scenario
from agewise.tables._words import counted

#: How many subchannels more make the difference between two UEs plain.
_ENOUGH = 3


@dataclass(frozen=True, eq=False)
class Filled:
    """What one UE was given in a round: its subchannels' gains and powers, in shares of P."""

    ue: int
    distance_m: float | None
    gain: Numbers
    power: Numbers


@dataclass(frozen=True, eq=False)
class Ranking:
    """The UEs of a round by f(age) per subchannel needed, the highest first.

    ``score[place]`` is that of the UE at a place, ``chosen`` are the places of those that upload,
    ``owner[subchannel]`` is the place of its owner or -1, and ``gain[place, subchannel]`` are the
    gains that policies were shown, if they are kept.
    """

    t: int
    score: Numbers
    chosen: NDArray[np.int64]
    owner: NDArray[np.int64]
    gain: NDArray[np.float32] | None


def draw_water(setting: Setting, names: Sequence[str], canvas: Canvas) -> Shown | None:
    """Draw how power fills the subchannels of two UEs, up to one level for each of them.

    Gains are those at a power of 1, powers shares of the budget. A grey column ends at the inverse
    of the gain. On the logarithmic axis power is as high above it as its rate, for
    log2(level / floor) = log2(1 + G P) is twice that in bits per real channel use.
    """
    del names
    found = find_filled(setting)
    if found is None:
        return None
    t, low, high = found
    axis, start, middles = canvas.subplots(), 0.0, []
    bottom = 0.4 * min(float((1.0 / ue.gain).min()) for ue in (low, high))
    for place, ue in enumerate((low, high)):
        order = np.argsort(-ue.gain, kind="stable")
        floor, filled = 1.0 / ue.gain[order], ue.power[order]
        x = start + np.arange(floor.size)
        named = ("1 / gain", "power", "level") if place == 0 else ("_", "_", "_")
        for base, height, tone, label in (
            (bottom, floor - bottom, ink("others"), named[0]),
            (floor, filled, colour(0), named[1]),
        ):
            axis.bar(x, height, 0.86, base, color=tone, linewidth=0, alpha=0.8, label=label)
        for at, low_end, top in zip(x, floor, floor + filled, strict=True):
            axis.annotate(
                f"{0.5 * np.log2(top / low_end):.1f} bit", (at, np.sqrt(low_end * top)),
                ha="center", va="center", fontsize="small", color=ink("card"),
            )  # fmt: skip
        level = float((floor + filled)[filled > 0].max(initial=0.0))
        axis.hlines(
            level, x[0] - 0.5, x[-1] + 0.5, color=ink("ink"), linewidth=1.2, linestyle="--",
            label=named[2],
        )  # fmt: skip
        middles.append(float(x.mean()))
        start = float(x[-1]) + 2.2
    axis.set_yscale("log")
    axis.set_ylim(bottom, 1.6)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_locator(NullLocator())
    away = ["" if ue.distance_m is None else f"\n{ue.distance_m:.0f} m away" for ue in (low, high)]
    axis.set_xticks(
        middles, [f"{_place(ue)}{far}" for ue, far in zip((low, high), away, strict=True)]
    )
    axis.tick_params("x", length=0, labelcolor=ink("ink"))
    axis.set_xlim(-1.2, start - 1.0)
    axis.grid(visible=False, axis="x")
    axis.set_ylabel("share of the power budget")
    legend_above(axis, 3)
    fewer, more = (counted(ue.gain.size, "subchannel") for ue in (low, high))
    return Shown(
        f"{_place(high)} needs {more}, {_place(low).lower()} needs {fewer}",
        f"Water-filling in round {t + 1}: power fills the subchannels of a phone up to one level, "
        "from the inverse of their gains on (grey, high where the channel is bad). The axis is "
        f"logarithmic, so that blue is as high as its rate. Needed: {_needed(setting.scenario)}.",
        3.4 if on_page() else 2.2,
    )


def _needed(scenario: Scenario) -> str:
    """The rate that uploads need, in words."""
    if scenario.threshold.by_time_left:
        return "the rate that carries its update in the time left to it"
    return f"{scenario.rate_threshold:.3g} bits per channel use"


def find_filled(setting: Setting) -> tuple[int, Filled, Filled] | None:
    """Find a round of the rival, a UE that needs few subchannels in it, and one that needs many.

    The round is the one nearest to the middle in which the difference is large enough to see.
    """
    history = setting.history(setting.rival)
    places, best = round_distances_m(history), None
    for t, (owner, gain, power) in enumerate(
        zip(history.owner, history.gain, history.power, strict=True)
    ):
        where = None if places is None else places[t % len(places)]
        filled = []
        for ue in history.scheduled[t]:
            own = owner == ue
            spent = float(power[own].sum())
            if spent > 0 and (gain[own] > 0).all():
                far_m = None if where is None else float(where[ue])
                filled.append(Filled(int(ue), far_m, gain[own] * spent, power[own] / spent))
        if len(filled) < 2:
            continue
        filled.sort(key=lambda ue: (ue.gain.size, ue.distance_m or 0.0))
        more = filled[-1].gain.size - filled[0].gain.size
        worth = min(more, _ENOUGH) - abs(t / setting.rounds - 0.5)
        if more and (best is None or worth > best[0]):
            best = worth, t, filled[0], filled[-1]
    return None if best is None else best[1:]


def _place(ue: Filled) -> str:
    return f"{'Phone' if on_page() else 'UE'} {ue.ue}"


def draw_chosen(setting: Setting, names: Sequence[str], canvas: Canvas) -> Shown | None:
    """Draw the UEs of one round by rank, those that upload in colour, over their gains."""
    found = {name: rank(setting, name) for name in names}
    rankings = {name: ranking for name, ranking in found.items() if ranking is not None}
    if not rankings:
        return None
    parts = [
        (name, ranking, bars)
        for name, ranking in rankings.items()
        for bars in (True, False)
        if bars or ranking.gain is not None
    ]
    ratios = [1.0 if bars else 0.55 for _, _, bars in parts]
    axes = canvas.subplots(len(parts), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for axis, (name, ranking, bars) in zip(axes, parts, strict=True):
        if bars:
            _draw_ranks(axis, ranking, setting.indices[name])
            axis.set_title(name, fontsize="medium", loc="left")
        elif ranking.gain is not None:
            _draw_gains(axis, ranking.gain, ranking.owner, setting.indices[name])
        axis.set_xlabel(f"{ues()} by f(age) per subchannel")
        axis.label_outer()
    taken = [
        f"{setting.display_name(name)} {'takes ' if place == 0 else ''}"
        f"{int((ranking.chosen < ranking.chosen.size).sum())} of "
        f"{'the top ' if place == 0 else ''}{ranking.chosen.size}"
        for place, (name, ranking) in enumerate(rankings.items())
    ]
    below = " Below: the gain of each subchannel; dots mark those that were given out."
    gains_known = len(parts) > len(rankings)
    return Shown(
        f"By age per subchannel, {', '.join(taken)}",
        Markup(
            "The phones in round {} by {} per subchannel that they need: in colour those that "
            "upload, in grey those that wait. As many as upload stand before the cut.{}"
        ).format(
            parts[0][1].t + 1, _weight_text(*_weighing(setting)), below if gains_known else ""
        ),
        0.6 + (1.75 if gains_known else 1.4) * len(rankings),
    )


def rank(setting: Setting, name: str) -> Ranking | None:
    """Rank the UEs of the round that records who was eligible, in the run to look at."""
    history = setting.history(name)
    eligible = history.eligible
    if eligible is None:
        return None
    (ages, chosen), need = setting.choice(name, eligible.t), eligible.need
    weights = f_alpha(ages, *_weighing(setting))
    score = np.where(need > 0, weights / np.maximum(need, 1), 0.0)
    waits = ~np.isin(np.arange(score.size), chosen)  # of equal scores those that upload are first
    order = np.lexsort((np.where(need > 0, need, need.max(initial=0) + 1), waits, -score))
    place = np.append(np.argsort(order), -1)  # the last is nobody's
    return Ranking(
        t=eligible.t,
        score=score[order],
        chosen=np.sort(place[chosen]),
        owner=place[history.owner[eligible.t]],
        gain=None if eligible.gain is None else eligible.gain[order],
    )


def _weighing(setting: Setting) -> tuple[float, Form]:
    """Alpha and form of f_alpha: the age-based policy's of the pair, else the scenario's."""
    for key in setting.result.compared:
        if key.name == AgeBased.name:
            policy = AgeBased(**key.parameters)  # type: ignore[arg-type]
            return policy.alpha, policy.form
    return setting.scenario.run.age_alpha, "paper"


def _draw_ranks(axis: Axes, ranking: Ranking, index: int) -> None:
    """Draw scores, the highest first; the cut is behind as many places as were chosen."""
    score, taken = ranking.score, ranking.chosen
    places = np.arange(score.size)
    tall = score + 0.03 * max(1e-9, float(score.max(initial=0.0)))  # so that 0 can be seen
    axis.stairs(
        tall, np.arange(score.size + 1) - 0.5, fill=True, color=ink("others"), alpha=0.5,
        label="waits",
    )  # fmt: skip
    axis.bar(
        places[taken], tall[taken], width=1.0, color=colour(index), linewidth=0, label="uploads"
    )
    cut = taken.size - 0.5
    axis.axvline(cut, color=ink("ink"), linewidth=1.0, linestyle="--", label="_the cut")
    axis.annotate(
        f"cut after {taken.size}", (cut, 1.0), xycoords=("data", "axes fraction"),
        xytext=(4, -2), textcoords="offset points", va="top", fontsize="small", color=ink("ink"),
    )  # fmt: skip
    axis.set_xlim(-0.6, score.size - 0.4)
    axis.set_ylim(0.0, 1.18 * max(float(tall.max(initial=0.0)), 1e-9))
    axis.set_ylabel("f(age) / need")
    axis.yaxis.set_major_locator(MaxNLocator(3))
    axis.grid(visible=False, axis="x")
    if not on_page():
        axis.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=2, borderaxespad=0.2)


def _draw_gains(
    axis: Axes, gain: NDArray[np.float32], owner: NDArray[np.int64], index: int
) -> None:
    """Draw ``gain[place, subchannel]`` in dB, with ``owner[subchannel]``, -1 for none, on top.

    In the page they are grey levels, which its style sheet gives their colours.
    """
    places, subchannels = gain.shape
    ends = ["black", "white"] if on_page() else ["white", ink("soft")]
    image = axis.imshow(
        _levels(gain[:: -(-places // MOST_PIXELS)].T), vmin=0.0, vmax=1.0, origin="lower",
        cmap=LinearSegmentedColormap.from_list("gains", ends), aspect="auto", interpolation="none",
        extent=(-0.5, places - 0.5, 0.5, subchannels + 0.5),
    )  # fmt: skip
    image.set_gid(f"gains-{index}")
    held = np.flatnonzero(owner >= 0)
    axis.plot(
        owner[held], held + 1, linestyle="", marker="s", markersize=2.6, color=colour(index),
        markeredgewidth=0,
    )  # fmt: skip
    axis.set_xlim(-0.6, places - 0.4)
    axis.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    axis.set_ylabel("subch.")
    axis.grid(visible=False)


def _levels(gain: NDArray[np.float32]) -> Numbers:
    """Gains on a scale of dB from 0 to 1; gains of 0 are weakest."""
    usable = gain > 0
    if not usable.any():
        return np.zeros(gain.shape)
    with np.errstate(divide="ignore"):
        decibels = 10.0 * np.log10(gain.astype(np.float64))
    low, high = np.percentile(decibels[usable], [5, 95])
    return np.asarray(np.clip((decibels - low) / max(high - low, 1e-9), 0.0, 1.0))


def _weight_text(alpha: float, form: Form) -> Markup:
    """The weight of an age as a formula."""
    if alpha == 0:
        return Markup("age")
    if alpha == 1:
        return Markup("f(age) = log(1 + age)")
    power = Markup("<sup>{:g}</sup>").format(1 - alpha)
    if form == "continuous":
        return Markup("f(age) = ((1 + age){} − 1) / {:g}").format(power, 1 - alpha)
    return Markup("f(age) = {:.3g}·age{}").format(1 / (1 - alpha), power)
