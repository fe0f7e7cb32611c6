"""What the replay of the page draws: the rounds of the runs in few bytes."""

import base64
import gzip
import json
import math
from typing import Any

import numpy as np

from agewise.records import History
from agewise.report._setting import Numbers, Setting, places_m

#: A cell with more UEs cannot be drawn so that one could tell them apart.
_MOST_UES = 2_000
#: The most owners (policies x rounds x subchannels) of one seed that are embedded, and the most
#: bytes of the other seeds.
_MOST_OWNERS = 2_000_000
_MOST_BYTES = 300_000


def replay(setting: Setting, *, all_seeds: bool = True) -> dict[str, Any] | None:
    """The runs of the seed to look at and, packed apart, those of all other seeds.

    Nothing where there is too much to draw. ``first`` is the seed to look at and ``rest[i]`` that
    of ``seeds[i]``, each as gzip in base64 of JSON; without ``all_seeds`` there are no others, and
    of very many only the first.
    """
    scenario = setting.scenario
    owners = len(setting.runs) * setting.rounds * scenario.cell.subchannels
    if setting.ues > _MOST_UES or owners > _MOST_OWNERS:
        return None
    seeds = sorted({seed for runs in setting.runs.values() for seed in runs} - {setting.seed})
    rest: list[str] = []
    for seed in seeds if all_seeds else []:
        packed = _packed(_seed(setting, seed))
        if sum(map(len, rest)) + len(packed) > _MOST_BYTES:
            break
        rest.append(packed)
    return {
        "seed": setting.seed,
        "seeds": seeds[: len(rest)],
        "ues": setting.ues,
        "subchannels": scenario.cell.subchannels,
        "rounds": setting.rounds,
        "compared": [setting.indices[name] for name in setting.pair],
        "first": _packed(_seed(setting, setting.seed)),
        "rest": rest,
    }


def _seed(setting: Setting, seed: int) -> dict[str, object]:
    """The runs of one seed, with what says where its UEs are drawn.

    The first places are in decimetres, and ``steps[round]`` how far each UE went since the round
    before, x and y in turn, where UEs move. Where nobody knows the places, ``rank[ue]`` is the
    place of each by its mean gain in round ``ranked``, the best first.
    """
    runs = {name: runs[seed] for name, runs in setting.runs.items() if seed in runs}
    history = next(iter(runs.values()))
    return (
        {"seed": seed}
        | (_places(history, setting.scenario.channel.reach_m) or _ranks(history))
        | {"runs": [{"policy": setting.indices[name]} | _run(each) for name, each in runs.items()]}
    )


def _places(history: History, radius_m: float | None) -> dict[str, object] | None:
    """The places of the UEs in all rounds, and the radius of a cell that holds them."""
    every = places_m(history)
    if every is None:
        return None
    farthest_m = float(np.hypot(every[:, :, 0], every[:, :, 1]).max(initial=1.0))
    at = np.round(10 * every.astype(np.float64)).astype(np.int64)
    steps = np.diff(at, axis=0).reshape(len(at) - 1, 2 * at.shape[1]).tolist()
    return {
        "radius": math.ceil(10 * max(radius_m or 0.0, farthest_m)),
        "positions": at[0].tolist(),
        "steps": None if history.positions_m is None else steps,
    }


def _ranks(history: History) -> dict[str, object]:
    """The order of the UEs by their channel, where one round of it is recorded."""
    eligible = history.eligible
    means = None if eligible is None or eligible.gain is None else eligible.gain.mean(axis=1)
    if eligible is None or means is None or (means == means[0]).all():
        return {"positions": None}
    order = np.argsort(-means, kind="stable")
    return {"positions": None, "rank": np.argsort(order).tolist(), "ranked": eligible.t + 1}


def _run(history: History) -> dict[str, object]:
    """``owner[round][subchannel]`` (-1 is nobody), ``power`` in percent of what its owner spends.

    Ages follow from these by Eq. 2: ``lost`` has the round and the UE of every upload that did not
    arrive. ``accuracy[round]`` is in percent, null where it was not measured.
    """
    lost = [
        [t, ue]
        for t, (sent, came) in enumerate(zip(history.scheduled, history.received, strict=True))
        for ue in sorted({*sent.tolist()} - {*came.tolist()})
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


def _packed(seed: dict[str, object]) -> str:
    text = json.dumps(seed, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
