"""Channels measured block by block, before anything is simulated on them."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise.checks import path_of, real_number, whole_number
from agewise.radio import Block, Channel, DrawnChannel, ModelledChannel, open_gains
from agewise.radio.traces import write_trace
from agewise.random import Streams
from agewise.scenario import Scenario, require_scenario
from agewise.spectrum import Uplink

_Floats = NDArray[np.float64]
_ROUNDS = 100
#: Correlations are measured on at most this number of UEs and of values, and up to this lag.
_SAMPLED_UES, _SAMPLED_NUMBERS, _LONGEST_LAG = 200, 2_000_000, 20
_GRID = 161


@dataclass(frozen=True, eq=False)
class Area:
    """Cell seen from above: squares of a grid ``[y, x]`` from -reach to reach.

    ``snr_db`` is the mean SNR of a UE outdoors there with all power on one subchannel, NaN out of
    the cell; ``line_of_sight`` is ``None`` where the path loss knows none.
    """

    reach_m: float
    snr_db: _Floats
    line_of_sight: NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False, repr=False)
class ChannelView:
    """Measurements of the first ``rounds`` blocks of a channel.

    SNRs are in dB with all power on one subchannel. ``mean_snr_db[ue]`` is that of the mean gain
    over rounds and subchannels, ``block_snr_db[ue, subchannel]`` that of the first block and
    ``round_snr_db[round, sampled ue]`` that of each round. ``served_share[ue]`` are the rounds in
    which a UE with the cell to itself reaches the threshold, ``needed[count]`` how often (of all
    UEs and rounds) ``count`` subchannels were the fewest that did, 0 if none did. Correlations are
    those of gains around the mean of their UE, ``[lag]`` from 0, NaN where nothing varies.
    ``seen_error_db`` is the root mean square of what the access point is wrong by.
    ``power_budget[ue]`` is P_TX and ``rate_threshold[ue]`` R_s.
    """

    rounds: int
    power_budget: _Floats
    rate_threshold: _Floats | None
    mean_snr_db: _Floats
    block_snr_db: _Floats
    round_snr_db: _Floats
    time_correlation: _Floats
    frequency_correlation: _Floats
    served_share: _Floats | None
    needed: _Floats | None
    seen_error_db: float | None
    positions_m: _Floats | None
    line_of_sight: NDArray[np.bool_] | None
    area: Area | None

    def __repr__(self) -> str:
        size = f"{self.ue_count:,} UEs, {self.subchannel_count:,} subchannels"
        median = f"{np.median(self.mean_snr_db):.1f} dB"
        return f"<ChannelView {size}: mean SNR {median} in the median of the UEs>"

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.mean_snr_db.size

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.block_snr_db.shape[1])

    @property
    def never_served(self) -> int | None:
        """UEs that reached the threshold in no round, even with the cell to themselves."""
        return None if self.served_share is None else int((self.served_share == 0).sum())

    def summary(self) -> dict[str, float | None]:
        """Return the table: numbers by name, ``None`` where there is nothing to say."""
        low, median, high = np.percentile(self.mean_snr_db, [5, 50, 95])
        found: dict[str, float | None] = {
            "ues": self.ue_count,
            "subchannels": self.subchannel_count,
            "rounds": self.rounds,
            "power_budget": _common(self.power_budget),
            "rate_threshold": None if self.rate_threshold is None else _common(self.rate_threshold),
            "mean_snr_db_5%": float(low),
            "mean_snr_db_median": float(median),
            "mean_snr_db_95%": float(high),
            "line_of_sight_share": None,
            "time_correlation_1": next(iter(self.time_correlation[1:].tolist()), None),
            "frequency_correlation_1": next(iter(self.frequency_correlation[1:].tolist()), None),
            "seen_error_db": self.seen_error_db,
        }
        if self.line_of_sight is not None:
            found["line_of_sight_share"] = float(self.line_of_sight.mean())
        if self.needed is not None and self.served_share is not None:
            reached = self.needed[1:].sum()
            mean = self.needed @ np.arange(self.needed.size) / reached if reached > 0 else None
            found |= {
                "one_subchannel_share": float(self.needed[1]),
                "needed_subchannels_mean": mean,
                "served_share": float(self.served_share.mean()),
                "never_served": self.never_served,
            }
        return {
            name: None if value is None or not math.isfinite(value) else value
            for name, value in found.items()
        }


def view_channel(scenario: Scenario, seed: int = 0, rounds: int | None = None) -> ChannelView:
    """Measure the channel of a scenario, by default over the rounds of a run, at most 100."""
    require_scenario(scenario)
    count = whole_number(
        "rounds", min(scenario.run.rounds, _ROUNDS) if rounds is None else rounds, 1
    )
    scenario = scenario.with_(**{"run.rounds": count}).loaded()
    streams = Streams(seed)
    channel, devices = scenario.make_channel(streams), scenario.device_table(streams)
    costs = scenario.cost_model(devices, channel.power_budget)
    return _view(channel, count, costs.power_budget, costs.threshold, _area(scenario, streams))


def view_trace(
    path: Path | str, rate_threshold: float | None = None, rounds: int | None = None
) -> ChannelView:
    """Measure the gains in a file, with needs where a threshold is given."""
    trace = open_gains(path)
    held = int(trace.gains.shape[0])
    count = min(held, _ROUNDS) if rounds is None else whole_number("rounds", rounds, 1, held)
    if rate_threshold is not None and real_number("rate_threshold", rate_threshold) < 0:
        raise ValueError(f"rate_threshold must not be negative, and is {rate_threshold:g}")
    power = np.full(trace.ue_count, trace.power_budget)
    threshold = None if rate_threshold is None else np.full(trace.ue_count, float(rate_threshold))
    return _view(trace, count, power, threshold, None)


def record_trace(
    scenario: Scenario, path: Path | str, seed: int = 0, rounds: int | None = None
) -> Path:
    """Write the channel of this scenario and seed as a trace, an .npz or an HDF5 file.

    It holds the gains of ``rounds`` rounds, those of a run by default; what the access point sees
    of them where that differs; where the UEs are; the power budget; and which scenario and seed it
    is from. A run on the trace is the same as one on the scenario's own channel, to the byte.
    """
    require_scenario(scenario)
    path, streams = path_of("path", path), Streams(seed)
    count = scenario.run.rounds if rounds is None else whole_number("rounds", rounds, 1)
    recorded = scenario.with_(**{"run.rounds": count}).loaded()
    about = {"scenario": recorded.to_toml(), "seed": streams.seed}
    write_trace(path, recorded.make_channel(streams), count, about)
    return path


def _common(values: _Floats) -> float | None:
    """Return the number that all of these are; ``None`` where they differ."""
    return float(values[0]) if values.size and (values == values[0]).all() else None


def _view(
    channel: Channel,
    rounds: int,
    budgets: _Floats,
    rate_threshold: _Floats | None,
    area: Area | None,
) -> ChannelView:
    """Measure in one pass over the blocks, of which one at a time is kept."""
    ues, subchannels = channel.ue_count, channel.subchannel_count
    size = max(1, min(_SAMPLED_UES, _SAMPLED_NUMBERS // (rounds * subchannels)))
    sampled = np.unique(np.linspace(0, ues - 1, min(size, ues)).astype(np.int64))
    kept = np.empty((rounds, sampled.size, subchannels))
    total, errors = np.zeros(ues), np.zeros(2)
    served, needed = np.zeros(ues), np.zeros(subchannels + 1)
    for t in range(rounds):
        block = channel.block(t)
        kept[t] = block.true[sampled]
        total += block.true.mean(axis=1)
        errors += _squared_error_db(block)
        if rate_threshold is not None:
            need, _ = Uplink(block.true, budgets, rate_threshold).needs()
            served += need > 0
            needed += np.bincount(need, minlength=subchannels + 1)
    first, known, los = channel.block(0), rate_threshold is not None, None
    if area and area.line_of_sight is not None and isinstance(channel, DrawnChannel):
        los = channel.large_scale(0).line_of_sight
    return ChannelView(
        rounds=rounds,
        power_budget=budgets,
        rate_threshold=rate_threshold,
        mean_snr_db=_decibels(total / rounds * budgets),
        block_snr_db=_decibels(first.true * budgets[:, np.newaxis]),
        round_snr_db=_decibels(kept.mean(axis=2) * budgets[sampled]),
        time_correlation=_correlation(kept, 0, min(_LONGEST_LAG, rounds // 2)),
        frequency_correlation=_correlation(kept, 2, subchannels - 1),
        served_share=served / rounds if known else None,
        needed=needed / (rounds * ues) if known else None,
        seen_error_db=math.sqrt(errors[0] / errors[1]) if errors[0] > 0 else None,
        positions_m=first.positions_m,
        line_of_sight=los,
        area=area,
    )


def _decibels(ratios: _Floats) -> _Floats:
    """Ratios in dB, -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(10.0 * np.log10(ratios))


def _squared_error_db(block: Block) -> _Floats:
    """Sum the squared errors of the CSI, in dB, and count the gains that are compared."""
    if block.seen is block.true:
        return np.array([0.0, block.true.size])
    both = (block.seen > 0) & (block.true > 0)
    wrong = _decibels(block.seen[both] / block.true[both])
    return np.array([float(wrong @ wrong), wrong.size])


def _correlation(gains: _Floats, axis: int, longest: int) -> _Floats:
    """Correlate ``gains[round, ue, subchannel]`` along an axis by lags, over all UEs."""
    means = gains.mean(axis=(0, 2), keepdims=True)
    varied = np.moveaxis(gains / np.where(means > 0, means, 1.0) - (means > 0), axis, 0)
    power = float((varied * varied).mean())
    if power < 1e-18:
        return np.full(longest + 1, np.nan)
    lagged = (varied[: len(varied) - lag] * varied[lag:] for lag in range(longest + 1))
    return np.array([product.mean() for product in lagged]) / power


def _area(scenario: Scenario, streams: Streams) -> Area | None:
    """Map the mean SNR at every place of the cell, where a model says it."""
    model = scenario.channel
    if not isinstance(model, ModelledChannel):
        return None
    run = model.context(scenario.cell, scenario.run.rounds, streams)
    environment, reach_m = model.environment(run), float(model.placement.reach_m)
    middles = reach_m * ((np.arange(_GRID) + 0.5) * (2.0 / _GRID) - 1.0)
    x, y = np.meshgrid(middles, middles)
    gains, los = environment.mean_gains(np.column_stack([x.ravel(), y.ravel()]))
    snr_db = _decibels(gains * model.link.power_budget).reshape(x.shape)
    apothem_m = model.placement.area.apothem_m  # infinite but of a hexagon
    inside = np.maximum(np.abs(x), 0.5 * np.abs(x) + math.sqrt(0.75) * np.abs(y)) <= apothem_m
    inside &= x * x + y * y <= reach_m * reach_m
    return Area(
        reach_m=reach_m,
        snr_db=np.where(inside, snr_db, np.nan),
        line_of_sight=None if environment.los_field is None else los.reshape(x.shape) & inside,
    )
