"""What the replay of the page draws: the rounds of the runs in few bytes."""

import base64
import gzip
import json
from typing import Any

import numpy as np

from agewise.records import History
from agewise.report import numbers
from agewise.report.numbers import Numbers
from agewise.report.setting import Setting

#: A cell with more UEs cannot be drawn so that one could tell them apart.
MOST_UES = 2_000
#: The most owners (policies x rounds x subchannels) of one seed that are embedded, and the most
#: bytes of the other seeds.
MOST_OWNERS = 2_000_000
MOST_BYTES = 700_000


def replay(setting: Setting, *, all_seeds: bool = True) -> dict[str, Any] | None:
    """The runs of the seed to look at and, packed apart, those of all other seeds.

    Nothing where there is too much to draw. ``first`` and ``rest`` are gzip in base64 of a JSON
    list with an entry a seed; ``rest`` is empty if that would be too much, or without
    ``all_seeds``.
    """
    scenario = setting.scenario
    owners = len(setting.runs) * setting.rounds * scenario.cell.subchannels
    if setting.ues > MOST_UES or owners > MOST_OWNERS:
        return None
    seeds = sorted({seed for runs in setting.runs.values() for seed in runs} - {setting.seed})
    rest = _packed([_seed(setting, seed) for seed in seeds]) if all_seeds and seeds else ""
    rest = rest if len(rest) <= MOST_BYTES else ""
    return {
        "seed": setting.seed,
        "seeds": seeds if rest else [],
        "ues": setting.ues,
        "subchannels": scenario.cell.subchannels,
        "rounds": setting.rounds,
        "compared": [setting.indices[name] for name in setting.pair],
        "first": _packed([_seed(setting, setting.seed)]),
        "rest": rest,
    }


def _seed(setting: Setting, seed: int) -> dict[str, Any]:
    """The runs of one seed, with the places of its UEs in decimetres, if they are known."""
    runs = {name: runs[seed] for name, runs in setting.runs.items() if seed in runs}
    positions = next(iter(runs.values())).info.positions_m
    radius_m = numbers.cell_radius_m(setting.scenario)
    known = positions is not None and radius_m is not None
    return {
        "seed": seed,
        "radius": round(10 * radius_m) if known and radius_m is not None else None,
        "positions": np.round(10 * positions).astype(int).tolist()
        if known and positions is not None
        else None,
        "runs": [
            {"policy": setting.indices[name]} | _run(history) for name, history in runs.items()
        ],
    }


def _run(history: History) -> dict[str, Any]:
    """``owner[round][subchannel]`` (-1 is nobody), ``power`` in percent of what its owner spends.

    Ages follow from these by Eq. 2: ``lost`` has the round and the UE of every upload that did not
    arrive. ``accuracy[round]`` is in percent, null where it was not measured.
    """
    lost = [
        [t, int(ue)]
        for t, (sent, came) in enumerate(zip(history.scheduled, history.received, strict=True))
        for ue in np.setdiff1d(sent, came)
    ]
    return {
        "owner": history.owner.tolist(),
        "power": np.round(100 * _power_shares(history)).astype(int).tolist(),
        "lost": lost,
        "accuracy": [None if np.isnan(x) else round(100 * x, 2) for x in history.accuracy.tolist()],
    }


def _power_shares(history: History) -> Numbers:
    """``[round, subchannel]``: the part of its owner's power in the round; 0 without an owner."""
    owner, power = history.owner, history.power
    spent = np.zeros((len(owner), history.info.ue_count + 1))  # the last is nobody's
    rounds = np.arange(len(owner))[:, None]
    np.add.at(spent, (rounds, owner), power)
    total = spent[rounds, owner]
    return np.divide(power, total, out=np.zeros_like(power), where=(owner >= 0) & (total > 0))


def _packed(seeds: list[dict[str, Any]]) -> str:
    text = json.dumps(seeds, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
