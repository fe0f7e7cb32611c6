"""The learning side of a scenario: the data, the model and local learning, what is measured."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from agewise.part import (
    LARGE,
    MOST,
    MOST_STEPS,
    ByName,
    Options,
    Part,
    RelativeTo,
)
from agewise.scenario.timing import Compression, NoCompression

#: Units of a layer, and hidden layers, at most.
MOST_WIDTH = 2**20
MOST_LAYERS = 64


class Mnist(Part):
    """60,000 handwritten digits of 28 by 28 pixels, inside the package."""

    kind: Literal["mnist"] = "mnist"


class Synthetic(Part):
    """A small fixed problem for quick trials: ten Gaussian clusters in 20 dimensions."""

    kind: Literal["synthetic"] = "synthetic"


#: What stands in the file for a feature: the number itself, or a pixel of 0 to 255.
Scaling = Literal["as-is", "pixels"]


class IdxFolder(Part):
    """A folder of four IDX files as MNIST and its relatives come, gzipped or not."""

    kind: Literal["idx"] = "idx"
    path: str = Field(description="the folder")
    relative_to: RelativeTo = "working-folder"


class NpzFile(Part):
    """An .npz file with x_train, y_train, x_test and y_test."""

    kind: Literal["npz"] = "npz"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    scaling: Scaling = Field(
        default="as-is",
        description="pixels divides features by 255, as is always done with arrays of bytes",
    )


class Table(Part):
    """A .csv or .parquet table with a row per sample."""

    kind: Literal["table"] = "table"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    label_column: str = Field(description="the column to predict")
    test_fraction: float = Field(gt=0, lt=1, description="the share of rows kept for testing")
    test_rows: Literal["last", "first"] = Field(
        default="last", description="which rows are kept for testing, after shuffling if any"
    )
    shuffle: bool = Field(
        default=False,
        description="shuffle the rows first, always in the same way: for files sorted by label",
    )
    scaling: Scaling = Field(
        default="as-is", description="pixels divides the features by 255, as for images"
    )


class FashionMnist(Part):
    """70,000 pictures of clothes, 28 by 28 pixels in grey, in the files of their authors."""

    kind: Literal["fashion-mnist"] = "fashion-mnist"
    path: str = Field(
        default="/usr/share/datasets/fashion-mnist",
        description="the folder of the four IDX files, as Debian's package has it",
    )
    relative_to: RelativeTo = "working-folder"


class Cifar10(Part):
    """60,000 pictures in colour, 32 by 32 pixels, as its authors' Python batches."""

    kind: Literal["cifar-10"] = "cifar-10"
    path: str = Field(description="the unpacked folder, cifar-10-batches-py")
    relative_to: RelativeTo = "working-folder"


class Femnist(Part):
    """Handwritten digits and letters with their writers, as the JSON files of LEAF."""

    kind: Literal["femnist"] = "femnist"
    path: str = Field(description="the folder with LEAF's folders train and test")
    relative_to: RelativeTo = "working-folder"


class Clients(Part):
    """Samples that stay on the clients of a live federation: recorded, and not simulated."""

    kind: Literal["clients"] = "clients"


class AllClasses(Part):
    """Tell all classes apart."""

    kind: Literal["all"] = "all"


class Parity(Part):
    """Tell even classes from odd ones."""

    kind: Literal["parity"] = "parity"


class Pair(Part):
    """Tell two classes apart; the samples of all others are left out."""

    kind: Literal["pair"] = "pair"
    classes: tuple[int, int] = Field(description="the two classes")


class Iid(Part):
    """Samples dealt at random."""

    kind: Literal["iid"] = "iid"


class Shards(Part):
    """A fixed number of classes on every UE."""

    kind: Literal["shards"] = "shards"
    classes_per_ue: int = Field(ge=1, le=MOST, description="how many classes each UE holds")


class Dirichlet(Part):
    """Each class divided among the UEs by a draw from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: float = Field(
        gt=0, le=LARGE, description="the lower, the less alike are the UEs"
    )


class ByWriter(Part):
    """The samples of one writer stay together; writers are drawn at random."""

    kind: Literal["by-writer"] = "by-writer"
    writers_per_ue: int = Field(
        ge=1, le=MOST, description="how many writers each UE has; others are left out"
    )


class EqualSizes(Part):
    """Every UE has as many samples."""

    kind: Literal["equal"] = "equal"


class LogNormalSizes(Part):
    """The number of samples varies log-normally across the UEs."""

    kind: Literal["log-normal"] = "log-normal"
    sigma: float = Field(
        gt=0, le=20, description="deviation of the logarithm of the number of samples"
    )


class NaturalSizes(Part):
    """Every UE has the samples of its writers, however many."""

    kind: Literal["natural"] = "natural"


class Data(Part):
    """What is learned from, and how it lies on the UEs."""

    dataset: Annotated[
        Mnist
        | FashionMnist
        | Cifar10
        | Femnist
        | Synthetic
        | IdxFolder
        | NpzFile
        | Table
        | Clients,
        Field(discriminator="kind"),
        ByName,
    ] = Field(description="where the samples are from")
    task: Annotated[AllClasses | Parity | Pair, Field(discriminator="kind"), ByName] = Field(
        description="what is told apart"
    )
    partition: Annotated[
        Iid | Shards | Dirichlet | ByWriter, Field(discriminator="kind"), ByName
    ] = Field(description="which samples lie on which UE")
    sizes: Annotated[
        EqualSizes | LogNormalSizes | NaturalSizes, Field(discriminator="kind"), ByName
    ] = Field(description="how many samples a UE has")

    @model_validator(mode="after")
    def _writers_are_known(self) -> Self:
        by_writer = isinstance(self.partition, ByWriter)
        if by_writer and not isinstance(self.dataset, Femnist):
            raise ValueError(
                f"partition = by-writer needs a data set with writers, which {self.dataset.kind} "
                "is not: set data.dataset to femnist"
            )
        if by_writer and not isinstance(self.sizes, NaturalSizes):
            raise ValueError(
                f"sizes = {self.sizes.kind} does not go with partition = by-writer, where a UE has "
                "what its writers wrote: set data.sizes to natural"
            )
        if isinstance(self.sizes, NaturalSizes) and not by_writer:
            raise ValueError(
                f"sizes = natural does not go with partition = {self.partition.kind}: set "
                "data.sizes to equal or log-normal"
            )
        return self


class Linear(Part):
    """A linear model: one output per class, or one for two classes."""

    kind: Literal["linear"] = "linear"
    loss: Literal["hinge", "squared-hinge", "logistic", "multinomial", "squared-error"] = Field(
        description="what a sample costs; hinge is the support vector machine"
    )
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the random initial weights"
    )


class KMeans(Part):
    """Cluster centres; the loss is half the squared distance to the nearest one."""

    kind: Literal["k-means"] = "k-means"
    clusters: int = Field(ge=1, le=MOST, description="the number of centres")
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the initial centres from random training samples"
    )


class Mlp(Part):
    """A multilayer perceptron: ReLU in its hidden layers, softmax cross-entropy as the loss."""

    kind: Literal["mlp"] = "mlp"
    hidden_widths: tuple[int, ...] = Field(
        description="units of each hidden layer, from the first to the last"
    )

    @field_validator("hidden_widths")
    @classmethod
    def _are_layers(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        if not 1 <= len(widths) <= MOST_LAYERS:
            raise ValueError(f"{len(widths)} layers: 1 to {MOST_LAYERS} are taken")
        for width in widths:
            if not 1 <= width <= MOST_WIDTH:
                raise ValueError(f"{width} units: each layer has from 1 to {MOST_WIDTH}")
        return widths


class Torch(Part):
    """A PyTorch module: one of the package's by name, or your own from a file."""

    kind: Literal["torch"] = "torch"
    name: str | None = Field(
        default=None, description="a module of the package, such as lenet5, mcmahan-cnn or mlp"
    )
    source: str | None = Field(
        default=None, description="your own: file.py:function, which makes the module"
    )
    relative_to: RelativeTo = "working-folder"
    arguments: Options = Field(
        default=Options.model_validate({}),
        description="what the function that makes the module is called with",
    )
    loss: str = Field(description="what a sample costs, such as cross-entropy")
    optimiser: str = Field(description="of torch.optim by name, such as SGD")
    optimiser_settings: Options = Field(
        default=Options.model_validate({}),
        description="of the optimiser, such as momentum; the step size is learn.step_size",
    )

    @model_validator(mode="after")
    def _one_module(self) -> Self:
        if (self.name is None) == (self.source is None):
            told = "neither is" if self.name is None else "both are"
            raise ValueError(f"a torch model has either a name or a source, and {told} given")
        return self


class Plugin(Part):
    """A learner that another package adds (entry point group agewise.learners)."""

    kind: Literal["plugin"] = "plugin"
    name: str = Field(description="the name of the entry point")
    settings: Options = Field(
        default=Options.model_validate({}), description="what the learner is told"
    )


class NoPenalty(Part):
    """The objective has no penalty."""

    kind: Literal["none"] = "none"


class L2(Part):
    """Half the squared length of the weights, without the bias."""

    kind: Literal["l2"] = "l2"
    weight: float = Field(ge=0, le=LARGE, description="xi, the weight of the penalty")


class L1(Part):
    """The sum of the magnitudes of the weights, without the bias."""

    kind: Literal["l1"] = "l1"
    weight: float = Field(ge=0, le=LARGE, description="xi, the weight of the penalty")


class PlainObjective(Part):
    """A UE goes down the gradient of its own objective, as in the paper."""

    kind: Literal["none"] = "none"


class Proximal(Part):
    """Half mu times the squared distance from the round's model is added: FedProx."""

    kind: Literal["proximal"] = "proximal"
    mu: float = Field(gt=0, le=LARGE, description="the weight of the proximal term")


class ControlVariates(Part):
    """Gradients are corrected for how a UE's own differ from those of all: SCAFFOLD."""

    kind: Literal["control-variates"] = "control-variates"


class WeightedAverage(Part):
    """The models that arrived, averaged by their numbers of samples (the paper)."""

    kind: Literal["average"] = "average"


class NoDiscount(Part):
    """An old update counts as much as a new one."""

    kind: Literal["none"] = "none"


class FixedDiscount(Part):
    """An update that is n rounds old counts exp(-rate n) of a new one."""

    kind: Literal["fixed"] = "fixed"
    rate: float = Field(gt=0, le=100, description="g, by round")


class AgreementDiscount(Part):
    """An old update counts by how well old ones have predicted new ones so far."""

    kind: Literal["agreement"] = "agreement"


class UpdateMemory(Part):
    """The last update of every UE, also of those not heard now (MIFA, Gu et al. 2021)."""

    kind: Literal["memory"] = "memory"
    discount: Annotated[
        NoDiscount | FixedDiscount | AgreementDiscount, Field(discriminator="kind"), ByName
    ] = Field(description="how the weight of an update falls with its age")


class VarianceReduction(Part):
    """What arrived, corrected by the last updates of all (FedVARP, Jhunjhunwala et al. 2022)."""

    kind: Literal["variance-reduced"] = "variance-reduced"


class ServerMomentum(Part):
    """The average update with momentum (FedAvgM; Reddi et al. 2021)."""

    kind: Literal["momentum"] = "momentum"
    beta: float = Field(ge=0, lt=1, description="share of the last step that is taken again")
    server_step: float = Field(
        gt=0, le=LARGE, description="step of the access point; 1 takes it whole"
    )


class ServerAdam(Part):
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


class Learn(Part):
    """The model, its objective (Eq. 1) and local learning (Algorithm 3)."""

    model: Annotated[
        Linear | KMeans | Mlp | Torch | Plugin, Field(discriminator="kind"), ByName
    ] = Field(description="what is learned")
    penalty: Annotated[NoPenalty | L2 | L1, Field(discriminator="kind"), ByName] = Field(
        description="what large weights cost: r(w)"
    )
    aggregation: Annotated[
        WeightedAverage | UpdateMemory | VarianceReduction | ServerMomentum | ServerAdam,
        Field(discriminator="kind"),
        ByName,
    ] = Field(description="what the access point makes of the updates")
    local: Annotated[
        PlainObjective | Proximal | ControlVariates, Field(discriminator="kind"), ByName
    ] = Field(default=PlainObjective(), description="what keeps a UE's local steps from drifting")
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

    @model_validator(mode="after")
    def _has_gradients(self) -> Self:
        if isinstance(self.model, KMeans) and not isinstance(self.local, PlainObjective):
            raise ValueError(
                f"local = {self.local.kind!r} corrects gradients, and k-means moves centres: "
                'choose another model, or local = "none"'
            )
        return self

    @model_validator(mode="after")
    def _variates_follow_from_steps(self) -> Self:
        if isinstance(self.model, Torch) and isinstance(self.local, ControlVariates):
            require_plain_sgd(self.model.optimiser, self.model.optimiser_settings.values())
        return self

    def step_of(self, t: int) -> float:
        """The step size of round ``t``."""
        return self.step_size / (1.0 + self.step_decay * t)


def require_plain_sgd(optimiser: str, settings: Mapping[str, object]) -> None:
    """``ValueError`` unless every step is the step size times the gradient.

    Control variates are read off the distance that a UE went: (w^t - w_k) / (tau eta) is the mean
    of its gradients with such steps alone.
    """
    bent = [name for name in ("momentum", "maximize") if settings.get(name)]
    if optimiser == "SGD" and not bent:
        return
    told = f"{bent[0]} = {settings[bent[0]]}" if optimiser == "SGD" else optimiser
    raise ValueError(
        f"local = 'control-variates' needs steps along the gradient, and those of {told} are not: "
        'set learn.model.optimiser to SGD without momentum, or local to "none" or proximal'
    )


class NoOptimum(Part):
    """The optimum of problem (3) is not worked out."""

    kind: Literal["never"] = "never"


class SampledOptimum(Part):
    """The optimum of problem (3) is worked out in some rounds, beside what the policy chose."""

    kind: Literal["sampled"] = "sampled"
    every: int = Field(ge=1, le=MOST, description="in every n-th round")
    work_limit: int = Field(
        ge=0, le=MOST_STEPS, description="steps of the search in a round, about a million a second"
    )


class Measurement(Part):
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
