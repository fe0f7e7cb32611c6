"""The experiment that the tests interrupt and kill: ``python -m tests.experiment.job FOLDER``."""

import sys

import agewise
from tests.scenarios import tiny

#: About a tenth of a second a run, so that a signal finds some finished and some at work.
SCENARIO = tiny(**{"learn.local_steps": 20000, "run.rounds": 8})
VARY = {"threshold.rate": [3.0, 4.0]}
COUNT = 16


def experiment(out, **options):
    return agewise.sweep(
        SCENARIO, ["age-based", "max-pack"], VARY, seeds=4, out=out, quiet=True, **options
    )


if __name__ == "__main__":
    experiment(sys.argv[1], workers=2)
