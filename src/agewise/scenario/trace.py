"""A channel that was measured or recorded: which file, and how it is read."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.part import LARGE, MOST, MOST_DB, ByName, Part, RelativeTo
from agewise.scenario.channel import LinkBudget, ModelledChannel
from agewise.scenario.fading import Fading


class AsSnr(Part):
    """What the file holds are SNRs per unit of power already."""

    kind: Literal["none"] = "none"


PathGainLink = Annotated[AsSnr | LinkBudget, Field(discriminator="kind"), ByName]


class AutoFormat(Part):
    """By the ending and the content of the file, where these leave no doubt."""

    kind: Literal["auto"] = "auto"


class GainsFormat(Part):
    """Arrays gains[round, ue, subchannel] in .npz, .npy, .h5 or a .parquet table."""

    kind: Literal["gains"] = "gains"


class SionnaFormat(Part):
    """Channel impulse responses of Sionna: a and tau in an .npz; a time step is a round."""

    kind: Literal["sionna"] = "sionna"
    ues: Literal["receivers", "transmitters"] = Field(
        default="receivers", description="which side of the file's links the UEs are"
    )
    access_point: int = Field(
        default=0, ge=0, le=MOST, description="which device of the other side is the access point"
    )
    link: PathGainLink = Field(default=AsSnr(), description="what turns path gains into SNR")


class DeepMimoFormat(Part):
    """Channels of DeepMIMO: channels[ue, rx, tx, subcarrier] in an .npz, or a .mat of MATLAB."""

    kind: Literal["deepmimo"] = "deepmimo"
    base_station: int = Field(
        default=0, ge=0, le=MOST, description="which base station of a .mat is the access point"
    )
    link: PathGainLink = Field(default=AsSnr(), description="what turns path gains into SNR")


class Ns3FadingFormat(Part):
    """A fading trace of ns-3 (.fad): a row per resource block, a column per sample, in dB."""

    kind: Literal["ns3-fading"] = "ns3-fading"
    mean_snr_db: float = Field(
        ge=-MOST_DB,
        le=MOST_DB,
        description="SNR in dB of every UE where the fading is 0 dB, all power on one subchannel",
    )
    samples_per_round: int = Field(
        ge=1, le=MOST, description="samples (as a rule of 1 ms) from one round to the next"
    )


class Ns3SinrFormat(Part):
    """PHY statistics of ns-3, tab-separated: time, cellId, IMSI, RNTI, sinrLinear, ..."""

    kind: Literal["ns3-sinr"] = "ns3-sinr"
    round_s: float = Field(ge=1e-6, le=LARGE, description="seconds from one round to the next")
    carrier: int = Field(default=0, ge=0, le=MOST, description="the component carrier to read")
    fading: Fading = Field(description="how gains vary over the subchannels around that SINR")


class DriveTestFormat(Part):
    """Measurements on the way, a CSV with an SNR in dB per row, for a time and a UE."""

    kind: Literal["drive-test"] = "drive-test"
    round_s: float = Field(ge=1e-6, le=LARGE, description="seconds from one round to the next")
    fading: Fading = Field(description="how gains vary over the subchannels around that SNR")
    time_column: str = Field(default="time_s", description="the column of the time in seconds")
    ue_column: str = Field(default="ue", description="the column of the UE, a number or a name")
    snr_column: str = Field(default="snr_db", description="the column of the SNR in dB")


TraceFormat = Annotated[
    AutoFormat
    | GainsFormat
    | SionnaFormat
    | DeepMimoFormat
    | Ns3FadingFormat
    | Ns3SinrFormat
    | DriveTestFormat,
    Field(discriminator="kind"),
    ByName,
]


class TraceChannel(Part):
    """Gains that were measured or recorded: ``gains[round, ue, subchannel]`` in a file."""

    kind: Literal["trace"] = "trace"
    path: str = Field(
        description="an .npz with an array gains[round, ue, subchannel], or another format"
    )
    relative_to: RelativeTo = "working-folder"
    format: TraceFormat = Field(default=AutoFormat(), description="what the file holds")
    power_budget: float | None = Field(
        default=None,
        ge=1e-100,
        le=1e100,
        description="P_TX in the unit that makes gain times power an SNR; that of the file, or of "
        "format.link, if not given, and 1 if these say nothing",
    )


Channel = Annotated[ModelledChannel | TraceChannel, Field(discriminator="kind"), ByName]
