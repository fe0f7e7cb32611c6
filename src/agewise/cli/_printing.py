"""Results on the terminal as tables and sentences, or as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

import agewise
from agewise.checks import visible
from agewise.cli._app import print_json, say, say_verbatim
from agewise.tables import Cell, Column, Table, device_table
from agewise.tables._words import STARS_NOTE, counted, parameters_text, value_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agewise.studies import ChannelView, Gap, MapReproduction, Race, Reproduction
    from agewise.tables import Explanation, ResultTable
    from agewise.traffic import Traffic


#: The paper and this software, as papers cite them.
BIBTEX = f"""\
@inproceedings{{yang2020age,
  author    = {{Howard H. Yang and Ahmed Arafa and Tony Q. S. Quek and H. Vincent Poor}},
  title     = {{Age-Based Scheduling Policy for Federated Learning in Mobile Edge Networks}},
  booktitle = {{IEEE International Conference on Acoustics, Speech and Signal Processing (ICASSP)}},
  pages     = {{8743--8747}},
  year      = {{2020}}
}}

@software{{agewise,
  author  = {{{{The Agewise developers}}}},
  title   = {{Agewise: age-based scheduling of federated learning over wireless channels}},
  version = {{{agewise.__version__}}},
  year    = {{2026}}
}}"""
#: What stands for what in the equations of policies, as in docs/nomenclature.md.
_SYMBOLS = {
    "U_k": "is the utility of UE k", "T_k": "its age in rounds", "n_k": "the subchannels it needs",
    "p_k": "its chance of success, or of being drawn", "s_k": "the staleness of its update",
    "Δ_k": "its last update (in ‖ ‖), or its version age", "F_k": "its loss",
    "G_kn": "its gain on subchannel n", "|D_k|": "its number of samples",
    "t_k": "its upload's time", "c_k": "its computing time",
}  # fmt: skip


@dataclass(frozen=True)
class ShowOptions:
    """How a result is shown: over which x axis, at which of its points, and up to which target."""

    over: str = "rounds"
    at: tuple[float, ...] | None = None
    target: float | None = None


def print_table(table: Table) -> None:
    """The title, the table as wide as the terminal, and the note."""
    console = Console(highlight=False, markup=False)
    if table.title:
        typer.secho(table.title_lines(console.width), bold=True)
    console.print(table.to_rich(console.width), crop=False)
    if table.note:
        say(table.note)


def print_policy(policy: "agewise.policies.PolicyDescription", *, as_json: bool) -> None:
    """All about one policy: what it does, its equation, its parameters and its source."""
    if as_json:
        print_json(asdict(policy))
        return
    say(f"{policy.name}: {policy.summary}")
    if policy.equation:
        say(f"\n  {policy.equation}\n")
        names = (f"{symbol} {means}" for symbol, means in _SYMBOLS.items())
        say(f"{', '.join(name for name in names if name.split()[0] in policy.equation)}.")
    if policy.parameters:
        columns = [Column(head, kind="words") for head in ("parameter", "default", "may be")]
        rows = [[each.name, value_text(each.default), each.allowed] for each in policy.parameters]
        print_table(Table("", columns, rows))
    else:
        say("It has no parameters.")
    if policy.reads:
        say(f"It reads what UEs report: {', '.join(policy.reads)}.")
    if policy.provenance:
        say(f"Its weights: {policy.provenance}")
    for paragraph in filter(None, policy.text.split("\n\n")):
        say("\n" + (paragraph if paragraph.startswith("-") else " ".join(paragraph.split())))


def print_page_of(result: "agewise.Result", shown: ShowOptions, *, to_stderr: bool) -> None:
    """Write the page of a result, with the picture of its channel, and say where it is."""
    agewise.keep_channel_of(result)
    say(f"Page: {agewise.write_page(result, **asdict(shown))}", err=to_stderr)


def print_result(
    result: "agewise.Result", shown: ShowOptions, *, as_json: bool, page: bool = False
) -> None:
    """The tables of a result, what is missing in it, its page if wanted, and last its verdict."""
    table = result.table(shown.over, shown.at) if result.entries and not as_json else None
    if as_json:
        print_json(_described(result, shown))
    else:
        if table is None:
            say(f"{result.path}: no run is finished yet")
        else:
            _print_tables(result, table, shown)
        _print_end(result)
    if page:
        print_page_of(result, shown, to_stderr=as_json)
    if table is not None:
        _print_verdict(result, table)


def _print_verdict(result: "agewise.Result", table: "ResultTable") -> None:
    if table.baseline is not None:
        say(agewise.report.verdict(result, table).answer)


def print_latex(result: "agewise.Result", shown: ShowOptions, labels: Mapping[str, str]) -> None:
    """The tables of a result for a paper."""
    table = result.table(shown.over, shown.at)
    tables = [table.accuracy(), table.service()]
    if shown.target is not None:
        tables.append(result.to_target(shown.target, shown.over).table())
    for each in tables:
        say_verbatim(each.to_latex(labels))


def print_reproduction(study: "Reproduction", shown: ShowOptions, *, as_json: bool) -> None:
    """The verdict: the tables, then the claims in plain words."""
    figures, claims = study.figures, study.claims
    if shown.at is not None:  # the claims are those of the table that is shown
        claims = agewise.report.claims_of(study.result, study.axis, shown.at)
    explanation = study.explanation
    if as_json:
        told: dict[str, Any] = {"claims": [asdict(claim) for claim in claims], "figures": figures}
        if explanation is not None:
            told["explanation"] = explanation.to_json()
        print_json(_described(study.result, shown) | told)
        return
    table = study.result.table(shown.over, shown.at)
    _print_tables(study.result, table, shown)
    _print_verdict(study.result, table)
    say("What the paper says, and what holds here (both with ties at random):")
    for number, claim in enumerate(claims, start=1):
        say(f"  {number}. {claim.claim}: {claim.verdict.upper()}")
        say(f"     {claim.evidence}")
    if claims:
        say(agewise.report.claims_note(study.axis))
    if explanation is not None:
        _print_steps(explanation)
    _print_end(study.result, figures)


def print_explanation(explanation: "Explanation", folder: Path, *, as_json: bool) -> None:
    """What a gain is made of, and where its picture is."""
    if as_json:
        print_json(explanation.to_json())
        return
    _print_steps(explanation)
    say(f"Figure: {folder / agewise.studies.explanation.FIGURES[0]}")


def _print_steps(explanation: "Explanation") -> None:
    print_table(explanation.table())
    for sentence in explanation.sentences:
        say(sentence)


def print_map(study: "MapReproduction", *, as_json: bool) -> None:
    """The gain of every square with stars for its significance."""
    squares = study.map
    if as_json:
        print_json(squares.to_json() | {"figures": study.figures})
        return
    for layer in range(len(squares.policies)):
        print_table(squares.table(layer))
    say(f"{squares.summary('age-based', 'squares')}.")
    say(squares.family if squares.few else f"{squares.family} {STARS_NOTE}.")
    _print_end(study.result, study.figures)


def print_race(study: "Race", *, as_json: bool) -> None:
    """What to take, those of the last comparison, and what was tried."""
    if as_json:
        print_json({"path": study.result.path, **study.table.to_json()})
        return
    say(study.table.answer)
    print_table(study.table.table())
    say(study.table.tried)
    say(visible(f"Results: {study.result.path}"))


def print_gap(study: "Gap", *, as_json: bool) -> None:
    """For every regime what each policy lost against the optimum."""
    if as_json:
        rows = study.table.to_dicts()
        print_json({"path": study.result.path, "rows": rows, "figures": study.figures})
        return
    print_table(study.table.table())
    if study.table.varied:
        say(f"Regimes: {', '.join(study.table.varied)}.")
    _print_end(study.result, study.figures)


def print_traffic(traffic: "Traffic", alpha: float, *, as_json: bool) -> None:
    """What came of a schedule over many slots."""
    if as_json:
        print_json(traffic.to_dict() | {"age_cost": traffic.age_cost(alpha)})
        return
    heard = traffic.deliveries > 0  # the mean of the peaks is over all deliveries
    peaks = traffic.mean_peak_age[heard] @ traffic.deliveries[heard]
    mean_peak = float(peaks / traffic.deliveries.sum()) if heard.any() else math.nan
    rows: list[list[Cell]] = [
        ["updates received per slot", f"{traffic.throughput:.3f}"],
        ["subchannels used, on average", f"{traffic.subchannels_used:.2f}"],
        ["slots that served nobody", f"{traffic.empty_share:.2%}"],
        ["Jain's fairness of the deliveries", traffic.fairness],
        ["mean age", f"{traffic.mean_age.mean():.2f}"],
        ["bound on the mean age of any schedule", f"{traffic.age_bound:.2f}"],
        ["mean age above the bound, %", 100.0 * traffic.above_bound],
        ["mean peak age", mean_peak],
        ["95th percentile of the ages", f"{traffic.age_quantile(0.95)}"],
        ["oldest age", f"{traffic.oldest.max()}"],
        [f"cost of the ages, alpha = {alpha:g}", f"{traffic.age_cost(alpha):.2f}"],
    ]
    title = f"{traffic.policy}, {counted(traffic.rounds, 'slot')}, seed {traffic.seed}"
    print_table(Table(title, [Column("what", kind="words"), Column("value", ".3f")], rows))


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


def print_channel(
    view: "ChannelView",
    output: Path | None,
    scenario: "agewise.Scenario | None" = None,
    *,
    as_json: bool,
) -> None:
    """What a channel means: a table, the devices on it, and a picture where one is asked for."""
    summary, picture = view.summary(), output and agewise.draw_channel(view, output)
    if as_json:
        each = {"mean_snr_db": view.mean_snr_db.tolist()}
        if view.served_share is not None:
            each["served_share"] = view.served_share.tolist()
        lags = {
            "time_correlation": view.time_correlation.tolist(),
            "frequency_correlation": view.frequency_correlation.tolist(),
        }
        about = {} if scenario is None else {"devices": scenario.resolved()["devices"]}
        print_json({**summary, **about, "each_ue": each, "each_lag": lags, "picture": picture})
        return
    rows: list[list[Cell]] = []
    for name, (words, form) in _CHANNEL_ROWS.items():
        if summary.get(name) is not None:
            text = format(summary[name], form)
            rows.append([words, text if text.strip("-0.") else text.lstrip("-")])
    print_table(Table("", [Column("channel", kind="words"), Column("value")], rows))
    if scenario is not None and (devices := device_table(scenario)) is not None:
        print_table(devices)
    if picture is not None:
        say(f"Picture: {picture}")


def print_allocation(
    allocation: "agewise.Allocation",
    ages: "NDArray[np.float64]",
    policy: "agewise.Policy",
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Who transmits in one round, with what power and rate."""
    if as_json:
        about = {"agewise": agewise.__version__, "policy": policy.name, "seed": seed}
        names = ("power_budget", "rate_threshold", "owner", "power", "scheduled", "rate")
        arrays = {name: getattr(allocation, name).tolist() for name in names}
        print_json(about | {"parameters": policy.parameters} | arrays)
        return
    served, rate = allocation.scheduled.nonzero()[0], allocation.rate
    rows: list[list[Cell]] = []
    for ue in served.tolist():
        held = "  ".join(f"{n}: {allocation.power[n]:.4g}" for n in allocation.subchannels_of(ue))
        rows.append([ue, float(ages[ue]), float(rate[ue]), held])
    if rows:
        columns = [Column("UE"), Column("age", "g"), Column("rate (bit)", ".3f")]
        print_table(Table("", [*columns, Column("subchannel: power", kind="words")], rows))
    say(
        f"{served.size} of {counted(allocation.ue_count, 'UE')} scheduled on "
        f"{int((allocation.owner >= 0).sum())} of {counted(allocation.owner.size, 'subchannel')} "
        f"by {policy}, "
        f"seed {seed}{'' if served.size else ': no UE reaches the rate threshold'}"
    )


def _print_tables(result: "agewise.Result", table: "ResultTable", shown: ShowOptions) -> None:
    """One table for the scheduling and one for the accuracy, so that both fit a terminal."""
    print_table(table.service())
    print_table(table.accuracy())
    if shown.target is not None:
        print_table(result.to_target(shown.target, shown.over).table())
    if parameters := parameters_text(result.policies):
        say(parameters)


def _print_end(result: "agewise.Result", figures: Sequence[Path] = ()) -> None:
    """Say where the figures and the results are, and which runs are missing in these."""
    if figures:
        say(f"Figure: {', '.join(map(str, figures))}")
    if len(result.entries) < result.expected:
        are = "is" if result.expected == 1 else "are"
        say(f"{len(result.entries)} of {counted(result.expected, 'run')} {are} finished.")
    for line in agewise.report.failed_runs(result):
        say(visible(line))
    for problem in result.damaged:
        say(visible(f"damaged: {problem}"))
    say(visible(f"Results: {result.path}"))


def _described(result: "agewise.Result", shown: ShowOptions) -> dict[str, Any]:
    """A result as plain data."""
    table = result.table(shown.over, shown.at)
    described = {
        "path": str(result.path),
        "finished": len(result.entries),
        "expected": result.expected,
        "baseline": None if result.baseline is None else str(result.baseline),
        "damaged": result.damaged,
        "failed": [str(each) for each in result.failed],
        "family": table.family,
        "over": shown.over,
        "rows": table.to_dicts(),
    }
    if shown.target is not None:
        found = result.to_target(shown.target, shown.over)
        described |= {"target": shown.target, "to_target": found.to_dicts()}
    return described
