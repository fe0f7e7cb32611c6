"""What a run will take of the machine, said before it starts: memory and time."""

from typing import NamedTuple

from agewise.checks import bytes_text, require_memory
from agewise.scenario import SampledOptimum, Scenario, require_scenario
from agewise.scheduling import Policy
from agewise.spectrum import Exact

#: Models that a round has in memory besides those of the UEs: before and after, and work space.
_MODELS_BESIDE = 6
#: Models of a UE that is heard in a period: where it started, as trained, and as it counts.
_MODELS_LATE = 3


def require_resources(scenario: Scenario, kept_rounds: int | None = None) -> None:
    """Raise ``ValueError`` with the amount if a run would need more memory than there is.

    ``kept_rounds`` is how many rounds are kept at a time, all of the run if not given.
    """
    require_scenario(scenario)
    cell, learning = scenario.cell, scenario.learn
    length = scenario.run.rounds if kept_rounds is None else kept_rounds
    size = f"cell.ues = {cell.ues:,} and cell.subchannels = {cell.subchannels:,}"
    steps, batch = learning.local_steps, learning.batch_size
    needs = {
        f"gains with {size}": 8.0 * cell.ues * cell.subchannels,
        f"records of run.rounds = {length:,} with {size}": length
        * (24.0 * cell.ues + 24.0 * cell.subchannels),
        # The samples that a UE draws, and the slopes of a batch.
        f"learn.local_steps = {steps:,} with learn.batch_size = {batch:,}": batch
        * (8.0 * steps + 64.0),
    }
    require_memory(sum(needs.values()), max(needs, key=lambda what: needs[what]))
    if not learning.model.is_small:
        each = _MODELS_LATE if scenario.pace.kind == "periodic" else 1
        numbers = scenario.model_length
        models = each * min(cell.ues, cell.subchannels) + _MODELS_BESIDE
        what = f"learn.model = {learning.model.kind!r} with {numbers:,} numbers for {models} models"
        require_memory(4.0 * numbers * models, what)
    for memory in kept_memories(scenario):
        require_memory(memory.bytes, memory.what)


def require_cell(scenario: Scenario) -> None:
    """Raise ``ValueError`` with the amount if the cell's rounds would not fit, without learning."""
    cell = scenario.cell
    what = f"gains of cell.ues = {cell.ues:,} on cell.subchannels = {cell.subchannels:,}"
    require_memory(8.0 * cell.ues * (cell.subchannels + 8), what)


class KeptMemory(NamedTuple):
    """What a part keeps that has a model's length of numbers, once for many UEs or versions."""

    part: str
    kind: str
    ues: int
    models: int
    length: int
    bytes: int

    @property
    def what(self) -> str:
        """What the memory is for, with the names of the fields that decide it."""
        section = "pace" if self.part == "pace" else f"learn.{self.part}"
        return (
            f"{section} = {self.kind!r} with cell.ues = {self.ues:,} and models of "
            f"{self.length:,} numbers"
        )

    def __str__(self) -> str:
        """One line, such as: memory aggregation keeps 100 x 7,850 numbers: 3.2 MB."""
        numbers = f"{self.models:,} x {self.length:,} numbers"
        who = f"{self.kind} keep" if self.part == "local" else f"{self.kind} {self.part} keeps"
        most = " at most" if self.part == "pace" else ""
        return f"{who} {numbers}{most}: {bytes_text(self.bytes)}"


def kept_memories(scenario: Scenario) -> list[KeptMemory]:
    """What will be kept for every UE, and of earlier models where UEs learn in the background.

    A UE has at most one update in hand and one under way, each from a model of its own.
    """
    settings, ues = scenario.learn, scenario.cell.ues
    kept = []
    if scenario.pace.kind == "periodic":
        count, length = min(2 * ues, scenario.run.rounds), scenario.model_length
        kept.append(KeptMemory("pace", "periodic", ues, count, length, 4 * count * length))
    for part, spec in settings.state_specs(ues, 1).items():
        if any(each.shape == (ues, 1) for each in spec.values()):
            length = scenario.model_length
            arrays = settings.state_specs(ues, length)[part].values()
            size = sum(each.nbytes for each in arrays)
            kept.append(KeptMemory(part, getattr(settings, part).kind, ues, ues, length, size))
    return kept


def expected_seconds(scenario: Scenario, policy: Policy | None = None) -> float:
    """Roughly how long a run takes one core: the right power of ten, on a machine of today."""
    cell, learning, run = scenario.cell, scenario.learn, scenario.run
    scheduled = min(cell.ues, cell.subchannels) / 2
    samples = scheduled * learning.local_steps * learning.batch_size
    sample_s = learning.model.seconds_per_sample()
    seconds = run.rounds * (2e-4 + 2e-8 * cell.ues * cell.subchannels + sample_s * samples)
    # To lay the data on the UEs, and to evaluate, which is cheaper by sample than to learn.
    seconds += 0.1 + run.rounds / run.evaluate_every * 2000 * sample_s
    solve_s = 1e-4 * cell.ues * cell.subchannels  # 0.2 s for the paper's cell
    if policy is not None and isinstance(policy.packing, Exact):
        seconds += run.rounds * solve_s
    if isinstance(run.optimum, SampledOptimum):  # whose search takes a million steps a second
        seconds += run.rounds / run.optimum.every * min(solve_s, 1e-6 * run.optimum.work_limit)
    return seconds
