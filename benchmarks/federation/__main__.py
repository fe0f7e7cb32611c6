"""Who should train, in virtual time (`make federation`), and three trainings over real links.

With ``--links`` a SuperLink and six SuperNodes with TLS and node keys, each in a network namespace
with its own uplink rate and all behind one access point, train the example app: with age-based and
max-pack scheduling over measured airtime, and with Flower's own random sampling. Where namespaces
are not allowed all run on the loopback address, with links of the simulator's channel.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from agewise.experiment import Result
from agewise.flower import Airtime, Timeouts
from agewise.report import write_page
from benchmarks.federation.deployment import Deployment, interrupts_as_exceptions
from benchmarks.federation.pages import PAGE, put
from benchmarks.federation.sums import (
    SELECTIONS,
    SHORT,
    Size,
    Training,
    summed_up,
    table,
)
from benchmarks.federation.virtual import compare, section, write_table

APP = Path(__file__).resolve().parents[2] / "examples" / "flower"


def config_of(selection: str, size: Size, shaped: bool) -> dict[str, Any]:
    """The run configuration of a training."""
    return {
        "selection": selection,
        "links": "airtime" if shaped else "modelled",
        "clients": len(size.rates_mbit_s),
        "deadline-s": size.deadline_s,
        "num-server-rounds": size.rounds,
        "budget-s": size.budget_s,
        "target-accuracy": size.target,
        "update-bytes": size.update_bytes,
        "shadow": "max-pack,random" if selection == "age-based" else "",
    }


def train(deployment: Deployment, config: Mapping[str, Any], folder: Path) -> tuple[str, list[Any]]:
    """Run a training in this folder: how it ended, and the notes of its rounds."""
    ids = deployment.folder / "client-ids"
    ids.write_text("\n".join(deployment.ids), encoding="utf-8")
    run = deployment.run(APP, {**config, "folder": str(folder), "client-ids": str(ids)})
    ended = deployment.wait(run, float(config["budget-s"]) + 3 * float(config["deadline-s"]) + 60)
    file = folder / "notes.jsonl"
    if not file.exists():
        raise SystemExit(f"the training ended with {ended}:\n{deployment.server_log(run)}")
    return ended, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def where_text(deployment: Deployment, size: Size) -> str:
    """What links the federation has, and why they are not shaped if they are not."""
    if deployment.network.shaped:
        uplinks = ", ".join(f"{rate:g}" for rate in size.rates_mbit_s)
        return f"uplinks of {uplinks} Mbit/s, {size.capacity_mbit_s:g} for all together"
    return f"loopback with modelled links ({deployment.why_not_shaped or 'as asked for'})"


def federation(
    size: Size, selections: Sequence[str], folder: Path, loopback: bool = False
) -> list[Training]:
    """All trainings one after the other, on the same nodes; prints and keeps what they came to."""
    trainings = []
    rates = None if loopback else size.rates_mbit_s
    with Deployment(len(size.rates_mbit_s), rates, size.capacity_mbit_s) as deployment:
        shaped, where = deployment.network.shaped, where_text(deployment, size)
        print(f"{len(size.rates_mbit_s)} SuperNodes, TLS, node keys; {where}", flush=True)
        for selection in selections:
            place = folder / selection
            config = config_of(selection, size, shaped)
            ended, notes = train(deployment, config, place)
            trainings.append(summed_up(selection, ended, notes, size))
            print(f"  {selection}: {ended}, {trainings[-1].seconds:.0f} s", flush=True)
            if selection != "flower":
                print(f"    page: {write_page(Result.open(place))}", flush=True)
    print(table(trainings, size))
    summary = {"size": asdict(size), "shaped": shaped, "trainings": [asdict(x) for x in trainings]}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return trainings


def airtime(folder: Path, times: int = 5) -> None:
    """Clients of known rates, one in a round so that they share no processor: what is measured."""
    rates, began = (0.5, 1.0, 2.0, 4.0, 16.0), os.getloadavg()[1]
    size = replace(
        Size(), rates_mbit_s=rates, rounds=times * len(rates), budget_s=3600.0, target=1.0
    )
    with Deployment(len(rates), rates) as deployment:
        if not deployment.network.shaped:
            raise SystemExit(f"no shaped links: {deployment.why_not_shaped}")
        config = config_of("age-based", size, True) | {"shares": 1, "shadow": ""}
        train(deployment, config, folder)
    links, named = Airtime(1, 1.0), "federation/links."
    with np.load(folder / "state.npz") as state:
        links.restore({k.removeprefix(named): state[k] for k in state if k.startswith(named)})
    lines = ["| rate, Mbit/s | measured | error |", "|---|---|---|"]
    for rate, estimate in zip(rates, 1e-6 * links.rates_bits_s(), strict=True):
        lines.append(f"| {rate:g} | {estimate:.2f} | {100 * (estimate / rate - 1):+.0f}% |")
    said = (
        f"Medians of {times} uploads of {1e-6 * size.update_bytes:g} MB, looked for every "
        f"{Timeouts().poll_s:g} s, the default of `Timeouts`. The load average over five minutes "
        f"was {began:.1f} at the start and {os.getloadavg()[1]:.1f} at the end, on "
        f"{os.cpu_count()} processors."
    )
    lines += ["", said]
    print("\n".join(lines))
    put("airtime", "\n".join(lines))


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where results go; runs/federation-<time>")
    parser.add_argument("--short", action="store_true", help="two rounds each, small updates")
    parser.add_argument(
        "--loopback", action="store_true", help="modelled links, also where namespaces are allowed"
    )
    parser.add_argument("--selection", action="append", choices=SELECTIONS, help="only these")
    parser.add_argument("--links", action="store_true", help="real processes over shaped links")
    parser.add_argument(
        "--airtime", action="store_true", help="how well uplink rates are measured, nothing else"
    )
    given = parser.parse_args(words)
    size, selections = SHORT if given.short else Size(), given.selection or SELECTIONS
    if not any((given.links, given.short, given.loopback, given.airtime)):
        found = compare()
        write_table(found, PAGE.with_name("federation.csv"))
        put("comparison", section(found))
        print(section(found))
        return
    folder = given.folder or Path("runs") / time.strftime("federation-%Y%m%d-%H%M%S")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with interrupts_as_exceptions():
        try:
            if given.airtime:
                airtime(folder)
                return
            federation(size, selections, folder, given.loopback)
        except KeyboardInterrupt:
            sys.exit("interrupted; everything that was started is ended")


if __name__ == "__main__":
    main()
