"""What a run leaves behind: a record of every round, and the file that keeps them."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas
    import polars

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """One communication round.

    Ages are those after the round, T[t+1]; ``age_cost`` is the sum of their f_alpha. ``accuracy``,
    ``test_loss`` and ``objective`` are ``None`` in rounds that do not measure them, and
    ``gradient_diversity`` where no update arrived. ``reached`` counts the UEs from which at
    least one update has arrived so far.
    """

    t: int
    scheduled: NDArray[np.int64]
    received: NDArray[np.int64]
    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    age_mean: float
    age_peak: int
    age_cost: float
    reached: int
    gradient_diversity: float | None
    accuracy: float | None
    test_loss: float | None
    objective: float | None

    @property
    def subchannels_used(self) -> int:
        """How many subchannels carry an upload."""
        return int(np.count_nonzero(self.owner >= 0))


@dataclass(frozen=True, eq=False)
class RunInfo:
    """What a run follows from: the resolved scenario, the policy, the seed and the version."""

    scenario: dict[str, Any]
    policy: str
    parameters: dict[str, Any]
    seed: int
    version: str


@dataclass(frozen=True, eq=False)
class History:
    """All rounds of one run, with what they follow from. ``frame`` has one row per round."""

    info: RunInfo
    frame: "polars.DataFrame"

    @classmethod
    def collect(cls, info: RunInfo, records: Iterable[RoundRecord]) -> "History":
        """The history of these rounds."""
        return cls(info, _frame(list(records)))

    def __len__(self) -> int:
        return self.frame.height

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Test accuracy after each round; NaN where it was not measured."""
        return self._numbers("accuracy")

    @property
    def owner(self) -> NDArray[np.int64]:
        """``[round, subchannel]``: the UE that held it, or -1."""
        return np.array(self.frame["owner"].to_list(), dtype=np.int64)

    def participation(self, ue_count: int | None = None) -> NDArray[np.int64]:
        """``[ue]``: in how many rounds an update of the UE arrived."""
        received = [ue for round_ in self.frame["received"].to_list() for ue in round_]
        count = self.info.scenario["cell"]["ues"] if ue_count is None else ue_count
        return np.bincount(np.array(received, dtype=np.int64), minlength=count)

    def ages(self) -> NDArray[np.int64]:
        """``[round, ue]``: the ages after each round, worked out by Eq. 2."""
        ages = np.zeros(self.info.scenario["cell"]["ues"], dtype=np.int64)
        after = []
        for received in self.frame["received"].to_list():
            ages = ages + 1
            ages[received] = 0
            after.append(ages)
        return np.array(after)

    def to_polars(self) -> "polars.DataFrame":
        """The rounds as a Polars data frame."""
        return self.frame

    def to_pandas(self) -> "pandas.DataFrame":
        """The rounds as a pandas data frame (``pip install 'agewise[pandas]'``)."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "to_pandas() needs pandas: pip install 'agewise[pandas]'"
            ) from error
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def save(self, path: Path | str) -> None:
        """Write one Parquet file that carries the rounds and what they follow from."""
        from agewise.files import write_whole

        described = json.dumps(
            {
                "format": _FORMAT,
                "scenario": self.info.scenario,
                "policy": self.info.policy,
                "parameters": self.info.parameters,
                "seed": self.info.seed,
                "version": self.info.version,
            },
            sort_keys=True,
        )
        with write_whole(Path(path)) as temporary:
            self.frame.write_parquet(temporary, compression="zstd", metadata={"agewise": described})

    @classmethod
    def load(cls, path: Path | str) -> "History":
        """Read a file that `save` wrote; ``ValueError`` if it is not one."""
        import polars as pl

        try:
            described = json.loads(pl.read_parquet_metadata(path)["agewise"])
            frame = pl.read_parquet(path)
        except KeyError:
            raise ValueError(f"{path}: a Parquet file, but not of an Agewise run") from None
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise ValueError(f"{path}: not a readable Parquet file: {error}") from error
        if described.get("format") != _FORMAT:
            raise ValueError(
                f"{path}: written in format {described.get('format')}, this version reads {_FORMAT}"
            )
        info = {key: value for key, value in described.items() if key != "format"}
        return cls(RunInfo(**info), frame)

    def _numbers(self, column: str) -> NDArray[np.float64]:
        return self.frame[column].fill_null(math.nan).to_numpy().astype(np.float64)


def _frame(records: list[RoundRecord]) -> "polars.DataFrame":
    import polars as pl

    indices = pl.List(pl.Int32)
    columns: dict[str, Any] = {
        "round": pl.Int32,
        "accuracy": pl.Float64,
        "test_loss": pl.Float64,
        "objective": pl.Float64,
        "gradient_diversity": pl.Float64,
        "age_mean": pl.Float64,
        "age_peak": pl.Int64,
        "age_cost": pl.Float64,
        "reached": pl.Int32,
        "subchannels_used": pl.Int32,
        "scheduled": indices,
        "received": indices,
        "owner": indices,
        "power": pl.List(pl.Float64),
    }
    values: dict[str, list[Any]] = {
        name: [getattr(record, "t" if name == "round" else name) for record in records]
        for name in columns
    }
    for name in ("scheduled", "received", "owner", "power"):
        values[name] = [array.tolist() for array in values[name]]
    return pl.DataFrame(values, schema=columns)
