"""Records of a run: one of every round, and the file that keeps them."""

import contextlib
import functools
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise import display
from agewise.age import f_alpha, next_ages
from agewise.checks import first_line, path_of, short
from agewise.dependencies import pl, refuse_after_fork, require
from agewise.files import (
    NO_CHECKSUM,
    NotRegularFile,
    add_checksum,
    parse_json,
    read_regular_file,
    verify_checksum,
    write_whole,
)

if TYPE_CHECKING:
    import pandas

#: The format that is written and read.
_FORMAT = 6
_KEY = "agewise"
#: The largest file of a run that is read; no longer one is written into a results folder.
MOST_BYTES = 256 * 2**20
#: Of a larger cell (UEs x subchannels) the gains that a policy could choose from are not kept.
MOST_GAINS = 2**16

#: What became of the upload of a scheduled UE: it arrived, or why not. It was too late, its true
#: rate was below the threshold, or the battery did not last.
OUTCOMES = ("received", "late", "outage", "battery")

#: What a parameter of a policy may be: plain data that JSON gives back as it was.
Value = bool | int | float | str | None | tuple["Value", ...]


@dataclass(frozen=True)
class PolicyKey:
    """Key of a policy: its name and all its parameters, as data that can be compared and kept.

    Parameters that are not plain data are kept by what they are as text. As text it is what makes
    the policy, in which the parameters are left out that are as ``usual``, at their defaults.

    >>> print(PolicyKey("age-based", {"alpha": 0.25, "ties": "random"}, usual=("ties",)))
    age-based:alpha=0.25
    """

    name: str
    parameters: Mapping[str, Value]
    usual: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.parameters, Mapping):
            raise ValueError(
                "a policy is a name and its parameters by name, not "
                f"{short(repr((self.name, self.parameters)))}"
            )
        plain = {name: _hashable(plain_value(x)) for name, x in self.parameters.items()}
        object.__setattr__(self, "parameters", plain)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.parameters.items())))

    def __str__(self) -> str:
        inside = ",".join(
            f"{name}={x if isinstance(x, str) else repr(x).removesuffix('.0')}"
            for name, x in self.parameters.items()
            if name not in self.usual
        )
        return f"{self.name}:{inside}" if inside else self.name

    def to_json(self) -> dict[str, object]:
        """As plain data for JSON."""
        parameters, usual = dict(self.parameters), list(self.usual)
        return {"name": self.name, "parameters": parameters, "usual": usual}

    @classmethod
    def from_json(cls, values: object) -> "PolicyKey":
        """Read what `to_json` gave; ``ValueError`` if it is something else."""
        match values:
            case {"name": str(name), "parameters": dict(parameters), "usual": list(usual)}:
                return cls(name, parameters, tuple(map(str, usual)))
        raise ValueError(f"a policy is a name, parameters and usual ones, not {values!r}")


class Delivery(NamedTuple):
    """Uploads of a round, on the channel that they met.

    ``scheduled`` and ``received`` are UEs in rising order; ``outcome`` (one of `OUTCOMES`) says of
    each scheduled one whether its update arrived, and ``rate`` (bits per real channel use) what it
    reached. ``owner[subchannel]``, ``power[subchannel]`` and ``gain[subchannel]`` are the
    allocation with the owner's true gain; -1 and 0 where nobody transmits. ``version[i]`` is the
    round of the model that the update of the i-th scheduled UE started from, ``None`` where all
    start from the newest.
    """

    scheduled: NDArray[np.int64]
    received: NDArray[np.int64]
    outcome: NDArray[np.str_]
    rate: NDArray[np.float64]
    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    gain: NDArray[np.float64]
    version: NDArray[np.int64] | None = None

    @property
    def received_versions(self) -> NDArray[np.int64] | None:
        """The versions of the updates that were received; ``None`` where all are the newest."""
        return None if self.version is None else self.version[self.outcome == "received"]


#: Nobody's battery ran out.
_NOBODY = np.empty(0, np.int64)


class RoundCost(NamedTuple):
    """Cost of a round (`agewise.cost`), also of uploads that did not arrive.

    ``energy_j[i]`` is that of the i-th scheduled UE. ``seconds`` and ``energy_j`` are ``None``
    where the scenario has no times in seconds; a live federation has seconds by the server's clock
    and counts nothing else. ``channel_uses`` are real channel uses: the airtime, summed over
    subchannels. The batteries of the UEs ``emptied`` ran out. ``background_j`` are joules that UEs
    spent together on learning that is not of this round's uploads: for probes, or period after
    period where the pace is periodic.
    """

    seconds: float | None = None
    energy_j: NDArray[np.float64] | None = None
    channel_uses: float | None = None
    bits: float | None = None
    emptied: NDArray[np.int64] = _NOBODY
    background_j: float = 0.0

    @property
    def joules(self) -> float | None:
        """Joules that all UEs spent together."""
        return None if self.energy_j is None else float(self.energy_j.sum()) + self.background_j


class Evaluation(NamedTuple):
    """Quality of a model on the test samples: share classified rightly, mean loss; NaN if unknown.

    ``class_accuracy[class]`` is the share of the class's own test samples that are classified
    rightly, NaN where it has none.
    """

    accuracy: float
    loss: float
    class_accuracy: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, right: NDArray[np.int64], samples: NDArray[np.int64], loss: float) -> "Evaluation":
        """Evaluate from how many ``samples[class]`` there are and are classified ``right[class]``.

        ``loss`` is the sum over all samples.
        """
        share = np.full(samples.size, np.nan)
        np.divide(right, samples, out=share, where=samples > 0)
        count = int(samples.sum())
        return cls(int(right.sum()) / count, loss / count, share)


class Optimum(NamedTuple):
    """Problem (3) beside what a policy chose, all by f_alpha of the ages before the round.

    ``weight`` is that of the scheduled UEs, ``value`` the best that was found, and no allocation
    exceeds ``bound``.
    """

    weight: float
    value: float
    bound: float


class Eligible(NamedTuple):
    """Choices that a policy had in round ``t``.

    ``need[ue]`` is the fewest subchannels with which the UE reaches the rate threshold (Algorithm
    1) while all of them are free, 0 if none suffice. ``gain[ue, subchannel]`` are the gains as the
    access point saw them, ``None`` of a cell with more than `MOST_GAINS` of them.
    """

    t: int
    need: NDArray[np.int64]
    gain: NDArray[np.float32] | None


class RoundRecord(NamedTuple):
    """One communication round: who uploaded, what it cost, and what it did to the model.

    ``ages[ue]`` are those after the round, T[t+1]; ``participation[ue]`` counts the updates
    received so far. ``evaluation``, ``objective`` and ``optimum`` are ``None`` in rounds that do
    not measure them, and ``gradient_diversity`` where no update arrived. ``positions_m[ue, xy]``
    is where the UEs were, ``None`` where they stay at those of `RunInfo`. One round of a run, in
    its middle, keeps who was ``eligible``.
    """

    t: int
    delivery: Delivery
    ages: NDArray[np.int64]
    participation: NDArray[np.int64]
    cost: RoundCost
    gradient_diversity: float | None = None
    evaluation: Evaluation | None = None
    objective: float | None = None
    optimum: Optimum | None = None
    positions_m: NDArray[np.float32] | None = None
    eligible: Eligible | None = None

    def row(self) -> dict[str, object]:
        """Flatten to the columns of a file; those of ages are worked out for all rounds at once."""
        measured = self.evaluation or Evaluation(math.nan, math.nan)
        weight, value, bound = self.optimum or (None, None, None)
        _, need, offered = self.eligible or (None, None, None)
        lists = {
            **self.delivery._asdict(),
            "energy_j": self.cost.energy_j,
            "emptied": self.cost.emptied,
            "class_accuracy": measured.class_accuracy,
            "positions_m": self.positions_m,
            "need": need,
            "eligible_gain": offered,
        }
        return {
            "round": self.t,
            "accuracy": _number(measured.accuracy),
            "test_loss": _number(measured.loss),
            "objective": self.objective,
            "gradient_diversity": self.gradient_diversity,
            "weight": weight,
            "optimum": value,
            "optimum_bound": bound,
            "seconds": self.cost.seconds,
            "joules": self.cost.joules,
            "background_j": self.cost.background_j,
            "channel_uses": self.cost.channel_uses,
            "bits": self.cost.bits,
            **{name: None if x is None else x.ravel().tolist() for name, x in lists.items()},
        }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True, eq=False, repr=False)
class RunInfo:
    """Origin of a run, and what stays the same in all its rounds.

    ``scenario`` holds every value of the resolved scenario. ``positions_m[ue, (x, y)]`` and
    ``label_counts[ue, class]`` are ``None`` where they are not known; ``class_names[class]`` says
    what the classes stand for. ``sources`` has the SHA-256 of what a run is computed from besides
    the package and the scenario, by the names of `agewise.provenance`.
    """

    scenario: Mapping[str, Any]
    policy: PolicyKey
    seed: int
    version: str
    positions_m: NDArray[np.float64] | None
    label_counts: NDArray[np.int64] | None
    class_names: tuple[str, ...]
    sources: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<RunInfo {self.policy}, seed {self.seed}, Agewise {self.version}>"

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.scenario["cell"]["ues"])


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """Rounds of one run, with what they follow from. ``frame`` has one row per round."""

    info: RunInfo
    frame: "pl.DataFrame"

    @classmethod
    def collect(cls, info: RunInfo, records: Iterable[RoundRecord], age_alpha: float) -> "History":
        """The history of these rounds; the cost of the ages is the sum of their f_alpha."""
        return cls(info, _frame(list(records), age_alpha))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        run = f"{self.info.policy}, seed {self.info.seed}"
        measured = self.frame["accuracy"].drop_nulls()
        end = f", accuracy {measured[-1]:.1%}" if len(measured) else ""
        return f"<History {run}: {len(self):,} rounds, {self.info.ue_count:,} UEs{end}>"

    def _repr_html_(self) -> str:
        uploads = sum(map(len, self.received)) / max(len(self), 1)
        heard = int(np.count_nonzero(self.participation))
        said = {
            "policy": self.info.policy,
            "seed": self.info.seed,
            "rounds": f"{len(self):,}",
            "updates a round": f"{uploads:.1f}",
            "UEs heard": f"{heard:,} of {self.info.ue_count:,}",
            "mean age": f"{self.ages.mean():.1f} rounds" if len(self) else "",
        }
        curve = {"test accuracy": self.accuracy}
        return display.facts("History", said, display.lines(curve, "test accuracy over rounds"))

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """``[round]``: test accuracy after each; NaN where it was not measured."""
        return self.numbers("accuracy")

    @property
    def class_accuracy(self) -> NDArray[np.float64]:
        """``[round, class]``: test accuracy of each class; NaN where it was not measured."""
        measured = self.frame["class_accuracy"]
        table = np.full((len(self), len(self.info.class_names)), math.nan)
        if measured.null_count() < len(self):
            table[measured.is_not_null().to_numpy()] = measured.drop_nulls().to_list()
        return table

    @property
    def owner(self) -> NDArray[np.int64]:
        """``[round, subchannel]``: the UE that held it, or -1."""
        return self._table("owner").astype(np.int64)

    @property
    def power(self) -> NDArray[np.float64]:
        """``[round, subchannel]``: what its owner spent there; 0 where nobody transmitted."""
        return self._table("power")

    @property
    def gain(self) -> NDArray[np.float64]:
        """``[round, subchannel]``: the owner's true gain; 0 where nobody transmitted."""
        return self._table("gain")

    @property
    def scheduled(self) -> list[NDArray[np.int64]]:
        """``[round]``: the scheduled UEs of each."""
        return [np.array(ues, np.int64) for ues in self.frame["scheduled"].to_list()]

    @property
    def received(self) -> list[NDArray[np.int64]]:
        """``[round]``: the UEs of each whose update arrived."""
        return [np.array(ues, np.int64) for ues in self.frame["received"].to_list()]

    @property
    def rate(self) -> list[NDArray[np.float64]]:
        """``[round]``: the rates of the scheduled UEs of each, in bits per channel use."""
        return [np.array(rates, np.float64) for rates in self.frame["rate"].to_list()]

    @property
    def outcome(self) -> list[NDArray[np.str_]]:
        """``[round]``: what became of the uploads of the scheduled UEs of each (`OUTCOMES`)."""
        return [np.array(outcomes, np.str_) for outcomes in self.frame["outcome"].to_list()]

    @property
    def version(self) -> list[NDArray[np.int64]]:
        """``[round]``: the rounds of the models that the scheduled UEs of each started from."""
        if self.frame["version"].null_count():
            return [np.full(ues.size, t) for t, ues in enumerate(self.scheduled)]
        return [np.array(versions, np.int64) for versions in self.frame["version"].to_list()]

    @property
    def staleness(self) -> list[NDArray[np.int64]]:
        """``[round]``: how many rounds old the models were that received updates started from."""
        both = zip(self.version, self.outcome, strict=True)
        return [t - version[outcome == "received"] for t, (version, outcome) in enumerate(both)]

    @property
    def outcome_counts(self) -> dict[str, int]:
        """Count the uploads of the run that came to each of `OUTCOMES`."""
        all_of_them = self.frame["outcome"].explode()
        return {outcome: int((all_of_them == outcome).sum()) for outcome in OUTCOMES}

    @property
    def energy_j(self) -> NDArray[np.float64]:
        """``[ue]``: joules that each spent in the whole run; NaN where they are not known."""
        if self.frame["energy_j"].null_count():
            return np.full(self.info.ue_count, math.nan)
        scheduled, spent = (
            self.frame[name].explode().drop_nulls().to_numpy() for name in ("scheduled", "energy_j")
        )
        total = np.zeros(self.info.ue_count)
        np.add.at(total, scheduled, spent)
        return total

    @property
    def emptied(self) -> list[NDArray[np.int64]]:
        """``[round]``: the UEs whose batteries ran out in each."""
        return [np.array(ues, np.int64) for ues in self.frame["emptied"].to_list()]

    @property
    def positions_m(self) -> NDArray[np.float32] | None:
        """``[round, ue, (x, y)]`` where UEs move; ``None`` where they stay (`RunInfo`)."""
        if self.frame["positions_m"].null_count():
            return None
        return self._table("positions_m").astype(np.float32).reshape(len(self), -1, 2)

    @property
    def eligible(self) -> Eligible | None:
        """Choices of the policy in the middle of the run; ``None`` if not recorded."""
        kept = self.frame.filter(pl.col("need").is_not_null())
        if kept.is_empty():
            return None
        need = kept["need"][0].to_numpy().astype(np.int64)
        gain = kept["eligible_gain"][0]
        table = None if gain is None else gain.to_numpy().reshape(need.size, -1)
        return Eligible(int(kept["round"][0]), need, table)

    @property
    def participation(self) -> NDArray[np.int64]:
        """``[ue]``: in how many rounds an update of the UE arrived."""
        return np.bincount(np.concatenate(self.received), minlength=self.info.ue_count)

    @property
    def ages(self) -> NDArray[np.int64]:
        """``[round, ue]``: the ages after each round, worked out by Eq. 2."""
        ages = np.zeros(self.info.ue_count, dtype=np.int64)
        after = []
        for received in self.received:
            ages = next_ages(ages, received)
            after.append(ages)
        return np.array(after)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """``[round]``: a column of numbers; NaN where it was not measured."""
        return self.frame[column].to_numpy().astype(np.float64)

    def _table(self, column: str) -> NDArray[Any]:
        """``[round, entry]``: a column of lists that are all equally long."""
        return self.frame[column].explode().to_numpy().reshape(len(self), -1)

    def to_polars(self) -> "pl.DataFrame":
        """The rounds as a Polars data frame."""
        return self.frame

    def to_pandas(self) -> "pandas.DataFrame":
        """The rounds as a pandas data frame (``pip install 'agewise[pandas]'``)."""
        return as_pandas(self.frame)

    def save(self, path: Path | str) -> None:
        """Write one Parquet file that carries the rounds and what they follow from."""
        write_whole(path_of("path", path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes; the same for the same run, to the bit.

        A checksum of the whole content is part of it.
        """
        refuse_after_fork()
        described = {"format": _FORMAT, **vars(self.info), "checksum": NO_CHECKSUM}
        described |= {"policy": self.info.policy.to_json(), "sources": dict(self.info.sources)}
        buffer = io.BytesIO()
        metadata = {_KEY: json.dumps(described, default=np.ndarray.tolist)}
        self.frame.write_parquet(buffer, compression="zstd", metadata=metadata)
        return add_checksum(buffer.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> "History":
        """Read a file that `save` wrote; ``ValueError`` if it is not one, to the bit."""
        content = _read(path_of("path", path).resolve(), path)
        info = _info_of(content, path)
        with _trouble_named(f"{path}: does not hold the rounds of a run"):
            frame = pl.read_parquet(io.BytesIO(content))
            _require_fit(frame, info)
        return cls(info, frame)


def read_info(path: Path) -> RunInfo:
    """Read the origin of the run in a file; the whole file is checked as by `History.load`.

    Links are not followed, for the file may be in a folder of somebody else's.
    """
    return _info_of(_read(path, path), path)


def as_pandas(frame: "pl.DataFrame") -> "pandas.DataFrame":
    """A Polars data frame as a pandas one, without further packages."""
    return require("pandas", "pandas").DataFrame(frame.to_dict(as_series=False))


def plain_value(value: object) -> object:
    """Data as JSON can keep it: NumPy's numbers as Python's, lists as tuples, the rest as text."""
    match value:
        case np.generic():
            return value.item()
        case list() | tuple():
            return tuple(map(plain_value, value))
        case Mapping():
            return {str(name): plain_value(inner) for name, inner in value.items()}
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _hashable(value: object) -> Value:
    """A plain value with mappings as text."""
    match value:
        case tuple():
            return tuple(map(_hashable, value))
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _read(file: Path, path: Path | str) -> bytes:
    """The content of just this file: Polars itself would expand ``*`` and ``[`` in its name."""
    refuse_after_fork()
    try:
        return read_regular_file(file, MOST_BYTES)
    except NotRegularFile as error:
        raise ValueError(f"{path}: not read: it is {error.strerror}") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def _trouble_named(what: str) -> Iterator[None]:
    """Raise ``ValueError`` with the first line of whatever goes wrong inside.

    A checksum proves no origin: bytes that a stranger put together may fail in any way, also
    anywhere in the reader.
    """
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as error:
        raise ValueError(f"{what}: {first_line(error)}") from error


def _info_of(content: bytes, path: Path | str) -> RunInfo:
    """Read the origin of the run from its file, after a check of every byte.

    Only content that is as it was written gets as far as the reader of its rounds, which may fail
    in any way on other bytes.
    """
    whole = verify_checksum(content)
    if whole is False:
        raise ValueError(f"{path}: damaged: its content does not match its checksum")
    with _trouble_named(f"{path}: not a readable Parquet file"):
        text = pl.read_parquet_metadata(io.BytesIO(content)).get(_KEY)
        found = None if text is None else parse_json(text)
    if text is None:
        raise ValueError(f"{path}: a Parquet file, but not of an Agewise run")
    match found:
        case {"format": int(number)} if number < _FORMAT:
            raise ValueError(f"{path}: written by an older version (format {number}); run it again")
        case {"format": int(number)} if number > _FORMAT:
            newer = f"written by a newer version (format {number})"
            raise ValueError(f"{path}: {newer}; this one reads up to {_FORMAT}")
    if whole is None:
        raise ValueError(f"{path}: damaged: there is no checksum in it")
    with _trouble_named(f"{path}: does not describe a run"):
        info = _info_from_json(found if isinstance(found, dict) else {})
        rounds, lazy = info.scenario["run"]["rounds"], pl.scan_parquet(io.BytesIO(content))
        if dict(lazy.collect_schema()) != _schema():
            raise ValueError("its columns are not those of a run")
        if (rows := lazy.select(pl.len()).collect().item()) != rounds:
            raise ValueError(f"it has {rows} rows for {rounds} rounds")
    return info


def _require_fit(frame: "pl.DataFrame", info: RunInfo) -> None:
    """``ValueError`` with what in these rounds cannot be of such a run."""
    ues, subchannels = info.scenario["cell"]["ues"], info.scenario["cell"]["subchannels"]
    rounds = info.scenario["run"]["rounds"]
    if frame["round"].to_list() != list(range(rounds)):
        raise ValueError(f"they do not go from 0 to {rounds - 1}")
    for name, least in {"scheduled": 0, "received": 0, "owner": -1, "emptied": 0}.items():
        if not frame[name].explode().drop_nulls().is_between(least, ues - 1).all():
            raise ValueError(f"{name} has a UE that there is not")
    for name in ("owner", "power", "gain"):
        if frame[name].explode().null_count() or (frame[name].list.len() != subchannels).any():
            raise ValueError(f"{name} is not one value for each of {subchannels} subchannels")
    scheduled = frame["scheduled"].list.len()
    lists = {"rate": "rate", "outcome": "outcome", "energy_j": "energy", "version": "version"}
    for name, what in lists.items():
        if not _is_long(frame[name], scheduled):
            raise ValueError(f"there is not one {what} for each scheduled UE")
    versions = frame.select("round", "version").explode("version").drop_nulls()
    if not versions["version"].is_between(0, versions["round"]).all():
        raise ValueError("a version is not of an earlier round")
    if not _is_long(frame["positions_m"], 2 * ues):
        raise ValueError("there is not one position for each UE")
    outcomes = frame["outcome"].explode().drop_nulls()
    if not outcomes.is_in(OUTCOMES).all():
        raise ValueError(f"an outcome is none of {', '.join(OUTCOMES)}")
    arrived = frame["scheduled"].explode().drop_nulls().filter(outcomes == "received")
    if not arrived.equals(frame["received"].explode().drop_nulls(), check_names=False):
        raise ValueError("its outcomes do not agree with who was received")
    kept = frame.filter(pl.col("need").is_not_null())
    if (frame["need"].is_null() & frame["eligible_gain"].is_not_null()).any():
        raise ValueError("there are gains without needs")
    if kept.height > 1 or (kept["need"].list.len() != ues).any():
        raise ValueError("there is not one need for each UE in one round")
    needed, gain = kept["need"].explode(), kept["eligible_gain"].explode().drop_nulls()
    if needed.null_count() or not needed.is_between(0, subchannels).all():
        raise ValueError(f"a need is not from 0 to {subchannels}")
    if gain.len() not in (0, ues * subchannels) or not (gain.is_finite() & (gain >= 0)).all():
        raise ValueError("the gains of eligible UEs are not one for each UE and subchannel")


def _is_long(lists: "pl.Series", lengths: "pl.Series | int") -> bool:
    """Tell whether the lists of all rounds have these lengths, or none has a list."""
    found = lists.list.len()
    return not (found != lengths).any() and found.null_count() in (0, found.len())


def _info_from_json(values: Mapping[str, Any]) -> RunInfo:
    return RunInfo(
        values["scenario"],
        PolicyKey.from_json(values["policy"]),
        values["seed"],
        values["version"],
        _table_of(values["positions_m"], np.float64),
        _table_of(values["label_counts"], np.int64),
        tuple(values["class_names"]),
        dict(values["sources"]),
    )


def _table_of(rows: ArrayLike | None, kind: type[np.generic]) -> NDArray[Any] | None:
    return None if rows is None else np.array(rows, dtype=kind)


@functools.cache
def _schema() -> "dict[str, pl.DataType | type[pl.DataType]]":
    """The columns of the file of a run."""
    ues, numbers = pl.List(pl.Int32), pl.List(pl.Float64)
    return {
        "round": pl.Int32,
        **dict.fromkeys(("accuracy", "test_loss", "objective", "gradient_diversity"), pl.Float64),
        **dict.fromkeys(("weight", "optimum", "optimum_bound"), pl.Float64),
        **dict.fromkeys(("seconds", "joules", "background_j"), pl.Float64),
        **dict.fromkeys(("channel_uses", "bits"), pl.Float64),
        "class_accuracy": numbers,
        "age_mean": pl.Float64,
        "age_largest": pl.Int64,
        "age_cost": pl.Float64,
        **dict.fromkeys(("reached", "subchannels_used"), pl.Int32),
        **dict.fromkeys(("scheduled", "received", "owner", "emptied"), ues),
        **dict.fromkeys(("power", "gain", "rate", "energy_j"), numbers),
        "outcome": pl.List(pl.String),
        "version": ues,
        "positions_m": pl.List(pl.Float32),
        "need": ues,
        "eligible_gain": pl.List(pl.Float32),
    }


def _frame(records: list[RoundRecord], age_alpha: float) -> "pl.DataFrame":
    ages = np.stack([record.ages for record in records])
    owner = np.stack([record.delivery.owner for record in records])
    participation = np.stack([record.participation for record in records])
    rows = [record.row() for record in records]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]} | {
        "age_mean": ages.mean(axis=1),
        "age_largest": ages.max(axis=1),
        "age_cost": f_alpha(ages, age_alpha).sum(axis=1),
        "reached": (participation > 0).sum(axis=1),
        "subchannels_used": (owner >= 0).sum(axis=1),
    }
    return pl.DataFrame([pl.Series(name, columns[name], kind) for name, kind in _schema().items()])
