"""What the replay needs of one seed, in few bytes; replay.js draws it."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise.radio import CellChannel, power_budget
from agewise.random import Streams
from agewise.report.names import short_names

if TYPE_CHECKING:
    from agewise.experiment import Result
    from agewise.records import History

#: A cell with more UEs cannot be drawn so that one could tell them apart.
MOST_UES = 2_000


def replay(result: "Result", variation: Mapping[str, Any]) -> dict[str, Any] | None:
    """All policies on the lowest seed that most of them finished.

    Nothing without a finished seed, or with more than `MOST_UES` UEs.

    Places are in decimetres. Of each policy ``owner[round, subchannel]`` is int16 (-1 is nobody)
    and ``power``, the share of a UE's budget in 255ths, uint8, both in base64; ``accuracy`` is in
    percent, null where it was not measured; ``lost[round]`` names scheduled UEs whose update did
    not arrive. The ages follow from these.
    """
    names = short_names(result.policies)
    runs = {name: result.histories(policy, variation) for policy, name in names.items()}
    finished = sorted({seed for own in runs.values() for seed in own})
    scenario = result.scenario.with_(**variation)
    if not finished or scenario.cell.ues > MOST_UES:
        return None
    seed = max(finished, key=lambda seed: (sum(seed in own for own in runs.values()), -seed))
    channel = CellChannel.of(scenario.cell, scenario.channel, Streams(seed))
    budget = power_budget(scenario.channel)
    return {
        "seed": seed,
        "radius": round(10 * scenario.cell.radius_m),
        "subchannels": scenario.cell.subchannels,
        "rounds": scenario.run.rounds,
        "places": np.round(10 * channel.positions_m).astype(int).tolist(),
        "policies": [
            {"name": name, "place": place} | _packed(own[seed], budget)
            for place, (name, own) in enumerate(runs.items())
            if seed in own
        ],
    }


def _packed(history: "History", budget: float) -> dict[str, Any]:
    frame = history.frame
    power = np.array(frame["power"].to_list(), dtype=np.float64)
    rows = zip(frame["scheduled"].to_list(), frame["received"].to_list(), strict=True)
    lost = {str(t): sorted(set(asked) - set(came)) for t, (asked, came) in enumerate(rows)}
    measured = [None if np.isnan(x) else round(100 * x, 2) for x in history.accuracy.tolist()]
    return {
        "owner": _text(history.owner.astype("<i2")),
        "power": _text(np.round(255 * np.clip(power / budget, 0, 1)).astype(np.uint8)),
        "accuracy": measured,
        "lost": {t: ues for t, ues in lost.items() if ues},
    }


def _text(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
