"""What a live federation leaves behind: a trace to replay, and a results folder to report on."""

import shutil
import zipfile
from collections.abc import Sequence
from logging import ERROR
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.cost import slot_s
from agewise.experiment import Folder, Plan, Result
from agewise.files import write_whole
from agewise.flower.api import FederationError, log
from agewise.flower.links import Links
from agewise.policies import Policy
from agewise.records import Delivery, Eligible, Evaluation, History, RoundCost, RoundRecord, RunInfo
from agewise.scenario import Scenario, SecondsTiming
from agewise.simulation import eligible_of
from agewise.spectrum import Uplink
from agewise.version import __version__

Arrays = dict[str, NDArray[Any]]
TRACE = "trace.npz"
_ROUNDS = "rounds"
#: Arrays of a round that are large, and of no use but for the trace.
_LINKS = ("gains", "true")

#: What is not known of a federation's learning stands as in the simplest simulation.
_LEARNING = {
    "timing": "none",
    "data": {"dataset": "clients", "task": "all", "partition": "iid", "sizes": "equal"},
    "learn": {
        "model": {"kind": "linear", "loss": "multinomial", "initial_deviation": 0.01},
        "penalty": "none",
        "aggregation": "average",
        "local_steps": 10,
        "batch_size": 10,
        "step_size": 0.01,
        "step_decay": 0.0,
    },
    "run": {
        "rounds": 1,
        "evaluate_every": 1,
        "objective_every": 0,
        "optimum": "never",
        "age_alpha": 0.5,
    },
}


class Rounds:
    """The rounds so far, each a set of arrays; in a folder, each also a file.

    ``policy0.ages[client]`` and so on are of the live policy, those after it are of the policies
    in its shadow. ``gains[client, subchannel]`` is what was offered and ``true``, where the uploads
    met others, what these were: in the file alone.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._kept: list[Arrays] = []

    def keep(self, arrays: Arrays) -> None:
        """Add a round."""
        if self.folder is not None:
            file = self._file(len(self._kept))
            file.parent.mkdir(parents=True, exist_ok=True)
            with write_whole(file) as temporary, temporary.open("wb") as opened:
                np.savez(opened, allow_pickle=False, **arrays)
        self._kept.append({name: x for name, x in arrays.items() if name not in _LINKS})

    def resume(self, count: int) -> None:
        """Read the first ``count`` rounds of the folder; what came after them is no longer true."""
        if self.folder is None:
            return
        for t in range(count):
            try:
                with np.load(self._file(t), allow_pickle=False) as archive:
                    self._kept.append({n: archive[n] for n in archive.files if n not in _LINKS})
            except (OSError, ValueError, zipfile.BadZipFile) as error:
                raise FederationError(
                    f"{self._file(t)}: a round of this federation cannot be read, give another "
                    f"folder: {error}"
                ) from error

    def records(self, policy: int) -> list[RoundRecord]:
        """The rounds of the live policy (0), or of one in its shadow."""
        count = self.client_count
        return [_record(arrays, t, policy, count) for t, arrays in enumerate(self._kept)]

    @property
    def client_count(self) -> int:
        """How many clients there ever were."""
        return self._kept[-1]["policy0.ages"].size

    def __len__(self) -> int:
        return len(self._kept)

    def trace(self, subchannels: int) -> Arrays:
        """``gains[round, client, subchannel]`` of a folder, 0 where a client was not there yet.

        These are the true ones; if others were offered, those are ``seen``.
        """
        seen = np.zeros((len(self), self.client_count, subchannels))
        gains, known = np.zeros_like(seen), True
        for t in range(len(self)):
            with np.load(self._file(t), allow_pickle=False) as archive:
                offered = archive["gains"]
                true = archive["true"] if "true" in archive.files else offered
                known = known and true is offered
            seen[t, : len(offered)], gains[t, : len(offered)] = offered, true
        return {"gains": gains} if known else {"gains": gains, "seen": seen}

    def offered(self, t: int) -> NDArray[np.float64]:
        """``gains[client, subchannel]`` of the clients of round ``t`` of a folder."""
        with np.load(self._file(t), allow_pickle=False) as archive:
            return np.asarray(archive["gains"], np.float64)

    def _file(self, t: int) -> Path:
        return Path(self.folder or "") / _ROUNDS / f"{t:06d}.npz"


def _record(arrays: Arrays, t: int, policy: int, count: int) -> RoundRecord:
    def of(name: str) -> NDArray[Any]:
        return arrays[f"policy{policy}.{name}"]

    def measured(name: str) -> float:
        return float(arrays[name]) if policy == 0 and name in arrays else np.nan

    def known(value: float) -> float | None:
        return None if np.isnan(value) else value

    later = count - of("ages").size
    return RoundRecord(
        t=t,
        delivery=Delivery(*(of(name) for name in Delivery._fields)),
        ages=np.concatenate((of("ages"), np.full(later, t + 1))),
        participation=np.concatenate((of("participation"), np.zeros(later, np.int64))),
        cost=RoundCost(known(measured("seconds"))),
        gradient_diversity=known(measured("diversity")),
        evaluation=Evaluation(measured("accuracy"), measured("loss")),
    )


def live_scenario(links: Links, clients: int, rounds: int, trace: Path) -> Scenario:
    """The scenario that replays a federation: its links as a trace, the rest as far as known."""
    channel = {"kind": "trace", "path": str(trace), "power_budget": links.power_budget}
    cell = {"ues": clients, "subchannels": links.subchannels}
    threshold = {"kind": "rate", "rate": links.rate_threshold, "margin": links.margin}
    base = links.scenario()
    if base is None:
        values = _LEARNING | {"channel": channel, "cell": cell, "threshold": threshold}
        base = Scenario.read(values)
    changes: dict[str, Any] = {"run.rounds": rounds}
    changes |= {"run.optimum": "never", "run.objective_every": 0}
    if isinstance(base.timing, SecondsTiming):  # a trace says neither
        watts = base.timing.transmit_power_w or links.power_budget
        changes |= {"timing.slot_s": slot_s(base), "timing.transmit_power_w": watts}
    sections = {"channel": channel, "threshold": threshold}
    cells = {f"cell.{name}": value for name, value in cell.items()}
    return base.with_(**changes, **sections, **cells)


def histories(
    scenario: Scenario, links: Links, policies: Sequence[Policy], seed: int, rounds: Rounds
) -> list[History]:
    """A history for the live policy and for each one in its shadow."""
    plan = Plan.of(scenario, policies, [seed])
    middle = len(rounds) // 2
    eligible = _eligible(links, rounds, middle)
    found = []
    for number, run in enumerate(plan.runs()):
        records = rounds.records(number)
        records[middle] = records[middle]._replace(eligible=eligible)
        info = RunInfo(
            scenario=scenario.resolved(),
            policy=run.policy.key,
            seed=seed,
            version=__version__,
            positions_m=None,
            label_counts=None,
            class_names=(),
            sources=run.sources,
        )
        found.append(History.collect(info, records, scenario.run.age_alpha))
    return found


def _eligible(links: Links, rounds: Rounds, t: int) -> Eligible | None:
    """What the policies could choose from in round ``t``, if a folder keeps it."""
    if rounds.folder is None:
        return None
    offered = rounds.offered(t)
    gains = np.zeros((rounds.client_count, links.subchannels))
    gains[: len(offered)] = offered
    threshold = links.rate_threshold + links.margin
    return eligible_of(Uplink(gains, links.power_budget, threshold), t)


def write_if_any(
    folder: Path | None, links: Links, policies: Sequence[Policy], seed: int, rounds: Rounds
) -> None:
    """`write_results` if there are any; what goes wrong is logged: the model is worth more."""
    if folder is None or not len(rounds):
        return
    try:
        write_results(folder, links, policies, seed, rounds)
    except (ValueError, OSError) as error:
        log(ERROR, "%s: the results of this federation are not written: %s", folder, error)


def write_results(
    folder: Path, links: Links, policies: Sequence[Policy], seed: int, rounds: Rounds
) -> Result:
    """Write the trace and make the folder one that ``agewise report`` reads."""
    trace = folder.resolve() / TRACE
    with write_whole(trace) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **rounds.trace(links.subchannels))
    scenario = live_scenario(links, rounds.client_count, len(rounds), trace)
    results = Folder(folder)
    # The results of fewer rounds are made again, of all that are there now.
    for old in (results.description_file, results.scenario_file):
        old.unlink(missing_ok=True)
    if results.runs.is_dir() and not results.runs.is_symlink():
        shutil.rmtree(results.runs)
    plan = Plan.of(scenario, policies, [seed])
    with results.opened(plan):
        kept = histories(scenario, links, policies, seed, rounds)
        for run, history in zip(plan.runs(), kept, strict=True):
            results.keep(run, history.to_bytes())
    return Result.open(folder)
