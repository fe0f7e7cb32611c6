"""Policies beside the optimum and beside each other, as tables for eyes or as JSON."""

from typing import TYPE_CHECKING, Any

import typer

from agewise.cli.tables import console, number, print_json, table
from agewise.report.words import with_interval

if TYPE_CHECKING:
    from agewise.optimality import Gap
    from agewise.suite import Benchmark
    from agewise.traffic import Traffic


def print_gap(made: "Gap", *, as_json: bool) -> None:
    """A table per regime of what each policy lost against the optimum."""
    from agewise.report.names import short_names

    rows, figures = made.table.to_dicts(), [str(file) for file in made.figures]
    if as_json:
        print_json({"path": str(made.result.path), "rows": rows, "figures": figures})
        return
    names = short_names(made.result.policies)
    varied = [name for name in rows[0] if "." in name]
    shown = table("Weight lost against the optimum, % (95% interval over seeds); cost of the ages")
    shown.add_column("regime")
    shown.add_column("policy")
    for name in ("of a round", "of the run", "age cost", "unproven"):
        shown.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    before = None
    for row in rows:
        regime = ", ".join(_word(row[name]) for name in varied)
        shown.add_row(
            "" if regime == before else regime, names[row["policy"]],
            with_interval(row, "loss_per_round", ".2f"),
            number(100 * row["loss_over_run"], "{:.2f}"), f"{row['age_cost']:.1f}",
            str(row["unproven"] or "-"),
        )  # fmt: skip
        before = regime
    console().print(shown)
    typer.echo(f"Regimes: {', '.join(varied)}.")
    unproven, rounds = sum(row["unproven"] for row in rows), sum(row["rounds"] for row in rows)
    typer.echo(f"The optimum is proven in {rounds - unproven} of {rounds} rounds.")
    typer.echo(f"Figure: {', '.join(figures)}")
    typer.echo(f"Results: {made.result.path}")


def print_benchmark(made: "Benchmark", *, as_json: bool) -> None:
    """The ranking over all scenarios, and the accuracies in each."""
    from agewise.report.names import short_names

    rows = made.ranking().to_dicts()
    tables = {name: made.table(name).to_dicts() for name in made.measures}
    if as_json:
        print_json({"ranking": rows, "scenarios": tables})
        return
    names = short_names(list(next(iter(made.measures.values()))))
    shown = table(
        "Score: mean accuracy over scenarios and checkpoints, % (95% interval)\n"
        "gain over the baseline, mean age, Jain's fairness, % lost to the optimum"
    )
    shown.add_column("policy", no_wrap=True)
    for name in ("score", "rank", "gain", "p", "age", "fair", "loss"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        gain = None if row["gain"] is None else 100 * row["gain"]
        shown.add_row(
            names[row["policy"]], with_interval(row, "score"), f"{row['rank']:.1f}",
            number(gain, "{:+.1f}"), _chance(row["p"]), f"{row['age']:.1f}",
            f"{row['fairness']:.2f}", f"{100 * row['loss']:.1f}",
        )  # fmt: skip
    console().print(shown)
    each = table("Score in each scenario, %")
    each.add_column("policy", no_wrap=True)
    for name in tables:
        each.add_column(name.replace("-", "-\n"), justify="right")
    scores = {name: {row["policy"]: row for row in rows} for name, rows in tables.items()}
    for row in rows:
        policy = row["policy"]
        each.add_row(
            names[policy], *(f"{100 * own[policy]['score']:.1f}" for own in scores.values())
        )
    console().print(each)


def print_traffic(traffic: "Traffic", alpha: float, *, as_json: bool) -> None:
    """What came of a schedule over many slots."""
    if as_json:
        print_json(traffic.to_dict() | {"age_cost": traffic.age_cost(alpha)})
        return
    shown = table(f"{traffic.policy}, {traffic.rounds:,} slots, seed {traffic.seed}")
    shown.add_column("what")
    shown.add_column("value", justify="right")
    for what, value in (
        ("updates received per slot", f"{traffic.throughput:.3f}"),
        ("subchannels used, on average", f"{traffic.subchannels_used:.2f}"),
        ("slots that served nobody", f"{traffic.empty_share:.2%}"),
        ("Jain's fairness of the deliveries", number(traffic.fairness, "{:.3f}")),
        ("mean age", f"{traffic.mean_age.mean():.2f}"),
        ("95th percentile of the ages", f"{traffic.age_quantile(0.95)}"),
        ("oldest age", f"{traffic.oldest.max()}"),
        (f"cost of the ages, alpha = {alpha:g}", f"{traffic.age_cost(alpha):.2f}"),
    ):
        shown.add_row(what, value)
    console().print(shown)


def _chance(p: float | None) -> str:
    return "<.001" if p is not None and p < 0.001 else number(p, "{:.3f}")


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
