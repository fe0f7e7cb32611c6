"""What an upload needs, how long a round takes, and what it costs: rate, times, energy, bits."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.part import LARGE, ByName, Part, RelativeTo

#: The highest rate threshold in bits: beyond it no SNR that is a number would do.
MOST_RATE = 1000.0

Margin = Annotated[
    float,
    Field(
        ge=0,
        le=MOST_RATE,
        description="outage margin in bits per real channel use: the access point schedules for "
        "R_s plus this, and an upload is lost if it reaches less than R_s",
    ),
]


class RateThreshold(Part):
    """The rate that a scheduled UE must reach, as a number."""

    kind: Literal["rate"] = "rate"
    rate: float = Field(ge=0, le=MOST_RATE, description="R_s in bits per real channel use")
    margin: Margin = 0.0


class PayloadThreshold(Part):
    """The rate that carries a payload by its deadline: payload / (2 bandwidth seconds)."""

    kind: Literal["payload"] = "payload"
    payload_bits: float = Field(gt=0, le=1e18, description="size of one update in bits")
    deadline_s: float = Field(ge=1e-12, le=LARGE, description="time for its upload in seconds")
    margin: Margin = 0.0


class ModelThreshold(Part):
    """The rate that carries an update of the model by a deadline: bits / (2 bandwidth seconds).

    An update has 32 bits for each weight, or what compression leaves of them.
    """

    kind: Literal["model"] = "model"
    deadline_s: float = Field(ge=1e-12, le=LARGE, description="time for its upload in seconds")
    margin: Margin = 0.0


class NoTiming(Part):
    """Local learning takes no time, and every upload of a scheduled UE arrives."""

    kind: Literal["none"] = "none"


class SlotTiming(Part):
    """An update counts if it was computed and uploaded by a deadline; times are in slots.

    An upload at exactly the rate threshold takes one slot.
    """

    kind: Literal["slots"] = "slots"
    compute_slots: float = Field(
        ge=0, le=LARGE, description="median time of local learning, in slots"
    )
    compute_sigma: float = Field(
        ge=0,
        le=20,
        description="deviation of that time's logarithm across UEs; 0 makes them equally fast",
    )
    deadline_slots: float = Field(gt=0, le=1e12, description="an update that takes longer is lost")
    offer: Literal["in-time", "everyone"] = Field(
        default="in-time",
        description="whom the access point offers to the policy: UEs whose upload at the rate "
        "threshold would be in time, or everyone",
    )


class LogNormalComputing(Part):
    """Local learning takes seconds that are log-normal across the UEs."""

    kind: Literal["log-normal"] = "log-normal"
    median_s: float = Field(ge=0, le=LARGE, description="median over the UEs, in seconds a round")
    sigma: float = Field(
        ge=0, le=20, description="deviation of its logarithm; 0 makes all UEs equally fast"
    )
    power_w: float = Field(ge=0, le=LARGE, description="watts that a UE takes while it computes")


class CycleComputing(Part):
    """Local learning takes cycles of a processor: cycles / frequency, kappa cycles frequency^2."""

    kind: Literal["cycles"] = "cycles"
    cycles_per_sample: float = Field(
        gt=0, le=1e15, description="C, cycles for one sample of one local step; 1e4 to 3e4 is usual"
    )
    frequency_hz: float = Field(
        ge=1.0, le=1e15, description="f, median over the UEs in Hz; 1e9 to 2e9 is usual"
    )
    frequency_sigma: float = Field(
        ge=0, le=20, description="deviation of its logarithm; 0 makes all UEs equally fast"
    )
    kappa: float = Field(
        ge=0, le=1.0, description="effective switched capacitance, in J s^2; 1e-28 is usual"
    )


class DeviceProfiles(Part):
    """Measured devices: a CSV file with the columns samples_per_s and compute_w, a row each."""

    kind: Literal["profiles"] = "profiles"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    assignment: Literal["in-order", "random"] = Field(
        description="which UE has which row: UE k row k, again from the first where there are more "
        "UEs than rows; or any, by the seed"
    )


class NoBattery(Part):
    """The energy of UEs does not end."""

    kind: Literal["none"] = "none"


class EnergyBudget(Part):
    """Each UE has energy for the whole run; when it is spent, the UE leaves."""

    kind: Literal["budget"] = "budget"
    energy_j: float = Field(ge=1e-12, le=1e15, description="median over the UEs in joules")
    sigma: float = Field(
        ge=0, le=20, description="deviation of its logarithm; 0 gives all UEs the same"
    )


class SecondsTiming(Part):
    """Times in seconds and energy in joules: downlink, computing, upload.

    An upload at exactly the rate threshold takes one slot of ``slot_s``.
    """

    kind: Literal["seconds"] = "seconds"
    slot_s: float | None = Field(
        default=None,
        ge=1e-12,
        le=LARGE,
        description="seconds of an upload at the rate threshold; with a threshold of kind payload "
        "or model it is the threshold's deadline_s, and left out here",
    )
    downlink_s: float = Field(
        ge=0, le=LARGE, description="seconds until every UE has the model of the round"
    )
    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=LARGE,
        description="an update that takes longer, downlink included, is lost; left out, none is",
    )
    transmit_power_w: float | None = Field(
        default=None,
        gt=0,
        le=LARGE,
        description="watts of the whole power budget P_TX; with a channel.link of kind budget it "
        "is that of the link, and left out here",
    )
    computing: Annotated[
        LogNormalComputing | CycleComputing | DeviceProfiles, Field(discriminator="kind"), ByName
    ] = Field(description="how long local learning takes, and what it costs")
    battery: Annotated[NoBattery | EnergyBudget, Field(discriminator="kind"), ByName] = Field(
        default=NoBattery(), description="how much energy a UE has"
    )
    offer: Literal["in-time", "everyone"] = Field(
        default="in-time",
        description="whom the access point offers to the policy: UEs whose upload at the rate "
        "threshold would be in time, or everyone",
    )


class NoCompression(Part):
    """Updates are sent as they are: 32 bits a weight."""

    kind: Literal["none"] = "none"


class Qsgd(Part):
    """Weights of an update rounded at random to 2^bits levels (QSGD, Alistarh et al. 2017)."""

    kind: Literal["qsgd"] = "qsgd"
    bits: int = Field(ge=1, le=16, description="b, bits for the magnitude of a weight")


class TopK(Part):
    """Only the largest weights of an update are sent (Stich et al. 2018)."""

    kind: Literal["top-k"] = "top-k"
    share: float = Field(gt=0, le=1, description="k / n, the share of the weights that are sent")
    error_feedback: bool = Field(
        default=True, description="whether a UE adds what was not sent to its next update"
    )


class Sign(Part):
    """Only the signs of an update are sent, and their mean magnitude (Karimireddy et al. 2019)."""

    kind: Literal["sign"] = "sign"
    error_feedback: bool = Field(
        default=True, description="whether a UE adds what was not sent to its next update"
    )


Threshold = Annotated[
    RateThreshold | PayloadThreshold | ModelThreshold, Field(discriminator="kind"), ByName
]
Timing = Annotated[NoTiming | SlotTiming | SecondsTiming, Field(discriminator="kind"), ByName]
Compression = Annotated[NoCompression | Qsgd | TopK | Sign, Field(discriminator="kind"), ByName]


def require_fitting(threshold: Threshold, timing: Timing, *, link_budget: bool) -> None:
    """Raise ``ValueError`` where a time or a power is missing, or said in two places."""
    if not isinstance(timing, SecondsTiming):
        return
    carried = not isinstance(threshold, RateThreshold)
    for given, known, name, elsewhere in (
        (timing.slot_s, carried, "slot_s", "threshold.deadline_s"),
        (timing.transmit_power_w, link_budget, "transmit_power_w", "channel.link"),
    ):
        if given is not None and known:
            raise ValueError(f"timing.{name} follows from {elsewhere}: leave it out")
        if given is None and not known:
            raise ValueError(f"timing.{name} is missing")
    if timing.deadline_s is not None and timing.deadline_s <= timing.downlink_s:
        raise ValueError(
            f"timing.deadline_s = {timing.deadline_s:g}: must be above timing.downlink_s, "
            f"{timing.downlink_s:g}"
        )
