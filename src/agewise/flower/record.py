"""Records of a live federation: a trace to replay, and a results folder to report on.

Flower is not needed here.
"""

import json
import math
import shutil
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from agewise.age import f_alpha
from agewise.cost import SecondsTiming
from agewise.dependencies import pl
from agewise.experiment import Folder, Plan
from agewise.files import atomic_write
from agewise.flower.links import Arrays, FederationError, Links
from agewise.policies import Policy
from agewise.readers import load_arrays
from agewise.records import Delivery, Eligible, Evaluation, History, RoundCost, RoundRecord, RunInfo
from agewise.scenario import Scenario
from agewise.scheduling import Retry
from agewise.simulation import eligible_of
from agewise.spectrum import Uplink
from agewise.version import __version__

_TRACE = "trace.npz"
#: How the names of folders begin in which results are made.
_MAKING = ".results-"
#: Results are written again after so many times the time that it takes.
_SELDOM = 100.0
#: Arrays of a round that are large, and of no use but for the trace.
_LINKS = ("gains", "true")
#: So many rounds at a time become rows of a history, whose ages are looked at all together.
_BATCH = 16

#: What is not known of a federation's learning stands as in the simplest simulation.
_LEARNING = {
    "data": {"dataset": "clients", "task": "all", "partition": "iid"},
    "learn.model.loss": "multinomial",
}


class LiveRound(NamedTuple):
    """A round that is over, for whoever watches.

    ``outcomes`` says by client id what became of each that was asked: ``received``, ``late``,
    ``failed``, ``lost`` (by the links) or ``unused`` (by the inner strategy); ``refused`` why the
    replies of some of those that failed were not taken. ``staleness`` says of those received how
    many rounds ago they were asked, where late replies count. ``ages`` are in the order of the
    ``ids`` of all clients that are not forgotten. ``seconds`` are without evaluation; what was
    not measured is NaN.
    """

    number: int
    outcomes: Mapping[str, str]
    refused: Mapping[str, str]
    staleness: Mapping[str, int]
    ids: Sequence[str]
    ages: NDArray[np.int64]
    seconds: float
    accuracy: float
    loss: float

    @classmethod
    def of(
        cls, number: int, arrays: Arrays, refused: Mapping[int, str], ids: Sequence[str]
    ) -> "LiveRound":
        """The round that a record keeps as these arrays."""
        outcomes = dict.fromkeys(arrays["policy0.scheduled"].tolist(), "unused")
        for name, key in (
            ("received", "policy0.received"), ("late", "late"), ("failed", "failed"),
            ("lost", "lost"),
        ):  # fmt: skip
            outcomes |= dict.fromkeys(arrays[key].tolist(), name)
        staleness = dict.fromkeys(arrays["policy0.received"].tolist(), 0)
        if (version := arrays.get("policy0.version")) is not None:
            came = arrays["policy0.outcome"] == "received"
            old = (number - 1 - version[came]).tolist()
            staleness = dict(zip(arrays["policy0.scheduled"][came].tolist(), old, strict=True))
        gone = set(arrays["forgotten"].tolist())
        seconds, accuracy, loss = (float(arrays[key]) for key in ("seconds", "accuracy", "loss"))
        return cls(
            number,
            {ids[row]: outcome for row, outcome in outcomes.items()},
            {ids[row]: reason for row, reason in refused.items()},
            {ids[row]: rounds for row, rounds in staleness.items()},
            [id_ for row, id_ in enumerate(ids) if row not in gone],
            np.delete(arrays["policy0.ages"], arrays["forgotten"]), seconds, accuracy, loss,
        )  # fmt: skip

    def to_json(self) -> str:
        """A line for a log: the round in numbers, and whose replies were refused.

        ``staleness`` says how many updates had which.
        """
        numbers = {
            "seconds": self.seconds,
            "accuracy": self.accuracy,
            "loss": self.loss,
            "mean_age": float(self.ages.mean()),
            "largest_age": int(self.ages.max()),
        }
        known = {name: x if math.isfinite(x) else None for name, x in numbers.items()}
        done = {
            "round": self.number,
            "asked": Counter(self.outcomes.values()),
            "staleness": Counter(self.staleness.values()),
            "refused": self.refused,
        }
        return json.dumps(done | known)


@dataclass(eq=False)
class LiveRecord:
    """Rounds so far, each a set of arrays, later a row; in a ``folder``, each also a file.

    ``policy0.ages[client]`` and so on are of the live policy, those after it are of the policies
    in its shadow. ``gains[client, subchannel]`` is what the policies saw and ``true``, where the
    uploads met others, what these were: in the file alone, and with one subchannel for all where
    no client has unlike ones.
    """

    folder: Path | None
    links: Links
    policies: Sequence[Policy]
    seed: int
    retry: Retry
    _count: int = field(default=0, init=False)
    _client_count: int = field(default=0, init=False)
    #: Rounds that are in no history yet, with ages and the like in the smallest type.
    _new: list[Arrays] = field(default_factory=list, init=False)
    #: The rounds before them: how many clients they know, and rows of each policy's history.
    _rows: "list[tuple[int, list[pl.DataFrame]]]" = field(default_factory=list, init=False)
    _written: float = field(default=0.0, init=False)
    _writing_s: float = field(default=0.0, init=False)

    def keep(self, arrays: Arrays) -> None:
        """Add a round."""
        if self.folder is not None:
            file = self._file(self._count)
            file.parent.mkdir(parents=True, exist_ok=True)
            kept = arrays | {name: _narrow(arrays[name]) for name in _LINKS if name in arrays}
            with atomic_write(file) as temporary, temporary.open("wb") as opened:
                np.savez_compressed(opened, allow_pickle=False, **kept)
        self._add(arrays)

    def _add(self, arrays: Arrays) -> None:
        self._count, self._client_count = self._count + 1, arrays["policy0.ages"].size
        kept = {name: _smallest(x) for name, x in arrays.items() if name not in _LINKS}
        self._new.append(kept)

    def resume(self, count: int) -> None:
        """Read the first ``count`` rounds of the folder; what came after them is no longer true."""
        if self.folder is None:
            return
        for left in self.folder.glob(f"{_MAKING}*"):  # by a server that was killed
            shutil.rmtree(left, ignore_errors=True)
        for t in range(count):
            self._add(self._read(t))

    def histories(self) -> list[History]:
        """A history for the live policy and for each one in its shadow."""
        if not self._count:
            raise ValueError("no round has been finished yet")
        scenario = self._scenario()
        infos = [
            RunInfo(
                scenario=scenario.resolved(),
                policy=run.policy.key,
                seed=self.seed,
                version=__version__,
                positions_m=None,
                label_counts=None,
                class_names=(),
                sources=run.sources,
            )
            for run in Plan.of(scenario, self.policies, [self.seed]).runs()
        ]
        alpha, middle = scenario.run.age_alpha, self._count // 2
        while self._new:
            self._rows.append((self._client_count, self._batch(infos, alpha)))
        found = []
        for number, info in enumerate(infos):
            rows = [
                _with_later(rows[number], count, self._client_count, alpha)
                for count, rows in self._rows
            ]
            frame = _with_eligible(pl.concat(rows), self._eligible(middle, number))
            found.append(History(info, frame))
        return found

    def _batch(self, infos: Sequence[RunInfo], alpha: float) -> "list[pl.DataFrame]":
        """Rows of each policy's history, of the first rounds that have none yet."""
        first = self._count - len(self._new)
        batch, self._new = self._new[:_BATCH], self._new[_BATCH:]
        return [
            History.collect(
                info, [self._record(first + i, x, number) for i, x in enumerate(batch)], alpha
            ).frame
            for number, info in enumerate(infos)
        ]

    def write_now_and_then(self) -> None:
        """Write the results so far, where that takes at most a hundredth of the server's time."""
        if time.monotonic() - self._written >= _SELDOM * self._writing_s:
            self._write_results()

    def write(self) -> None:
        """Write the trace, which takes as long as all rounds together, and the results."""
        if self.folder is None or not self._count:
            return
        with atomic_write(self.folder / _TRACE) as temporary, temporary.open("wb") as file:
            self._write_trace(file)
        self._write_results()

    def _write_results(self) -> None:
        """Make the folder one that ``agewise report`` reads, if there is one.

        The results of fewer rounds are made again, of all that are there now, in a folder beside
        the old ones. Then each file takes the place of the old one, so that none is ever missing.
        """
        if self.folder is None or not self._count:
            return
        began = time.monotonic()
        plan, results = Plan.of(self._scenario(), self.policies, [self.seed]), Folder(self.folder)
        results.file_names()  # refuses a link
        results.runs.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_MAKING, dir=self.folder) as made:
            new = Folder(Path(made))
            with new.opened(plan):
                for run, history in zip(plan.runs(), self.histories(), strict=True):
                    new.keep(run, history.to_bytes())
            for file in (*new.runs.iterdir(), new.scenario_file, new.description_file):
                file.replace(self.folder / file.relative_to(new.path))
        self._written = time.monotonic()
        self._writing_s = self._written - began

    def _file(self, t: int) -> Path:
        return Path(self.folder or "") / "rounds" / f"{t:06d}.npz"

    def _read(self, t: int) -> Arrays:
        """All arrays of round ``t``, from its file."""
        try:
            return load_arrays(self._file(t))
        except Exception as error:  # of zip, zlib or NumPy
            raise FederationError(
                f"{self._file(t)}: a round of this federation cannot be read, give another "
                f"folder: {error}"
            ) from error

    def _write_trace(self, file: IO[bytes]) -> None:
        """``gains[round, client, subchannel]``, 0 where a client was not there yet.

        These are the true ones; if the policies saw others, those are ``seen``. Rounds are written
        one by one, for together they may be more than memory holds.
        """
        rounds, shape = range(self._count), (self._client_count, self.links.subchannels)
        header = {"descr": "<f8", "fortran_order": False, "shape": (len(rounds), *shape)}
        unlike = any("true" in self._read(t) for t in rounds)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("gains", "seen") if unlike else ("gains",):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    npy.write_array_header_1_0(entry, header)
                    for t in rounds:
                        arrays = self._read(t)
                        shown = arrays["gains"]
                        met = shown if name == "seen" else arrays.get("true", shown)
                        gains = np.zeros(shape)
                        gains[: len(met)] = met
                        entry.write(gains.data)

    def _eligible(self, t: int, policy: int) -> Eligible | None:
        """Clients that a policy was offered in round ``t``, if a folder keeps them."""
        if self.folder is None:
            return None
        links = self.links
        gains = np.zeros((self._client_count, links.subchannels))
        arrays = self._read(t)
        gains[: len(arrays["gains"])] = arrays["gains"]
        gains[arrays[f"policy{policy}.resting"]] = 0.0
        uplink = links.uplink(gains)
        threshold = uplink.rate_threshold + links.margin
        return eligible_of(Uplink(gains, uplink.power_budget, threshold), t)

    def _record(self, t: int, arrays: Arrays, policy: int) -> RoundRecord:
        """Round ``t`` of the live policy (0), or of one in its shadow."""

        def of(name: str) -> NDArray[Any]:
            return arrays[f"policy{policy}.{name}"]

        def measured(name: str) -> float:
            return float(arrays[name]) if policy == 0 else np.nan

        def known(name: str) -> float | None:
            return None if np.isnan(value := measured(name)) else value

        delivery = Delivery(*(of(name) for name in Delivery._fields if name != "version"))
        later = self._client_count - of("ages").size  # those who joined after this round
        return RoundRecord(
            t=t,
            delivery=delivery._replace(version=arrays.get(f"policy{policy}.version")),
            ages=np.concatenate((of("ages"), np.full(later, t + 1))),
            participation=np.concatenate((of("participation"), np.zeros(later, np.int64))),
            cost=RoundCost(known("seconds")),
            gradient_diversity=known("diversity"),
            evaluation=Evaluation(measured("accuracy"), measured("loss")),
        )

    def _scenario(self) -> Scenario:
        """The scenario that replays the federation: its links as a trace, the rest if known."""
        links, trace = self.links, (self.folder or Path()).resolve() / _TRACE
        base = links.scenario or Scenario.preset("paper").with_(**_LEARNING)
        changes = {
            "channel": {"kind": "trace", "path": str(trace), "power_budget": links.power_budget},
            "retry": self.retry,
            "cell.ues": self._client_count,
            "cell.subchannels": links.subchannels,
            "run.rounds": self._count,
            "run.optimum": "never",
            "run.objective_every": 0,
        }
        if not base.threshold.by_time_left:
            rate = {"kind": "rate", "rate": links.rate_threshold, "margin": links.margin}
            changes["threshold"] = rate
        timing = base.timing
        if isinstance(timing, SecondsTiming):  # a trace says neither
            changes["timing.slot_s"] = timing.slot_seconds(base.threshold.upload_s)
            changes["timing.transmit_power_w"] = timing.transmit_power_w or links.power_budget
        return base.with_(**changes)


def _narrow(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """One column of gains that are the same on all subchannels."""
    return gains[:, :1] if (gains == gains[:, :1]).all() else gains


def _smallest(numbers: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers that are not negative, in the smallest type that holds them."""
    if numbers.dtype.kind != "i" or not numbers.size or numbers.min() < 0:
        return numbers
    return numbers.astype(np.min_scalar_type(numbers.max()))


def _with_later(frame: "pl.DataFrame", before: int, now: int, alpha: float) -> "pl.DataFrame":
    """Rows of ``before`` clients, with those who joined later: silent from the start."""
    if before == now:
        return frame
    later, ages = now - before, frame["round"].to_numpy().astype(np.int64) + 1
    total = np.round(before * frame["age_mean"].to_numpy()) + later * ages
    return frame.with_columns(
        pl.Series("age_mean", total / now),
        pl.Series("age_largest", ages),  # nobody is older than from the start
        frame["age_cost"] + pl.Series(later * f_alpha(ages, alpha)),
    )


def _with_eligible(frame: "pl.DataFrame", eligible: Eligible | None) -> "pl.DataFrame":
    """Rows of a history, that of one round with who was eligible."""
    if eligible is None:
        return frame
    for name, kept in (("need", eligible.need), ("eligible_gain", eligible.gain)):
        lists: list[Any] = [None] * frame.height
        lists[eligible.t] = None if kept is None else kept.ravel().tolist()
        frame = frame.with_columns(pl.Series(name, lists, frame.schema[name]))
    return frame
