"""The learning side of a scenario: the data, the model and local learning, what is measured."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.scenario.section import LARGE, MOST, MOST_STEPS, ByName, Section
from agewise.scenario.timing import Compression, NoCompression


class Mnist(Section):
    """60,000 handwritten digits of 28 by 28 pixels, inside the package."""

    kind: Literal["mnist"] = "mnist"


class Synthetic(Section):
    """A small fixed problem for quick trials: ten Gaussian clusters in 20 dimensions."""

    kind: Literal["synthetic"] = "synthetic"


class IdxFolder(Section):
    """A folder of four IDX files as MNIST and its relatives come, gzipped or not."""

    kind: Literal["idx"] = "idx"
    path: str = Field(description="the folder")


class NpzFile(Section):
    """An .npz file with x_train, y_train, x_test and y_test."""

    kind: Literal["npz"] = "npz"
    path: str = Field(description="the file")


class Table(Section):
    """A .csv or .parquet table with a row per sample."""

    kind: Literal["table"] = "table"
    path: str = Field(description="the file")
    label_column: str = Field(description="the column to predict")
    test_fraction: float = Field(
        gt=0, lt=1, description="the share of rows, the last ones, kept for testing"
    )


class Clients(Section):
    """Samples that stay on the clients of a live federation: recorded, and not simulated."""

    kind: Literal["clients"] = "clients"


class AllClasses(Section):
    """Tell all classes apart."""

    kind: Literal["all"] = "all"


class Parity(Section):
    """Tell even classes from odd ones."""

    kind: Literal["parity"] = "parity"


class Pair(Section):
    """Tell two classes apart; the samples of all others are left out."""

    kind: Literal["pair"] = "pair"
    classes: tuple[int, int] = Field(description="the two classes")


class Iid(Section):
    """Samples dealt at random."""

    kind: Literal["iid"] = "iid"


class Shards(Section):
    """A fixed number of classes on every UE."""

    kind: Literal["shards"] = "shards"
    classes_per_ue: int = Field(ge=1, le=MOST, description="how many classes each UE holds")


class Dirichlet(Section):
    """Each class divided among the UEs by a draw from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: float = Field(
        gt=0, le=LARGE, description="the lower, the less alike are the UEs"
    )


class EqualSizes(Section):
    """Every UE has as many samples."""

    kind: Literal["equal"] = "equal"


class LogNormalSizes(Section):
    """The number of samples varies log-normally across the UEs."""

    kind: Literal["log-normal"] = "log-normal"
    sigma: float = Field(
        gt=0, le=20, description="deviation of the logarithm of the number of samples"
    )


class Data(Section):
    """What is learned from, and how it lies on the UEs."""

    dataset: Annotated[
        Mnist | Synthetic | IdxFolder | NpzFile | Table | Clients,
        Field(discriminator="kind"),
        ByName,
    ] = Field(description="where the samples are from")
    task: Annotated[AllClasses | Parity | Pair, Field(discriminator="kind"), ByName] = Field(
        description="what is told apart"
    )
    partition: Annotated[Iid | Shards | Dirichlet, Field(discriminator="kind"), ByName] = Field(
        description="which classes lie on which UE"
    )
    sizes: Annotated[EqualSizes | LogNormalSizes, Field(discriminator="kind"), ByName] = Field(
        description="how many samples a UE has"
    )


class Linear(Section):
    """A linear model: one output per class, or one for two classes."""

    kind: Literal["linear"] = "linear"
    loss: Literal["hinge", "squared-hinge", "logistic", "multinomial", "squared-error"] = Field(
        description="what a sample costs; hinge is the support vector machine"
    )
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the random initial weights"
    )


class KMeans(Section):
    """Cluster centres; the loss is half the squared distance to the nearest one."""

    kind: Literal["k-means"] = "k-means"
    clusters: int = Field(ge=1, le=MOST, description="the number of centres")
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the initial centres from random training samples"
    )


class NoPenalty(Section):
    """The objective has no penalty."""

    kind: Literal["none"] = "none"


class L2(Section):
    """Half the squared length of the weights, without the bias."""

    kind: Literal["l2"] = "l2"
    weight: float = Field(ge=0, le=LARGE, description="xi, the weight of the penalty")


class L1(Section):
    """The sum of the magnitudes of the weights, without the bias."""

    kind: Literal["l1"] = "l1"
    weight: float = Field(ge=0, le=LARGE, description="xi, the weight of the penalty")


class WeightedAverage(Section):
    """The models that arrived, averaged by their numbers of samples (the paper)."""

    kind: Literal["average"] = "average"


class NoDiscount(Section):
    """An old update counts as much as a new one."""

    kind: Literal["none"] = "none"


class FixedDiscount(Section):
    """An update that is n rounds old counts exp(-rate n) of a new one."""

    kind: Literal["fixed"] = "fixed"
    rate: float = Field(gt=0, le=100, description="g, by round")


class AgreementDiscount(Section):
    """An old update counts by how well old ones have predicted new ones so far."""

    kind: Literal["agreement"] = "agreement"


class UpdateMemory(Section):
    """The last update of every UE, also of those not heard now (MIFA, Gu et al. 2021)."""

    kind: Literal["memory"] = "memory"
    discount: Annotated[
        NoDiscount | FixedDiscount | AgreementDiscount, Field(discriminator="kind"), ByName
    ] = Field(description="how the weight of an update falls with its age")


class VarianceReduction(Section):
    """What arrived, corrected by the last updates of all (FedVARP, Jhunjhunwala et al. 2022)."""

    kind: Literal["variance-reduced"] = "variance-reduced"


class ServerMomentum(Section):
    """The average update with momentum (FedAvgM; Reddi et al. 2021)."""

    kind: Literal["momentum"] = "momentum"
    beta: float = Field(ge=0, lt=1, description="share of the last step that is taken again")
    server_step: float = Field(
        gt=0, le=LARGE, description="step of the access point; 1 takes it whole"
    )


class ServerAdam(Section):
    """Adam on the average update (FedAdam; Reddi et al. 2021)."""

    kind: Literal["adam"] = "adam"
    beta_1: float = Field(ge=0, lt=1, description="share of the mean update that is kept a round")
    beta_2: float = Field(
        ge=0, lt=1, description="share of the mean squared update that is kept a round"
    )
    server_step: float = Field(gt=0, le=LARGE, description="step of the access point")
    tau: float = Field(
        ge=1e-12, le=LARGE, description="added to the root of the mean squared update"
    )


class Learn(Section):
    """The model, its objective (Eq. 1) and local learning (Algorithm 3)."""

    model: Annotated[Linear | KMeans, Field(discriminator="kind"), ByName] = Field(
        description="what is learned"
    )
    penalty: Annotated[NoPenalty | L2 | L1, Field(discriminator="kind"), ByName] = Field(
        description="what large weights cost: r(w)"
    )
    aggregation: Annotated[
        WeightedAverage | UpdateMemory | VarianceReduction | ServerMomentum | ServerAdam,
        Field(discriminator="kind"),
        ByName,
    ] = Field(description="what the access point makes of the updates")
    compression: Compression = Field(
        default=NoCompression(), description="what becomes of an update before it is sent"
    )
    local_steps: int = Field(ge=1, le=MOST, description="tau, steps of a scheduled UE in a round")
    batch_size: int = Field(ge=1, le=MOST, description="samples of one step; the paper has 1")
    step_size: float = Field(gt=0, le=LARGE, description="eta in round 0")
    step_decay: float = Field(
        ge=0,
        le=LARGE,
        description="the step of round t is eta / (1 + step_decay t); 0 keeps it constant",
    )

    def step_of(self, t: int) -> float:
        """The step size of round ``t``."""
        return self.step_size / (1.0 + self.step_decay * t)


class NoOptimum(Section):
    """The optimum of problem (3) is not worked out."""

    kind: Literal["never"] = "never"


class SampledOptimum(Section):
    """The optimum of problem (3) is worked out in some rounds, beside what the policy chose."""

    kind: Literal["sampled"] = "sampled"
    every: int = Field(ge=1, le=MOST, description="in every n-th round")
    work_limit: int = Field(
        ge=0, le=MOST_STEPS, description="steps of the search in a round, about a million a second"
    )


class Measurement(Section):
    """How long a run is, and what is measured on the way."""

    rounds: int = Field(ge=1, le=MOST, description="T, communication rounds")
    evaluate_every: int = Field(
        ge=1,
        le=MOST,
        description="accuracy and test loss after every n-th round, and after the last",
    )
    objective_every: int = Field(
        ge=0,
        le=MOST,
        description="P(w) on all training samples after every n-th round; 0 for never",
    )
    optimum: Annotated[NoOptimum | SampledOptimum, Field(discriminator="kind"), ByName] = Field(
        description="the best that any policy could have scheduled"
    )
    age_alpha: float = Field(ge=-10, le=1, description="alpha of the recorded cost of the ages")
