"""Results as tables for eyes, or as JSON."""

import math
from typing import TYPE_CHECKING, Any

import typer

from agewise.cli.tables import console, number, print_json, stars, table

if TYPE_CHECKING:
    from agewise.experiment import Result
    from agewise.reproduction import MapResult, Reproduction


def print_result(result: "Result", *, as_json: bool) -> None:
    """The table of a result, and what is missing in it."""
    if as_json:
        print_json(_described(result))
        return
    if result.entries:
        _print_tables(result)
    else:
        typer.echo(f"{result.path}: no run is finished yet")
    _print_state(result)


def print_reproduction(made: "Reproduction", *, as_json: bool) -> None:
    """The verdict: the table, then the claims in plain words."""
    claims = [vars(claim) for claim in made.claims]
    figures = [str(file) for file in made.figures]
    if as_json:
        print_json(_described(made.result) | {"claims": claims, "figures": figures})
        return
    _print_tables(made.result)
    typer.echo("What the paper says of ABS against MaxPack (ties at random), and what holds here:")
    for place, claim in enumerate(made.claims, start=1):
        typer.echo(f"  {place}. {claim.claim}: {claim.verdict.upper()}")
        typer.echo(f"     {claim.evidence}")
    typer.echo(f"Figure: {', '.join(figures)}")
    _print_state(made.result)


def print_map(drawn: "MapResult", *, as_json: bool) -> None:
    """The gain of every square with stars for its significance."""
    figures = [str(file) for file in drawn.figures]
    wins, ties, losses = drawn.counts()
    if as_json:
        print_json(
            {
                "alphas": drawn.alphas,
                "likeness": drawn.likeness,
                "thresholds": drawn.thresholds,
                "gains": drawn.gains.tolist(),
                "p_values": drawn.p_values.tolist(),
                "wins": wins, "ties": ties, "losses": losses, "figures": figures,
            }
        )  # fmt: skip
        return
    for layer, alpha in enumerate(drawn.alphas):
        shown = table(f"ABS (alpha={alpha:g}) over MaxPack, percentage points")
        shown.add_column("data of a UE")
        for threshold in drawn.thresholds:
            shown.add_column(f"R_s = {threshold:g}", justify="right")
        for row, likeness in enumerate(drawn.likeness):
            squares = zip(drawn.gains[layer, row], drawn.p_values[layer, row], strict=True)
            shown.add_row(likeness, *(f"{100 * gain:+.1f}{stars(p):<3}" for gain, p in squares))
        console().print(shown)
    typer.echo(
        f"ABS wins in {wins}, ties in {ties} and loses in {losses} of {drawn.gains.size} squares "
        "(5% level, corrected for all of them; * p < 0.05, ** p < 0.01, *** p < 0.001)."
    )
    typer.echo(f"Figure: {', '.join(figures)}")
    _print_state(drawn.result)


def _print_tables(result: "Result") -> None:
    """One table for the scheduling and one for the accuracy, so that both fit a terminal."""
    rows = result.table().to_dicts()
    varied = [name for name in rows[0] if "." in name]
    points = [name.split("@")[1] for name in rows[0] if name.startswith("accuracy@")]
    who = table("UEs a round, distinct UEs reached, mean and peak age, gradient diversity")
    heads = ["setting", "policy"] if varied else ["policy"]
    for name in heads:
        who.add_column(name, no_wrap=True)
    for name in ("seeds", "UEs", "distinct", "age", "peak", "diversity"):
        who.add_column(name, justify="right")
    what = table("Accuracy after so many rounds (95% interval); gain over the baseline, p")
    for name in heads:
        what.add_column(name, no_wrap=True)
    for point in points:
        what.add_column(f"round {point}", justify="right")
    for row in rows:
        setting = "\n".join(
            f"{name.split('.')[-1]}={row[name]}" for name in varied if row[name] is not None
        )
        head = [setting, _short(row["policy"])] if varied else [_short(row["policy"])]
        who.add_row(
            *head, str(row["seeds"]), f"{row['ues_per_round']:.1f}", f"{row['distinct_ues']:.1f}",
            f"{row['age_mean']:.1f}", f"{row['age_peak']:.1f}", number(row["diversity"], "{:.2f}"),
        )  # fmt: skip
        what.add_row(*head, *(_accuracy(row, point) for point in points))
    console().print(who)
    console().print(what)


def _accuracy(row: dict[str, Any], point: str) -> str:
    if row.get(f"accuracy@{point}") is None:
        return "-"
    half = (row[f"high@{point}"] - row[f"low@{point}"]) / 2
    text = f"{100 * row[f'accuracy@{point}']:.1f}"
    text += f" ± {100 * half:.1f}" if math.isfinite(half) else ""
    gain, p = row[f"gain@{point}"], row[f"p@{point}"]
    if gain is not None:
        chance = "" if p is None else " p<.001" if p < 0.001 else f" p={p:.3f}".replace("0.", ".")
        text += f"\n{100 * gain:+.1f}{chance}"
    return text


def _print_state(result: "Result") -> None:
    if len(result.entries) < result.expected:
        typer.echo(f"{len(result.entries)} of {result.expected} runs are finished.")
    for problem in result.damaged:
        typer.echo(f"damaged: {problem}")
    typer.echo(f"Results: {result.path}")


def _described(result: "Result") -> dict[str, Any]:
    return {
        "path": str(result.path),
        "finished": len(result.entries),
        "expected": result.expected,
        "damaged": result.damaged,
        "rows": result.table().to_dicts() if result.entries else [],
    }


def _short(policy: str) -> str:
    """A policy's full name over several short lines."""
    name, _, inside = policy.partition("(")
    return "\n".join([name, *(f" {part}" for part in inside.rstrip(")").split(", ") if part)])
