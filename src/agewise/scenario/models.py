"""The sections of a scenario: frozen, validated descriptions.

Units are in the names (``_m``, ``_db``, ``_dbm``, ``_hz``, ``_s``). Nothing that is a scientific
choice has a default here.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A part of a scenario: frozen, and strict about what it holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(Section):
    """The access point's surroundings."""

    ues: int = Field(ge=1, description="K, the number of UEs")
    subchannels: int = Field(ge=1, description="N, the number of subchannels")
    radius_m: float = Field(
        gt=0, description="radius of the disc around the access point, in metres"
    )


class LinkBudget(Section):
    """Physical units of the link, the other way to say the mean SNR at the cell edge."""

    transmit_power_dbm: float = Field(
        description="P_TX in dBm, each UE's power over all subchannels"
    )
    noise_density_dbm_hz: float = Field(description="noise power density in dBm/Hz, -174 at 290 K")
    noise_figure_db: float = Field(ge=0, description="noise figure of the access point in dB")
    reference_loss_db: float = Field(description="path loss in dB at the reference distance")


class Upload(Section):
    """What has to be uploaded by when, the other way to say the rate threshold."""

    payload_bits: float = Field(gt=0, description="size of one update in bits")
    deadline_s: float = Field(gt=0, description="time for its upload in seconds")


class Channel(Section):
    """Path loss and fading, their scale, and the rate that a scheduled UE must reach.

    The scale is ``edge_snr_db`` or ``link_budget``; the threshold is ``rate_threshold`` or
    ``upload``. The physical ways need ``subchannel_bandwidth_hz``.
    """

    path_loss_exponent: float = Field(gt=0, description="beta of the power law")
    reference_distance_m: float = Field(
        gt=0,
        description="distance in metres at which the power law starts; nearer UEs have its gain",
    )
    edge_snr_db: float | None = Field(
        default=None, description="mean SNR in dB at the cell edge with all power on one subchannel"
    )
    link_budget: LinkBudget | None = Field(default=None, description="the scale in physical units")
    rate_threshold: float | None = Field(
        default=None, ge=0, description="R_s in bits per real channel use"
    )
    upload: Upload | None = Field(default=None, description="the threshold by payload and deadline")
    subchannel_bandwidth_hz: float | None = Field(
        default=None, gt=0, description="bandwidth of one subchannel in Hz"
    )

    @model_validator(mode="after")
    def _one_way_each(self) -> "Channel":
        if (self.edge_snr_db is None) == (self.link_budget is None):
            raise ValueError("give exactly one of edge_snr_db and link_budget")
        if (self.rate_threshold is None) == (self.upload is None):
            raise ValueError("give exactly one of rate_threshold and upload")
        physical = self.link_budget is not None or self.upload is not None
        if physical and self.subchannel_bandwidth_hz is None:
            raise ValueError("link_budget and upload need subchannel_bandwidth_hz")
        return self

    @property
    def threshold_bits(self) -> float:
        """R_s in bits per real channel use: payload / (2 bandwidth seconds) if given so."""
        if self.upload is not None and self.subchannel_bandwidth_hz is not None:
            uses = 2.0 * self.subchannel_bandwidth_hz * self.upload.deadline_s
            return self.upload.payload_bits / uses
        assert self.rate_threshold is not None  # noqa: S101 (the validator saw to it)
        return self.rate_threshold


class Data(Section):
    """What is learned from, and how it lies on the UEs."""

    dataset: Literal["mnist", "synthetic", "file"] = Field(description="where the samples are from")
    path: str | None = Field(
        default=None, description="with dataset = file: a folder of IDX files, .npz, .csv, .parquet"
    )
    label_column: str | None = Field(default=None, description="of a table: the column to predict")
    test_fraction: float | None = Field(
        default=None, gt=0, lt=1, description="of a table: the share of rows kept for testing"
    )
    task: Literal["all", "parity", "pair"] = Field(
        description="tell apart all classes, even from odd ones, or one pair"
    )
    pair: tuple[int, int] | None = Field(default=None, description="the classes of task = pair")
    partition: Literal["iid", "shards", "dirichlet"] = Field(
        description="samples at random, a fixed number of classes per UE, or Dirichlet shares"
    )
    classes_per_ue: int | None = Field(
        default=None, ge=1, description="of partition = shards: how many classes each UE holds"
    )
    concentration: float | None = Field(
        default=None, gt=0, description="of partition = dirichlet: lower makes UEs less alike"
    )
    sizes: Literal["equal", "log-normal"] = Field(description="how many samples a UE has")
    size_sigma: float | None = Field(
        default=None, gt=0, description="of sizes = log-normal: deviation of the logarithm"
    )

    @model_validator(mode="after")
    def _needs(self) -> "Data":
        for chosen, value, needed in (
            (self.dataset, "file", "path"),
            (self.task, "pair", "pair"),
            (self.partition, "shards", "classes_per_ue"),
            (self.partition, "dirichlet", "concentration"),
            (self.sizes, "log-normal", "size_sigma"),
        ):
            if chosen == value and getattr(self, needed) is None:
                raise ValueError(f"{value} needs {needed}")
        return self


class Learn(Section):
    """The model, its objective (Eq. 1) and local learning (Algorithm 3)."""

    loss: Literal[
        "hinge", "squared-hinge", "logistic", "multinomial", "squared-error", "k-means"
    ] = Field(description="what a sample costs; hinge is the support vector machine")
    clusters: int | None = Field(
        default=None, ge=1, description="of loss = k-means: the number of centres"
    )
    penalty: Literal["none", "l2", "l1"] = Field(description="r(w), of the weights, not the bias")
    penalty_weight: float = Field(ge=0, description="xi, the weight of the penalty")
    local_steps: int = Field(ge=1, description="tau, steps of a scheduled UE in a round")
    batch_size: int = Field(ge=1, description="samples of one step; the paper has 1")
    step_size: float = Field(gt=0, description="eta in round 0")
    step_decay: float = Field(
        ge=0, description="the step of round t is eta / (1 + step_decay t); 0 keeps it constant"
    )

    initial_deviation: float = Field(ge=0, description="deviation of the random initial weights")

    @model_validator(mode="after")
    def _needs(self) -> "Learn":
        if self.loss == "k-means" and self.clusters is None:
            raise ValueError("k-means needs clusters")
        return self

    def step_of(self, t: int) -> float:
        """The step size of round ``t``."""
        return self.step_size / (1.0 + self.step_decay * t)


class Timing(Section):
    """Who is in time, in slots; an upload at exactly the rate threshold takes one slot.

    An update counts if its UE has computed and uploaded it before the deadline. Without this
    section local learning takes no time and every upload of a scheduled UE arrives.
    """

    compute_slots: float = Field(ge=0, description="median time of local learning, in slots")
    compute_sigma: float = Field(
        ge=0, description="deviation of that time's logarithm across UEs; 0 makes them equally fast"
    )
    deadline_slots: float = Field(gt=0, description="an update that takes longer is lost")


class Run(Section):
    """How long, and what is measured on the way."""

    rounds: int = Field(ge=1, description="T, communication rounds")
    evaluate_every: int = Field(
        ge=1, description="accuracy and test loss after every so many rounds, and after the last"
    )
    objective_every: int | None = Field(
        default=None, ge=1, description="P(w) on all training samples, likewise; absent is never"
    )
    age_alpha: float = Field(le=1, description="alpha of the recorded cost of the ages")
