"""What a run leaves behind: a record of every round, and the file that keeps them."""

import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise.age import f_alpha, next_ages
from agewise.files import write_whole

if TYPE_CHECKING:
    import pandas
    import polars

_FORMAT = 1
_MEASURED = ("accuracy", "test_loss", "objective", "gradient_diversity")


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """One communication round: who was scheduled, whose update arrived, and what it did.

    ``owner[subchannel]`` and ``power[subchannel]`` are the allocation; ``ages[ue]`` are those
    after the round, T[t+1]; ``participation[ue]`` counts the updates received so far.
    ``accuracy``, ``test_loss`` and ``objective`` are ``None`` in rounds that do not measure
    them, and ``gradient_diversity`` where no update arrived.
    """

    t: int
    scheduled: NDArray[np.int64]
    received: NDArray[np.int64]
    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    ages: NDArray[np.int64]
    participation: NDArray[np.int64]
    gradient_diversity: float | None
    accuracy: float | None
    test_loss: float | None
    objective: float | None


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
    def collect(cls, info: RunInfo, records: Iterable[RoundRecord], age_alpha: float) -> "History":
        """The history of these rounds; the cost of the ages is the sum of their f_alpha."""
        return cls(info, _frame(list(records), age_alpha))

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

    @property
    def participation(self) -> NDArray[np.int64]:
        """``[ue]``: in how many rounds an update of the UE arrived."""
        received = np.array(self.frame["received"].explode().drop_nulls(), dtype=np.int64)
        return np.bincount(received, minlength=self.info.scenario["cell"]["ues"])

    @property
    def ages(self) -> NDArray[np.int64]:
        """``[round, ue]``: the ages after each round, worked out by Eq. 2."""
        ages = np.zeros(self.info.scenario["cell"]["ues"], dtype=np.int64)
        after = []
        for received in self.frame["received"].to_list():
            ages = next_ages(ages, np.array(received, dtype=np.int64))
            after.append(ages)
        return np.array(after)

    def to_polars(self) -> "polars.DataFrame":
        """The rounds as a Polars data frame."""
        return self.frame

    def to_pandas(self) -> "pandas.DataFrame":
        """The rounds as a pandas data frame (``pip install 'agewise[pandas]'``)."""
        return as_pandas(self.frame)

    def save(self, path: Path | str) -> None:
        """Write one Parquet file that carries the rounds and what they follow from."""
        with write_whole(Path(path)) as temporary:
            temporary.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes; the same for the same run, to the bit."""
        described = json.dumps(
            {
                "format": _FORMAT,
                "scenario": self.info.scenario,
                "policy": self.info.policy,
                "parameters": self.info.parameters,
                "seed": self.info.seed,
                "version": self.info.version,
            }
        )
        buffer = io.BytesIO()
        self.frame.write_parquet(buffer, compression="zstd", metadata={"agewise": described})
        return buffer.getvalue()

    @classmethod
    def load(cls, path: Path | str) -> "History":
        """Read a file that `save` wrote; ``ValueError`` if it is not one."""
        import polars as pl

        try:
            described = json.loads(pl.read_parquet_metadata(path)["agewise"])
            frame = pl.read_parquet(path)
        except KeyError:
            raise ValueError(f"{path}: a Parquet file, but not of an Agewise run") from None
        except (Exception, pl.exceptions.PanicException) as error:
            # A damaged file can fail anywhere in the reader.
            raise ValueError(f"{path}: not a readable Parquet file: {error}") from error
        if described.get("format") != _FORMAT:
            raise ValueError(
                f"{path}: written in format {described.get('format')}, this version reads {_FORMAT}"
            )
        info = {key: value for key, value in described.items() if key != "format"}
        return cls(RunInfo(**info), frame)

    def _numbers(self, column: str) -> NDArray[np.float64]:
        return self.frame[column].fill_null(math.nan).to_numpy().astype(np.float64)


def as_pandas(frame: "polars.DataFrame") -> "pandas.DataFrame":
    """A Polars data frame as a pandas one, without further packages."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pandas is not installed: pip install 'agewise[pandas]'"
        ) from error
    return pandas.DataFrame(frame.to_dict(as_series=False))


def _frame(records: list[RoundRecord], age_alpha: float) -> "polars.DataFrame":
    import polars as pl

    ages = np.stack([record.ages for record in records])
    owner = np.stack([record.owner for record in records])
    participation = np.stack([record.participation for record in records])

    def column(name: str, kind: Any) -> Any:
        return pl.Series(name, [getattr(record, name) for record in records], dtype=kind)

    def lists(name: str, kind: Any) -> Any:
        values = [getattr(record, name).tolist() for record in records]
        return pl.Series(name, values, dtype=pl.List(kind))

    return pl.DataFrame(
        [
            column("t", pl.Int32).alias("round"),
            *(column(name, pl.Float64) for name in _MEASURED),
            pl.Series("age_mean", ages.mean(axis=1)),
            pl.Series("age_peak", ages.max(axis=1)),
            pl.Series("age_cost", f_alpha(ages, age_alpha).sum(axis=1)),
            pl.Series("reached", (participation > 0).sum(axis=1), dtype=pl.Int32),
            pl.Series("subchannels_used", (owner >= 0).sum(axis=1), dtype=pl.Int32),
            lists("scheduled", pl.Int32),
            lists("received", pl.Int32),
            lists("owner", pl.Int32),
            lists("power", pl.Float64),
        ]
    )
