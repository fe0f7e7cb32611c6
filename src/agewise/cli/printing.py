"""Results as tables for eyes, or as JSON."""

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

import agewise
from agewise.checks import visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agewise.studies import (
        ChannelView,
        Explanation,
        Gap,
        MapResult,
        Reproduction,
    )
    from agewise.traffic import Traffic


#: From how many columns on a terminal is wide; the longest name on one line if it is not.
_WIDE, _NAME_WIDTH = 110, 20
#: More policies than these are sorted by what they reached.
_FEW = 5


@dataclass(frozen=True)
class Shown:
    """How a result is shown: over which axis, at which of its points, and up to which target."""

    over: str = "rounds"
    points: tuple[float, ...] | None = None
    target: float | None = None


def say(text: str, *, err: bool = False) -> None:
    """Print text; nothing in it steers the terminal, wherever it is from."""
    typer.echo(visible(text, lines=True), err=err)


def print_json(value: object) -> None:
    """For machines; what is no finite number is null, for JSON knows no others."""
    say(json.dumps(_plain(value), indent=2, default=str, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_list(lines: Mapping[str, str]) -> None:
    """Names, each with a line of text."""
    width = max(map(len, lines))
    for name, line in lines.items():
        say(f"{name:<{width}}  {line}")


def print_policy(policy: "agewise.policies.PolicyDescription", *, as_json: bool) -> None:
    """All about one policy: what it does, its parameters, its source and equations."""
    if as_json:
        print_json(policy.to_dict())
        return
    say(f"{policy.name}: {policy.summary}")
    if policy.parameters:
        table = _table()
        for head in ("parameter", "default", "may be"):
            table.add_column(head)
        for each in policy.parameters:
            default = agewise.report.text.value_text(each.default)
            table.add_row(each.name, default, each.allowed)
        _show(table)
    else:
        say("It has no parameters.")
    if policy.reads:
        say(f"It reads what UEs report: {', '.join(policy.reads)}.")
    if policy.text:
        say(policy.text)


def print_page(page: Path, *, to_stderr: bool = False) -> None:
    """Where the page is."""
    say(f"Page: {page}", err=to_stderr)


def print_page_of(
    result: "agewise.Result",
    *,
    shown: Shown = Shown(),  # noqa: B008 (frozen)
    to_stderr: bool = False,
) -> None:
    """Write the page of a result, with the picture of its channel, and say where it is."""
    agewise.draw_channel_of(result)
    print_page(agewise.write_page(result, **asdict(shown)), to_stderr=to_stderr)


def print_result(
    result: "agewise.Result",
    *,
    as_json: bool,
    shown: Shown = Shown(),  # noqa: B008 (frozen)
) -> None:
    """The tables of a result, and what is missing in it."""
    if as_json:
        print_json(_described(result, shown))
        return
    if result.entries:
        _print_tables(result, shown)
    else:
        say(visible(f"{result.path}: no run is finished yet"))
    _print_state(result)


def print_reproduction(
    study: "Reproduction",
    *,
    as_json: bool,
    shown: Shown = Shown(),  # noqa: B008 (frozen)
) -> None:
    """The verdict: the tables, then the claims in plain words."""
    figures, claims = [str(file) for file in study.figures], study.claims
    if shown.points is not None:  # the claims are those of the table that is shown
        claims = agewise.report.claims.claims_of(study.result, study.axis, shown.points)
    if as_json:
        told = {"claims": [asdict(claim) for claim in claims], "figures": figures}
        described = _described(study.result, shown) | told
        print_json(described | _described_explanation(study.explanation))
        return
    _print_tables(study.result, shown)
    say("What the paper says, and what holds here (both with ties at random):")
    for number, claim in enumerate(claims, start=1):
        say(f"  {number}. {claim.claim}: {claim.verdict.upper()}")
        say(f"     {claim.evidence}")
    if claims:
        say(agewise.report.claims.claims_note(study.axis))
    if study.explanation is not None:
        print_explanation(study.explanation)
        figures += map(str, study.explanation.figures)
    say(f"Figure: {', '.join(figures)}")
    _print_state(study.result)


def print_explanation(explanation: "Explanation") -> None:
    """What each measure is for both policies, and what their differences say."""
    text, table = agewise.report.text, _table()
    _columns(table, ["measure"], ["age-based", "max-pack", "difference", "p-value"])
    for row in explanation.table.to_dicts():
        entries = [
            f"{(row[f'{policy}@age_based'] + row[f'{policy}@max_pack']) / 2:.2f}"
            for policy in ("age_based", "max_pack")
        ]
        entries.append(text.with_interval(row, "difference", ".2f", 1))
        entries.append(text.p_text(row["difference_p"]).removeprefix("p ").removeprefix("= "))
        table.add_row(row["label"], *entries)
    _show(table, "What both policies hear on the same models, and their difference (95%)")
    for sentence in explanation.sentences:
        say(sentence)


def _described_explanation(explanation: "Explanation | None") -> dict[str, Any]:
    if explanation is None:
        return {}
    rows = explanation.table.fill_nan(None).to_dicts()
    figures = [str(file) for file in explanation.figures]
    described = {"sentences": explanation.sentences, "rows": rows, "figures": figures}
    return {"explanation": described}


def print_map(study: "MapResult", *, as_json: bool) -> None:
    """The gain of every square with stars for its significance."""
    text = agewise.report.text
    figures = [str(file) for file in study.figures]
    wins, not_shown, losses = study.counts()
    if as_json:
        print_json(
            {
                "alphas": study.alphas,
                "likeness": study.likeness,
                "thresholds": study.thresholds,
                "gains": study.gains.tolist(),
                "p_values": study.p_values.tolist(),
                "wins": wins,
                "not_shown": not_shown,
                "losses": losses,
                "family": study.family,
                "over": agewise.statistics.axis_of(study.over).name,
                "figures": figures,
            }
        )
        return
    for layer, alpha in enumerate(study.alphas):
        table = _table()
        _columns(table, ["data of a UE"], [f"R_s = {rate:g}" for rate in study.thresholds])
        for row, likeness in enumerate(study.likeness):
            squares = zip(study.gains[layer, row], study.p_values[layer, row], strict=True)
            entries = (f"{text.points_text(gain)}{text.stars(p):<3}" for gain, p in squares)
            table.add_row(likeness, *entries)
        _show(table, f"age-based (alpha={alpha:g}) over max-pack, percentage points")
    say(f"Gains are the {study.measured}.")
    say(
        f"{text.squares_text('age-based', study.counts(), 'squares', study.pairs)} (5% level; "
        f"{text.STARS_NOTE})."
    )
    say(study.family)
    say(f"Figure: {', '.join(figures)}")
    _print_state(study.result)


def print_gap(study: "Gap", *, as_json: bool) -> None:
    """For every regime what each policy lost against the optimum."""
    text, result = agewise.report.text, study.result
    rows, figures = study.table.to_dicts(), [str(file) for file in study.figures]
    if as_json:
        print_json({"path": str(result.path), "rows": rows, "figures": figures})
        return
    names = _names(result.policies)
    varied = [name for name in _varied(result) if name in rows[0]]
    table = _table()
    _columns(table, ["policy"], ["of a round", "of the run", "age cost", "unproven"])
    before = ""
    for row in rows:
        regime = visible(text.variation_text({name: row[name] for name in varied}))
        if regime != before:
            table.add_row(f"{regime}:")
            before = regime
        table.add_row(
            names[row["policy"]],
            text.with_interval(row, "loss_per_round", ".2f"),
            _number(100 * row["loss_over_run"], ".2f"),
            f"{row['age_cost']:.1f}",
            str(row["unproven"] or "-"),
        )
    _show(table, "Weight lost against the optimum, % (95% interval over seeds); cost of the ages")
    if varied:
        say(f"Regimes: {', '.join(varied)}.")
    unproven, rounds = sum(row["unproven"] for row in rows), sum(row["rounds"] for row in rows)
    say(f"The optimum is proven in {rounds - unproven} of {rounds} rounds.")
    say(f"Figure: {', '.join(figures)}")
    _print_state(result)


def print_traffic(traffic: "Traffic", alpha: float, *, as_json: bool) -> None:
    """What came of a schedule over many slots."""
    if as_json:
        print_json(traffic.to_dict() | {"age_cost": traffic.age_cost(alpha)})
        return
    table = _table()
    _columns(table, ["what"], ["value"])
    for what, value in (
        ("updates received per slot", f"{traffic.throughput:.3f}"),
        ("subchannels used, on average", f"{traffic.subchannels_used:.2f}"),
        ("slots that served nobody", f"{traffic.empty_share:.2%}"),
        ("Jain's fairness of the deliveries", _number(traffic.fairness, ".3f")),
        ("mean age", f"{traffic.mean_age.mean():.2f}"),
        ("mean peak age", _number(_mean_peak(traffic), ".2f")),
        ("95th percentile of the ages", f"{traffic.age_quantile(0.95)}"),
        ("oldest age", f"{traffic.oldest.max()}"),
        (f"cost of the ages, alpha = {alpha:g}", f"{traffic.age_cost(alpha):.2f}"),
    ):
        table.add_row(what, value)
    _show(table, f"{traffic.policy}, {traffic.rounds:,} slots, seed {traffic.seed}")


def _mean_peak(traffic: "Traffic") -> float:
    """The mean of the ages just before a delivery, over all deliveries."""
    heard = traffic.deliveries > 0
    total = traffic.deliveries[heard].sum()
    peaks = traffic.mean_peak_age[heard] @ traffic.deliveries[heard]
    return float(peaks / total) if total else math.nan


#: What the numbers of a channel's summary are called in a table, and how they are written.
_CHANNEL_ROWS = {
    "ues": ("UEs", ",d"),
    "subchannels": ("subchannels", ",d"),
    "rounds": ("rounds looked at", ",d"),
    "power_budget": ("power budget of a UE", ".4g"),
    "rate_threshold": ("rate threshold (bit per real channel use)", ".4g"),
    "mean_snr_db_5%": ("mean SNR on one subchannel, 5% of UEs below (dB)", ".1f"),
    "mean_snr_db_median": ("- half of them below (dB)", ".1f"),
    "mean_snr_db_95%": ("- 95% below (dB)", ".1f"),
    "line_of_sight_share": ("share of UEs in line of sight", ".2f"),
    "time_correlation_1": ("correlation of gains from round to round", ".2f"),
    "frequency_correlation_1": ("- from subchannel to subchannel", ".2f"),
    "seen_error_db": ("error of what the access point sees, rms (dB)", ".2f"),
    "one_subchannel_share": ("UEs and rounds in which one subchannel is enough", ".3f"),
    "needed_subchannels_mean": ("subchannels needed where some number is enough", ".2f"),
    "served_share": ("UEs and rounds that can be served", ".3f"),
    "never_served": ("UEs that can never be served", ",d"),
}


def print_channel(view: "ChannelView", picture: Path | None, *, as_json: bool) -> None:
    """What a channel means: a table, and where the picture is."""
    summary = view.summary()
    if as_json:
        each = {"mean_snr_db": view.mean_snr_db.tolist()}
        if view.served_share is not None:
            each["served_share"] = view.served_share.tolist()
        lags = {
            "time_correlation": view.time_correlation.tolist(),
            "frequency_correlation": view.frequency_correlation.tolist(),
        }
        shown = None if picture is None else str(picture)
        print_json({**summary, "each_ue": each, "each_lag": lags, "picture": shown})
        return
    table = _table()
    _columns(table, ["channel"], ["value"])
    for name, (words, form) in _CHANNEL_ROWS.items():
        if summary.get(name) is not None:
            text = format(summary[name], form)
            table.add_row(words, text if text.strip("-0.") else text.lstrip("-"))
    _show(table)
    if picture is not None:
        say(f"Picture: {picture}")


def described_allocation(
    allocation: "agewise.Allocation", policy: "agewise.Policy", seed: int
) -> dict[str, Any]:
    """One round's schedule as plain data."""
    return {
        "agewise": agewise.__version__,
        "policy": policy.name,
        "parameters": policy.parameters,
        "seed": seed,
        "power_budget": allocation.power_budget,
        "rate_threshold": allocation.rate_threshold,
        "owner": allocation.owner.tolist(),
        "power": allocation.power.tolist(),
        "scheduled": allocation.scheduled.tolist(),
        "rate": allocation.rate.tolist(),
    }


def print_allocation(
    allocation: "agewise.Allocation",
    ages: "NDArray[np.float64]",
    policy: "agewise.Policy",
    seed: int,
) -> None:
    """Who transmits in one round, with what power and rate."""
    served, rate = allocation.scheduled.nonzero()[0], allocation.rate
    table = _table()
    _columns(table, [], ["UE", "age", "rate (bit)"])
    table.add_column("subchannel: power")
    for ue in served.tolist():
        held = "  ".join(f"{n}: {allocation.power[n]:.4g}" for n in allocation.subchannels_of(ue))
        table.add_row(str(ue), f"{ages[ue]:g}", f"{rate[ue]:.3f}", held)
    if served.size:
        _show(table)
    say(
        f"{served.size} of {allocation.ue_count} UEs scheduled on "
        f"{int((allocation.owner >= 0).sum())} of {allocation.owner.size} subchannels by {policy}, "
        f"seed {seed}{'' if served.size else ': no UE reaches the rate threshold'}"
    )


def _print_tables(result: "agewise.Result", shown: Shown) -> None:
    """One table for the scheduling and one for the accuracy, so that both fit a terminal."""
    axis, text = agewise.statistics.axis_of(shown.over), agewise.report.text
    rows = result.table(axis, shown.points).to_dicts()
    names, varied = _names_in_lines(result.policies), _varied(result)
    points = [name.removeprefix("accuracy@") for name in rows[0] if name.startswith("accuracy@")]
    who, what = _table(), _table()
    counts = {row["seeds"] for row in rows}  # one number is said once, above the table
    heads = ["UEs", "distinct", "age", "peak", "largest", "diversity"]
    heads = heads if len(counts) == 1 else ["seeds", *heads]
    lossy = ["lost %"] if any(row["outage"] > 0 for row in rows) else []
    whole = ["a run"] if axis.column else []
    _columns(who, ["policy"], heads + lossy + whole)
    _columns(what, ["policy"], [agewise.report.amounts.point_text(point, axis) for point in points])
    before = ""
    for row in _best_first(rows, points, varied):
        setting = _setting(row, varied)
        if setting != before:  # a heading above the policies, which takes less room than a column
            who.add_row(f"{setting}:")
            what.add_row(f"{setting}:")
            before = setting
        who.add_row(
            names[row["policy"]],
            *([] if len(counts) == 1 else [str(row["seeds"])]),
            f"{row['ues_per_round']:.1f}",
            f"{row['distinct_ues']:.1f}",
            f"{row['age_mean']:.1f}",
            _number(row["age_mean_peak"], ".1f"),
            f"{row['age_largest']:.1f}",
            _number(row["diversity"], ".2f"),
            *(f"{100 * row['outage']:.1f}" for _ in lossy),
            *(agewise.report.amounts.amount_text(row["spent"], axis, 3) for _ in whole),
        )
        what.add_row(names[row["policy"]], *(_accuracy(row, point) for point in points))
    seeds = f" ({counts.pop()} seeds)" if len(counts) == 1 else ""
    lost = "; uploads lost" if lossy else ""
    heading = f"UEs a round, distinct UEs; mean, mean peak and largest age; diversity{lost}"
    _show(who, f"{heading}{seeds}")
    baseline = _names(result.policies).get(str(result.baseline), "")
    against = f"; gain over {baseline}, p-value" if baseline else ""
    _show(what, f"Accuracy over {axis.name}, % (95% interval){against}")
    if family := _family(result, rows, axis.name):
        say(family)
    if shown.target is not None:
        _print_target(result, shown.target, axis)
    if baseline:
        say(f"Baseline: {baseline}.")
    if parameters := text.parameters_text(result.policies):
        say(parameters)


def _print_target(result: "agewise.Result", target: float, axis: "agewise.statistics.Axis") -> None:
    """What each policy took to an accuracy; runs that did not get there count as slow."""
    names, varied, table = _names(result.policies), _varied(result), _table()
    _columns(table, ["policy"], ["median", "95% interval", "mean up to horizon", "reached"])
    before = ""
    for row in result.to_target(target, axis).to_dicts():
        setting = _setting(row, varied)
        if setting != before:
            table.add_row(f"{setting}:")
            before = setting
        amounts = ("median", "low", "high", "restricted_mean", "horizon")
        median, low, high, mean, horizon = (_amount(row[name]) for name in amounts)
        table.add_row(
            names[row["policy"]],
            median,
            "-" if low == high == "-" else f"{low} to {high}",
            f"{mean} of {horizon}",
            f"{row['reached']} of {row['seeds']}",
        )
    percent = agewise.report.text.percent_text(target)
    _show(table, f"{axis.label[0].upper()}{axis.label[1:]} until the accuracy is {percent}%")


def _setting(row: Mapping[str, Any], varied: list[str]) -> str:
    """What a row of a sweep varies."""
    values = {name: row[name] for name in varied if row[name] is not None}
    return visible(agewise.report.text.variation_text(values))


def _family(result: "agewise.Result", rows: list[dict[str, Any]], over: str = "rounds") -> str:
    """The sentence on the tests behind the p-values of the table."""
    if result.baseline is None:
        return ""
    baseline = _names(result.policies)[str(result.baseline)]
    swept = len(result.variations) > 1
    return agewise.report.text.table_family(rows, baseline, swept=swept, over=over)


def _accuracy(row: Mapping[str, Any], point: str) -> str:
    """The accuracy at a point, and below it the gain over the baseline."""
    text, mean = agewise.report.text, row.get(f"accuracy@{point}")
    if mean is None:
        return "-"
    interval = {"mean": mean, "mean_low": row[f"low@{point}"], "mean_high": row[f"high@{point}"]}
    gain = row[f"gain@{point}"]
    lines = [text.with_interval(interval, "mean")]
    if gain is not None and not math.isnan(gain):
        tested = [text.points_text(gain), text.p_text(row[f"p@{point}"])]
        lines += [" ".join(filter(None, tested))] if _is_wide() else tested
    return "\n".join(filter(None, lines))


def _print_state(result: "agewise.Result") -> None:
    if len(result.entries) < result.expected:
        say(f"{len(result.entries)} of {result.expected} runs are finished.")
    for line in agewise.report.verdict.failed(result):
        say(visible(line))
    for problem in result.damaged:
        say(visible(f"damaged: {problem}"))
    say(visible(f"Results: {result.path}"))


def _described(result: "agewise.Result", shown: Shown) -> dict[str, Any]:
    rows = result.table(shown.over, shown.points).to_dicts() if result.entries else []
    targets = {}
    if shown.target is not None:
        found = result.to_target(shown.target, shown.over) if result.entries else None
        targets = {
            "target": shown.target,
            "to_target": found.to_dicts() if found is not None else [],
        }
    return {
        "path": str(result.path),
        "finished": len(result.entries),
        "expected": result.expected,
        "baseline": None if result.baseline is None else str(result.baseline),
        "damaged": result.damaged,
        "failed": [str(each) for each in result.failed],
        "tests": agewise.report.text.count_tests(rows),
        "family": _family(result, rows, shown.over),
        "over": shown.over,
        "rows": rows,
    } | targets


def _names(policies: "list[agewise.PolicyKey]") -> dict[str, str]:
    """Short names by what tables hold."""
    names = agewise.report.text.short_names(policies)
    return {str(key): visible(name) for key, name in names.items()}


def _names_in_lines(policies: "list[agewise.PolicyKey]") -> dict[str, str]:
    """Short names that fit a narrow terminal: parameters below the name, a line each."""
    names = _names(policies)
    return names if _is_wide() else {key: _in_lines(name) for key, name in names.items()}


def _in_lines(name: str) -> str:
    """A name with its parameters below it if both are too long for one line.

    >>> print(_in_lines("age-based (alpha=0.5, ties=lowest-index)"))
    age-based
    (alpha=0.5,
    ties=lowest-index)
    """
    if len(name) <= _NAME_WIDTH:
        return name
    first, space, rest = name.partition(" (")
    return first + (f"\n({rest}" if space else "").replace(", ", ",\n")


def _is_wide() -> bool:
    """Whether the terminal has room for more than the usual 80 columns."""
    return Console().width >= _WIDE


def _best_first(
    rows: list[dict[str, Any]], points: list[str], varied: list[str]
) -> list[dict[str, Any]]:
    """The rows of each setting by the last column if there are many policies, else as they are."""
    if len({row["policy"] for row in rows}) <= _FEW or not points:
        return rows
    places = {
        setting: n for n, setting in enumerate(dict.fromkeys(_setting(r, varied) for r in rows))
    }

    def place(row: dict[str, Any]) -> tuple[int, float]:
        last = row.get(f"accuracy@{points[-1]}")
        return places[_setting(row, varied)], math.inf if last is None else -last

    return sorted(rows, key=place)


def _varied(result: "agewise.Result") -> list[str]:
    """The fields that a sweep varies."""
    return list(dict.fromkeys(name for variation in result.variations for name in variation))


class _Table(Table):
    """A table whose cells do not steer the terminal."""

    def add_row(self, *cells: str) -> None:  # type: ignore[override]
        super().add_row(*(visible(cell, lines=True) for cell in cells))


def _table() -> _Table:
    """An empty table that reads well without colours."""
    return _Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        collapse_padding=True,
    )


def _columns(table: Table, words: list[str], numbers: list[str]) -> None:
    for name in words:
        table.add_column(visible(name), overflow="fold", min_width=_NAME_WIDTH)
    for name in numbers:
        width = max(map(len, name.split("\n")))
        name = visible(name, lines=True)
        table.add_column(name, justify="right", no_wrap=True, min_width=width)


def _show(table: Table, title: str = "") -> None:
    if title:
        # Not the table's own, which is broken to the width of the table.
        lines = [textwrap.fill(line, Console().width) for line in title.split("\n")]
        typer.secho(visible("\n".join(lines), lines=True), bold=True)
    console = Console(highlight=False, markup=False)
    endless = console.options.update(width=10_000)
    if console.measure(table, options=endless).maximum > console.width:
        _narrow(table)
    console.print(table)


def _narrow(table: Table) -> None:
    """Names may break between words, before numbers would be cut off."""
    for column in table.columns:
        if not column.no_wrap:
            cells = (str(column.header), *map(str, column.cells))
            longest = max((len(word) for cell in cells for word in cell.split()), default=0)
            column.min_width = min(_NAME_WIDTH, longest)


def _amount(value: float | None) -> str:
    """The number to four digits without powers of ten, or a dash if there is none."""
    if value is None or math.isnan(value):
        return "-"
    return agewise.report.amounts.short_text(value, 4)


def _number(value: float | None, form: str) -> str:
    """The number in this form, or a dash if there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:{form}}"
