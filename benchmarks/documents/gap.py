"""What policies lose against the optimum, and how old updates get: ``make study NAME=gap``.

``runs/gap-paper`` resumes; ``make study NAME=results`` puts what it writes into docs/results.md.
"""

import argparse
from pathlib import Path
from typing import Final

import numpy as np

from agewise.studies.optimality import GAP_POLICIES, GapTable, gap
from agewise.tables import Cell, Column, Table
from agewise.tables._words import counted, estimate_text, percent_text
from benchmarks.documents.pages import write_document

#: Policies made for low ages stand beside those of the command.
POLICIES: Final = (*GAP_POLICIES, "whittle")


def gap_markdown(table: GapTable) -> str:
    """Losses of a round by regime, and ages beside the bound, as a part of docs/results.md."""
    by_policy = {policy: [r for r in table.rows if r.policy == policy] for policy in table.policies}
    rows: list[list[Cell]] = []
    for number, variation in enumerate(table.variations):
        losses = [own[number].loss_per_round for own in by_policy.values()]
        rows.append([*variation.values(), *(estimate_text(loss) for loss in losses)])
    heads = [name.rpartition(".")[2] for name in table.varied]
    columns = [*map(Column, heads), *(Column(str(policy)) for policy in table.policies)]
    above = {
        str(policy): percent_text(float(np.nanmean([row.above_bound.mean for row in own])))
        for policy, own in by_policy.items()
    }
    return (
        "## Against the optimum\n\n"
        "What a round loses of the largest sum of f(age) that its ages and gains allow, in percent "
        f"with 95% intervals over {counted(table.rows[0].seeds, 'seed')}. {table.proven}\n\n"
        f"{Table('', columns, rows).to_markdown()}\n"
        "The optimum of problem (3) is that of one round. How far the mean age of a whole run is "
        "above what no schedule is below, in percent, mean of all regimes: "
        f"{', '.join(f'{name} {text}' for name, text in above.items())}. A policy that loses more "
        "of a round can be fresher in the long run ([errata](errata.md)).\n"
    )


def main() -> None:
    """Run what is missing and write the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/gap-paper"))
    given = parser.parse_args()
    made = gap(policies=POLICIES, seeds=given.seeds, out=given.out)
    print(write_document(given.out / "gap.md", gap_markdown(made.table)))


if __name__ == "__main__":
    main()
