"""The pictures of a result: one list for the page, for papers and for documents.

Nothing is drawn here, so that the list is read without Matplotlib: the module that draws a picture
is imported when it is drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from agewise.report._setting import Setting


@dataclass(frozen=True)
class Shown:
    """What a picture that was drawn shows to be so, and what was measured; a height of its own."""

    finding: str
    measured: str
    height_in: float | None = None


@dataclass(frozen=True)
class Picture:
    """One picture: what it is, what it needs of a result, and the function that draws it.

    The function ``draw_NAME`` stands in ``module``. ``section`` is the part of
    the page that shows it, "" for none. ``pair`` says where only the compared policies are shown
    unless others are chosen. On the page there is one ``for_each`` policy. ``rounds`` says that
    the horizontal axis counts rounds where the setting is not looked at over costs, and
    ``no_costs`` why the picture is never drawn over costs.
    """

    name: str
    title: str
    sentence: str
    module: Literal["_ages", "_curves", "_gains", "_idea", "_radio"]
    section: Literal[
        "",
        "hero",
        "gains",
        "radio",
        "idea",
        "watch",
        "learning",
        "costs",
        "why",
        "explained",
        "where",
    ] = ""
    needs: str = ""
    pair: Literal["never", "page", "always"] = "never"
    for_each: bool = False
    rounds: bool = False
    no_costs: str = ""

    def draw(
        self, setting: "Setting", names: Sequence[str], figure: "Figure | SubFigure"
    ) -> Shown | None:
        """Draw the policies with these names.

        ``None`` where the runs do not tell what it needs or, on the page, where it says nothing.
        """
        module = import_module(f"agewise.report.{self.module}")
        draw = getattr(module, f"draw_{self.name.replace('-', '_')}")
        shown: Shown | None = draw(setting, names, figure)
        return shown


#: What pictures of the channel need, and why they are not drawn over costs.
_CHANNEL = "a channel that was measured (agewise compare keeps that of the first seed)"
_NOT_RUN = "it shows the channel"
#: In the order of the page.
_ALL = (
    Picture(
        "gain", "Paired gain",
        "Test accuracy of the compared policy minus the baseline's on the same seeds, a thin line "
        "for each seed.",
        "_curves", "learning", needs="two policies with common seeds", rounds=True,
    ),
    Picture(
        "forest", "Gain of every policy",
        "Paired gain of every policy over the baseline at the end, with its 95% interval.",
        "_gains", "gains", needs="a baseline and policies that share seeds with it",
    ),
    Picture(
        "accuracy", "Test accuracy",
        "The mean over the seeds with its 95% interval, over rounds or costs.",
        "_curves", "learning", needs="runs whose accuracy was measured", rounds=True,
    ),
    Picture(
        "costs", "Gain per round and per cost",
        "Mean gain of every policy over the baseline per round, second, joule, channel use and "
        "bit.",
        "_gains", "costs",
        needs="a baseline and policies that share seeds with it", no_costs="it shows every axis",
    ),
    Picture(
        "heat", "Age of every UE", "Age of every UE after each round of one seed, near UEs at the "
        "bottom.",
        "_ages", "hero", pair="always", for_each=True, rounds=True, no_costs="ages count rounds",
    ),
    Picture(
        "water", "What a UE needs",
        "Water-filling of a UE that needs few subchannels and of one that needs many.",
        "_idea", "idea",
        needs="a round in which one UE needed more subchannels than another",
        pair="always", no_costs="it shows one round",
    ),
    Picture(
        "chosen", "Who is chosen", "The UEs of one round by f(age) per subchannel that they need.",
        "_idea", "idea",
        needs="a run that recorded what its policy could choose from",
        pair="always", no_costs="it shows one round",
    ),
    Picture(
        "unheard", "UEs never heard from", "Number of UEs without any update so far.",
        "_curves", pair="page", rounds=True, no_costs="it counts UEs round by round",
    ),
    Picture(
        "cell", "The cell in the last round",
        "UEs around the access point by age; those that upload are ringed.",
        "_ages", "watch",
        needs="runs that say where the UEs are",
        pair="always", for_each=True, no_costs="it shows one round",
    ),
    Picture(
        "devices", "Classes of devices",
        "Mean age of each class of devices, the joules it spends, and the uploads it loses.",
        "_ages", "why", needs="devices of several classes", pair="page",
        no_costs="it shows means over whole runs",
    ),
    Picture(
        "staleness", "Staleness of updates", "How many versions old the updates are that arrive.",
        "_ages", "why", needs="updates that do not all start from the newest model", pair="page",
        no_costs="it shows whole runs",
    ),
    Picture(
        "distance", "Rounds heard by distance",
        "Share of the rounds in which a UE at this distance from the AP was heard.",
        "_curves", "why",
        needs="a cell whose size is known and runs that say where the UEs are", pair="page",
        no_costs="its axis is the distance from the AP",
    ),
    Picture(
        "distribution", "Ages at the end", "Share of UEs at most as old after the last round.",
        "_ages", "why", pair="page", no_costs="it shows the end of the runs",
    ),
    Picture(
        "classes", "Gain by class",
        "Gain of each class at the end against how far away its samples are.",
        "_gains", "why",
        needs="two policies, and runs that say where the UEs are and measured classes",
        no_costs="it shows the end of the runs",
    ),
    Picture(
        "diversity", "Gradient diversity", "Gradient diversity of the updates of each round.",
        "_curves", "why", needs="runs that trained", pair="page", rounds=True,
        no_costs="diversity is that of the updates of one round",
    ),
    Picture(
        "trade-off", "Many or fresh", "Updates per round against the mean age.",
        "_gains", "why", no_costs="it shows means over whole runs",
    ),
    Picture(
        "waterfall", "What the gain is made of",
        "Mean test accuracy from the baseline to its rival, one thing changed at a time in who is "
        "heard.",
        "_gains", "explained", needs="what agewise explain measures",
        no_costs="it shows means over whole runs",
    ),
    Picture(
        "ages", "Ages over rounds", "Mean, 95th percentile and largest age over rounds.",
        "_curves", no_costs="ages count rounds",
    ),
    Picture(
        "places", "The cell", "Mean SNR in the cell, and where the UEs are.",
        "_radio", "radio", needs=_CHANNEL, no_costs=_NOT_RUN,
    ),
    Picture(
        "snr", "Mean SNR", "Distribution of the mean SNR over the UEs.",
        "_radio", "radio", needs=_CHANNEL, no_costs=_NOT_RUN,
    ),
    Picture(
        "need", "Need of subchannels", "How many subchannels UEs need, alone in the cell.",
        "_radio", "radio", needs=_CHANNEL, no_costs=_NOT_RUN,
    ),
    Picture(
        "map", "Gains over a sweep", "Gain over the baseline at the end, in each setting.",
        "_gains", "where", needs="a sweep with at least two policies", for_each=True,
    ),
)  # fmt: skip

#: Every picture by name.
PICTURES: Mapping[str, Picture] = {picture.name: picture for picture in _ALL}
