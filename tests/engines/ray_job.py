"""What the tests run on Ray: ``python -m tests.engines.ray_job compare|fail FOLDER ADDRESS``.

In a process of its own, for Ray leaves threads and warnings behind.
"""

import sys

import agewise
from agewise import InfeasibleAllocation
from agewise.engines import make_engine
from tests.engines.policies import InfeasibleFor
from tests.scenarios import tiny

#: More than a tenth of a second a run, so that a node dies while one runs there.
SCENARIO = tiny(**{"learn.local_steps": 20000, "run.rounds": 12})
POLICIES = ["age-based", "max-pack"]
SEEDS = 30


def compare(out, engine):
    return agewise.compare(SCENARIO, POLICIES, SEEDS, out, engine=engine, quiet=True)


def fail(out, engine):
    try:
        agewise.compare(
            SCENARIO, [InfeasibleFor(seed=1)], 3, out, engine=engine, quiet=True, fail_fast=True
        )
    except InfeasibleAllocation as error:
        print(error)


if __name__ == "__main__":
    what, folder, address = sys.argv[1:]
    {"compare": compare, "fail": fail}[what](folder, make_engine("ray", address=address))
    import ray

    assert not ray.is_initialized()
