"""Records of a live federation: a trace to replay, and a results folder to report on.

Flower is not needed here.
"""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.cost import SecondsTiming
from agewise.experiment import Folder, Plan
from agewise.files import atomic_write
from agewise.flower.links import Arrays, FederationError, Links
from agewise.policies import Policy
from agewise.records import Delivery, Eligible, Evaluation, History, RoundCost, RoundRecord, RunInfo
from agewise.scenario import Scenario
from agewise.simulation import eligible_of
from agewise.spectrum import Uplink
from agewise.version import __version__

_TRACE = "trace.npz"
#: Arrays of a round that are large, and of no use but for the trace.
_LINKS = ("gains", "true")

#: What is not known of a federation's learning stands as in the simplest simulation.
_LEARNING = {
    "data": {"dataset": "clients", "task": "all", "partition": "iid", "sizes": "equal"},
    "learn.model.loss": "multinomial",
}


class LiveRecord:
    """Rounds so far, each a set of arrays; in a ``folder``, each also a file.

    ``policy0.ages[client]`` and so on are of the live policy, those after it are of the policies
    in its shadow. ``gains[client, subchannel]`` is what the policies saw and ``true``, where the
    uploads met others, what these were: in the file alone.
    """

    def __init__(
        self, folder: Path | None, links: Links, policies: Sequence[Policy], seed: int
    ) -> None:
        self.folder, self._links, self._policies, self._seed = folder, links, policies, seed
        self._rounds: list[Arrays] = []

    def keep(self, arrays: Arrays) -> None:
        """Add a round."""
        if self.folder is not None:
            file = self._file(len(self._rounds))
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as temporary, temporary.open("wb") as opened:
                np.savez(opened, allow_pickle=False, **arrays)
        self._rounds.append({name: x for name, x in arrays.items() if name not in _LINKS})

    def resume(self, count: int) -> None:
        """Read the first ``count`` rounds of the folder; what came after them is no longer true."""
        if self.folder is None:
            return
        for t in range(count):
            self._rounds.append({n: x for n, x in self._read(t).items() if n not in _LINKS})

    def histories(self) -> list[History]:
        """A history for the live policy and for each one in its shadow."""
        if not self._rounds:
            raise ValueError("no round has been finished yet")
        scenario, middle, found = self._scenario(), len(self._rounds) // 2, []
        eligible = self._eligible(middle)
        for number, run in enumerate(Plan.of(scenario, self._policies, [self._seed]).runs()):
            records = [self._record(t, number) for t in range(len(self._rounds))]
            records[middle] = records[middle]._replace(eligible=eligible)
            info = RunInfo(
                scenario=scenario.resolved(),
                policy=run.policy.key,
                seed=self._seed,
                version=__version__,
                positions_m=None,
                label_counts=None,
                class_names=(),
                sources=run.sources,
            )
            found.append(History.collect(info, records, scenario.run.age_alpha))
        return found

    def write(self) -> None:
        """Write the trace and make the folder one that ``agewise report`` reads, if there is one.

        The results of fewer rounds are made again, of all that are there now.
        """
        if self.folder is None or not self._rounds:
            return
        with atomic_write(self.folder / _TRACE) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self._trace())
        results = Folder(self.folder)
        for old in (results.description_file, results.scenario_file):
            old.unlink(missing_ok=True)
        if results.runs.is_dir() and not results.runs.is_symlink():
            shutil.rmtree(results.runs)
        plan = Plan.of(self._scenario(), self._policies, [self._seed])
        with results.opened(plan):
            for run, history in zip(plan.runs(), self.histories(), strict=True):
                results.keep(run, history.to_bytes())

    @property
    def _client_count(self) -> int:
        return self._rounds[-1]["policy0.ages"].size

    def _file(self, t: int) -> Path:
        return Path(self.folder or "") / "rounds" / f"{t:06d}.npz"

    def _read(self, t: int) -> Arrays:
        """All arrays of round ``t``, from its file."""
        try:
            with np.load(self._file(t), allow_pickle=False) as archive:
                return dict(archive)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise FederationError(
                f"{self._file(t)}: a round of this federation cannot be read, give another "
                f"folder: {error}"
            ) from error

    def _trace(self) -> Arrays:
        """``gains[round, client, subchannel]`` of a folder, 0 where a client was not there yet.

        These are the true ones; if the policies saw others, those are ``seen``.
        """
        seen = np.zeros((len(self._rounds), self._client_count, self._links.subchannels))
        gains, known = np.zeros_like(seen), True
        for t in range(len(seen)):
            arrays = self._read(t)
            shown = arrays["gains"]
            true = arrays.get("true", shown)
            known = known and true is shown
            seen[t, : len(shown)], gains[t, : len(shown)] = shown, true
        return {"gains": gains} if known else {"gains": gains, "seen": seen}

    def _eligible(self, t: int) -> Eligible | None:
        """Eligible clients of round ``t``, if a folder keeps them."""
        if self.folder is None:
            return None
        links = self._links
        gains = np.zeros((self._client_count, links.subchannels))
        shown = self._read(t)["gains"]
        gains[: len(shown)] = shown
        threshold = links.rate_threshold + links.margin
        return eligible_of(Uplink(gains, links.power_budget, threshold), t)

    def _record(self, t: int, policy: int) -> RoundRecord:
        """Round ``t`` of the live policy (0), or of one in its shadow."""
        arrays = self._rounds[t]

        def of(name: str) -> NDArray[Any]:
            return arrays[f"policy{policy}.{name}"]

        def measured(name: str) -> float:
            return float(arrays[name]) if policy == 0 else np.nan

        def known(name: str) -> float | None:
            return None if np.isnan(value := measured(name)) else value

        later = self._client_count - of("ages").size  # those who joined after this round
        return RoundRecord(
            t=t,
            delivery=Delivery(*(of(name) for name in Delivery._fields)),
            ages=np.concatenate((of("ages"), np.full(later, t + 1))),
            participation=np.concatenate((of("participation"), np.zeros(later, np.int64))),
            cost=RoundCost(known("seconds")),
            gradient_diversity=known("diversity"),
            evaluation=Evaluation(measured("accuracy"), measured("loss")),
        )

    def _scenario(self) -> Scenario:
        """The scenario that replays the federation: its links as a trace, the rest if known."""
        links, trace = self._links, (self.folder or Path()).resolve() / _TRACE
        base = links.scenario or Scenario.preset("paper").with_(**_LEARNING)
        changes = {
            "channel": {"kind": "trace", "path": str(trace), "power_budget": links.power_budget},
            "threshold": {"kind": "rate", "rate": links.rate_threshold, "margin": links.margin},
            "cell.ues": self._client_count,
            "cell.subchannels": links.subchannels,
            "run.rounds": len(self._rounds),
            "run.optimum": "never",
            "run.objective_every": 0,
        }
        timing = base.timing
        if isinstance(timing, SecondsTiming):  # a trace says neither
            changes["timing.slot_s"] = timing.slot_seconds(base.threshold.upload_s)
            changes["timing.transmit_power_w"] = timing.transmit_power_w or links.power_budget
        return base.with_(**changes)
