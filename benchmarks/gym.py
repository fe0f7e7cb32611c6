"""How many steps a second the Gymnasium environment makes, beside the rounds inside of it."""

from collections.abc import Callable

import gymnasium
from rich.console import Console
from rich.table import Table

from agewise import Scenario, Streams
from agewise.age import f_alpha
from agewise.gym import SchedulingEnv
from agewise.policies import Learned, make_policy
from agewise.simulation import Transport
from benchmarks.traffic import microseconds

#: Steps of one measurement, some ten milliseconds, and how many there are: the best counts.
BLOCK, BLOCKS = 480, 30


def transport_of(scenario: Scenario, policy: str) -> Transport:
    """The rounds of seed 0, without learning."""
    streams = Streams(0)
    return Transport(scenario, make_policy(policy), scenario.make_channel(streams), streams)


def bare(transport: Transport) -> Callable[[], object]:
    """Rounds of channel, schedule and ages alone."""

    def rounds() -> None:
        for _ in range(BLOCK):
            allocation = transport.access_point.plan(transport.begin())
            transport.receive(allocation.ues)

    return rounds


def stepped(
    env: SchedulingEnv | gymnasium.vector.SyncVectorEnv, count: int
) -> Callable[[], object]:
    """Steps of ``count`` environments with the scores of age-based scheduling."""
    seen, _ = env.reset(seed=0)
    ages = seen[..., 0]

    def steps() -> None:
        nonlocal ages
        for _ in range(BLOCK // count):
            seen, *_ = env.step(f_alpha(ages, 0.5))
            ages = seen[..., 0]

    return steps


def main() -> None:
    """Print steps a second, and the time of a step and of a learned policy's utility."""
    scenario = Scenario.preset("paper").with_(**{"run.rounds": 10 * BLOCK * BLOCKS})
    contestants = {"channel, age-based and ages": bare(transport_of(scenario, "age-based"))}
    contestants["SchedulingEnv, reward age"] = stepped(SchedulingEnv(scenario), 1)
    for count in (1, 4, 16):
        several = gymnasium.vector.SyncVectorEnv([lambda: SchedulingEnv(scenario)] * count)
        contestants[f"SyncVectorEnv of {count}"] = stepped(several, count)
    table = Table(title="Environment of the preset paper (K=100, N=20), one core, best")
    for heading in ("", "steps/s", "a step", "of the bare rounds"):
        table.add_column(heading, justify="left" if not heading else "right")
    took = {name: microseconds(call, BLOCK, BLOCKS) for name, call in contestants.items()}
    least = next(iter(took.values()))
    for name, each in took.items():
        table.add_row(name, f"{1e6 / each:,.0f}", f"{each:.1f} us", f"{each / least:.2f}")
    Console().print(table)
    transport, policy, rng = transport_of(scenario, "learned"), Learned(), Streams(0).policy(0)
    view = transport.access_point.view(transport.begin())
    scoring = microseconds(lambda: [policy.utility(view, rng) for _ in range(BLOCK)], BLOCK, BLOCKS)
    print(f"The utility of the learned policy: {scoring:.1f} us")


if __name__ == "__main__":
    main()
