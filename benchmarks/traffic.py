"""How many slots a second are scheduled without learning, and what a slot is spent on."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from agewise import AccessPoint, Scenario, Streams, Uplink, schedule_traffic
from agewise.policies import make_policy

#: Slots of one measurement: so many that setting up, some 4 ms, hardly counts.
BLOCK, BLOCKS = 5_000, 8
POLICIES = (
    "age-based",
    "max-pack",
    "round-robin",
    "random",
    "whittle",
    "age-based:packing=auction",
)


def microseconds(call: Callable[[], object], slots: int, times: int) -> float:
    """Processor time of a slot in the fastest of several calls."""
    took = []
    for _ in range(times):
        start = time.thread_time()
        call()
        took.append((time.thread_time() - start) / slots * 1e6)
    return min(took)


def main() -> None:
    """Print slots a second of each policy, and the time of a slot beside that of its parts."""
    scenario = Scenario.preset("paper")
    channel = scenario.make_channel(Streams(0))
    blocks = [channel.block(t).seen for t in range(BLOCK)]
    uplinks = [Uplink(seen, channel.power_budget, scenario.rate_threshold) for seen in blocks]
    drawing = microseconds(lambda: [channel.block(t) for t in range(BLOCK)], BLOCK, BLOCKS)
    table = Table(title="Traffic, preset paper (K=100, N=20), one core, best")
    for heading in ("policy", "slots/s", "a slot", "draw", "plan and receive", "rest"):
        table.add_column(heading, justify="right")
    for name in POLICIES:
        access_point = AccessPoint(make_policy(name), channel.ue_count, Streams(0))

        def plan(access_point: AccessPoint = access_point) -> None:
            for uplink in uplinks:
                access_point.receive(access_point.plan(uplink).ues)

        def slots(name: str = name) -> None:
            schedule_traffic(scenario, name, BLOCK)

        whole = microseconds(slots, BLOCK, BLOCKS)
        planning = microseconds(plan, BLOCK, BLOCKS)
        parts = (whole, drawing, planning, whole - drawing - planning)
        table.add_row(name, f"{1e6 / whole:,.0f}", *(f"{part:.1f} us" for part in parts))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
