"""How the learned policy became what it is, and how near it comes to the bound on ages.

``make study NAME=learned`` trains it again, draws its learning curve and writes the table of
docs/gym.md.
"""

import csv
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from agewise import Scenario, schedule_traffic, statistics
from agewise.policies import Learned, Scorer
from agewise.tables import Cell, Column, Table
from benchmarks.documents.pages import between, compact, write_document
from examples.learned.train import train

BENCHMARK = Path("docs/data/benchmark.csv")
PAGE, PICTURE = Path("docs/gym.md"), Path("docs/images/learned.svg")
#: Seeds that neither training nor another document uses.
SEEDS, SLOTS = range(500, 510), 2_000
LEARNED, WHITTLE = "learned", "whittle"
POLICIES: Final = (
    LEARNED, "learned:packing=auction", WHITTLE, "age-based:alpha=-0.5", "age-based",
)  # fmt: skip
#: Preset and changes, by what the table calls them; the first is what it was trained for.
CELLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "`paper`": ("paper", {}),
    "`paper`, R_s = 2": ("paper", {"threshold.rate": 2.0}),
    "`paper`, R_s = 6": ("paper", {"threshold.rate": 6.0}),
    "`paper`, 20 UEs, 5 subchannels": ("paper", {"cell.ues": 20, "cell.subchannels": 5}),
    "`weak-edge`": ("weak-edge", {}),
}


def shares_above(
    cell: tuple[str, Mapping[str, Any]],
    policies: Iterable[str],
    seeds: Iterable[int] = SEEDS,
    slots: int = SLOTS,
) -> dict[str, NDArray[np.float64]]:
    """``[policy]`` by seed: how far the mean age lies above the bound, as a share of it."""
    preset, changes = cell
    scenario, runs = Scenario.preset(preset).with_(**changes), list(seeds)
    return {
        policy: np.array(
            [schedule_traffic(scenario, policy, slots, seed=seed).above_bound for seed in runs]
        )
        for policy in policies
    }


def learned_markdown(above: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> str:
    """The table of what every cell has above its bound, and where learning was worth it."""
    # The bound of a seed is that of all policies: ages compare as they do in units of it.
    over = {
        name: statistics.contrast((1 + cell[LEARNED]) / (1 + cell[WHITTLE]), np.ones(len(SEEDS)))
        for name, cell in above.items()
    }
    lines: list[list[Cell]] = [
        [name, *(statistics.estimate(cell[policy]) for policy in POLICIES), over[name]]
        for name, cell in above.items()
    ]
    columns = [Column("Scenario", kind="words")]
    columns += [Column(f"`{each}`", ".1f", 100.0) for each in POLICIES]
    columns += [Column(f"mean age, `{LEARNED}` over `{WHITTLE}`", ".1f", 100.0)]
    lower = [name for name, gain in over.items() if gain.shown and gain.mean < 0]
    higher = [name for name, gain in over.items() if gain.shown and gain.mean > 0]
    return (
        f"{compact(Table('', columns, lines))}\n\nThe mean age of `{LEARNED}` is shown to be below "
        f"that of Whittle's index in {len(lower)} of these {len(above)} cells "
        f"({'; '.join(lower) or 'none'}) and above it in {len(higher)} "
        f"({'; '.join(higher) or 'none'})."
    )


def older_in_benchmark(path: Path = BENCHMARK) -> str:
    """Say in which scenarios of the benchmark its updates are older than Whittle's."""
    with path.open(encoding="utf-8", newline="") as file:
        ages = {(row["scenario"], row["policy"]): float(row["age"]) for row in csv.DictReader(file)}
    scenarios = {scenario for scenario, policy in ages if policy == LEARNED}
    pairs = {each: (ages[each, LEARNED], ages[each, WHITTLE]) for each in scenarios}
    older = sorted((w - own, each) for each, (own, w) in pairs.items() if own > w)
    said = [f"{pairs[each][0]:.2f} against {pairs[each][1]:.2f} in `{each}`" for _, each in older]
    return (
        f"In the [benchmark](benchmark.md) its mean age is above Whittle's in {len(older)} of "
        f"{len(pairs)} scenarios ({'; '.join(said)}). Reliability has no weight in it, so where "
        "updates are lost it asks in vain again and again."
    )


def draw_curve(scorers: Mapping[int, Scorer], path: Path, **size: Any) -> NDArray[np.float64]:
    """Draw how near scorers come to the bound after steps of training, beside policies."""
    first, steps = next(iter(CELLS.values())), list(scorers)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{step}.npz" for step in steps]
        for file, scorer in zip(files, scorers.values(), strict=True):
            scorer.save(file, f"{file.stem} steps of training")
        found = shares_above(first, [f"learned:path={file}" for file in files], **size)
    curve = np.array([100 * share.mean() for share in found.values()])
    figure, panel = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    panel.plot(steps, curve, marker="o", label="scorer")
    others = shares_above(first, POLICIES[2:4], **size)
    for number, (policy, share) in enumerate(others.items(), 1):
        panel.axhline(100 * share.mean(), color=f"C{number}", linestyle="--", label=policy)
    panel.set(xlabel="steps of training", ylabel="mean age above the bound in %")
    panel.set_ylim(0)
    panel.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return curve


def main() -> None:
    """Train, draw, measure and write."""
    scorers = dict(train())
    shipped = all(map(np.array_equal, list(scorers.values())[-1], Learned().scorer))
    if not shipped:
        raise SystemExit("training makes another scorer than the one in the package: save it there")
    print("above the bound while training, %:", draw_curve(scorers, PICTURE).round(2).tolist())
    table = learned_markdown({name: shares_above(cell, POLICIES) for name, cell in CELLS.items()})
    part = f"{table}\n\n{older_in_benchmark()}"
    text = PAGE.read_text(encoding="utf-8")
    write_document(PAGE, between(text, "learned", part))
    print(part)


if __name__ == "__main__":
    main()
