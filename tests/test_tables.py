"""Tables of results, in every form in which they are shown."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from agewise.records import PolicyKey
from agewise.statistics import AXES, Contrast, Estimate, contrast, estimate
from agewise.tables import Column, GainMap, PolicyName, ResultTable, Row, Table

AGED, PACK = PolicyKey("age-based", {"alpha": 0.5}), PolicyKey("max-pack", {})
GAIN = Contrast(0.0123, 0.0023, 0.0223, 0.0314, 20, "max-t")
METRICS = {
    "ues_per_round": 15.25, "distinct_ues": 100.0, "age_mean": 3.7, "age_largest": 17.0,
    "age_mean_peak": None, "diversity": 0.8, "spread": 12.0, "outage": 0.0, "cost": 60.0,
}  # fmt: skip


@pytest.fixture
def table():
    rows = []
    for rate in (2.0, 4.0):
        aged = {10.0: Estimate(0.8, 0.78, 0.82, GAIN), 60.0: Estimate(*(np.nan,) * 3)}
        packed = {10.0: Estimate(0.79, 0.77, 0.81), 60.0: Estimate(0.9, np.nan, np.nan)}
        for policy, at in ((AGED, aged), (PACK, packed)):
            rows.append(Row(policy, {"threshold.rate": rate}, 20, at, METRICS))
    variations = [{"threshold.rate": 2.0}, {"threshold.rate": 4.0}]
    return ResultTable([AGED, PACK], variations, PACK, AXES["rounds"], rows)


def test_the_same_numbers_in_every_form(table):
    shown = table.accuracy()
    for text in (
        shown.to_text(120), shown.to_markdown(),
        unescape(re.sub("<[^>]*>", " ", re.sub("</?span[^>]*>", "", shown.to_html()))),
    ):  # fmt: skip
        assert "80.0 ± 2.0" in text
        assert "+1.2 (+0.2 to +2.2), p = 0.031" in text
        assert "90.0" in text
        assert "nan" not in text
    latex = shown.to_latex()
    cells = [line.strip(" &\\") for line in latex.splitlines()]
    first = next(i for i, line in enumerate(cells) if "80.0 $" in line)
    assert cells[first + 1 : first + 4] == ["+1.2", "+0.2 to +2.2", "$p$ = 0.031"]
    assert r"in \% (20 seeds), with its" in latex
    assert "nan" not in latex
    narrow = shown.to_text(80).partition("Intervals and p-values")[0]
    assert re.search(r"\+1\.2 *\n +\+0\.2 to \+2\.2 *\n +p = 0\.031", narrow)
    assert max(map(len, narrow.splitlines())) <= 80
    assert shown.to_text().count("rate=2:") == 1, "a setting is a heading on a terminal"
    assert shown.to_markdown().startswith("| rate | policy | round 10 | round 60 |\n|---|---|---:|")
    assert 'class="gain sure"' in shown.to_html()


def test_numbers_are_never_cut_off(table):
    long = Table("", [Column("policy", kind="words"), Column("a"), Column("b")],
                 [["a name of many words", 30 * "1", 30 * "2"]])  # fmt: skip
    assert f"{30 * '1'}  {30 * '2'}" in long.to_text(40)
    timed = replace(table, axis=AXES["joules"]).service().to_text(80)
    assert max(map(len, timed.splitlines())) <= 80


def test_flat_columns_are_for_the_user(table):
    frame = table.to_polars()
    assert frame["threshold.rate"].to_list() == [2.0, 2.0, 4.0, 4.0]
    assert frame["gain@10"].to_list() == [GAIN.mean, None] * 2
    assert frame["gain_low@10"].to_list() == [GAIN.low, None] * 2
    assert frame["age_mean_peak"].to_list() == [None] * 4
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [float(row["accuracy@10"]) for row in rows] == [0.8, 0.79, 0.8, 0.79]
    assert json.dumps(table.to_dicts()[1]["p@10"]) == "null"
    assert table.family.startswith(
        "Intervals and p-values: paired t tests against max-pack, all 2 "
    )
    assert table.family.endswith("(policies, settings and rounds) together by single-step max-t.")
    assert table.by_policy({"threshold.rate": 4.0})[str(AGED)].gains == {10.0: GAIN}


def test_columns_without_a_number_are_of_numbers(table):
    lonely = replace(table, rows=[row for row in table.rows if row.policy == PACK])
    assert str(lonely.to_polars()["gain@10"].dtype) == "Float64"
    assert "age_mean_peak" in lonely.to_csv()
    assert "max-\n" not in table.accuracy().to_text(79), "names are not broken inside"


def test_signs_of_numbers_are_those_of_mathematics_in_latex():
    sure = Contrast(-0.0812, -0.123, -0.04, 0.0004, 20)
    columns = [Column("policy-1", kind="words"), Column("gain", ".1f", 100.0)]
    made = Table("p-values of a-2", columns, [["a-1", Estimate(0.8, 0.7, 0.9, sure)]]).to_latex()
    assert r"\caption{$p$-values of a-2.}" in made
    assert "a-1 & 80.0 $\\pm$ 10.0 \\\\\n & $-$8.1 \\\\\n & $-$12.3 to $-$4.0" in made
    assert "$p$ $<$ 0.001" in made


def test_no_text_steers_a_medium():
    evil = r"\input{x} | 100% <script>" + "\x1b[31m"
    columns = [Column(evil, kind="policy"), Column("n", "d")]
    made = Table(evil, columns, [[PolicyName(evil, 0), 3]], evil)
    assert "\x1b" not in made.to_text()
    assert "<script>" not in made.to_html()
    assert r"\input" not in made.to_latex()
    assert r"100\%" in made.to_latex()
    assert made.to_markdown().splitlines()[2].count(" | ") == 1
    odd = Table("a\n\nb", columns[:1], [["[9]"], ["*"], ["a\n\nb"]]).to_latex()
    assert "\n\n" not in odd, "which ends a paragraph amid an argument"
    assert r"{}[9] \\" in odd, "and no option of the row before"
    assert r"{}* \\" in odd


@pytest.mark.parametrize(
    ("p", "pairs", "gain", "verdict"),
    [
        (0.01, 20, 0.1, "better"), (0.01, 20, -0.1, "worse"), (0.05, 20, 0.1, "not shown"),
        (np.nan, 20, np.nan, "not shown"), (0.001, 4, 0.1, "too few seeds"),
    ],
)  # fmt: skip
def test_one_gate_decides_what_is_shown(p, pairs, gain, verdict):
    contrast = Contrast(gain, gain, gain, p, pairs)
    assert contrast.verdict == verdict
    assert contrast.shown == (verdict in ("better", "worse"))


def test_few_seeds_are_shown_themselves():
    gain = contrast([0.39, 0.668], [0.4, 0.5])
    few = estimate([0.39, 0.668], gain)
    (policy,) = [{10.0: few}]
    row = Row(AGED, {}, 2, policy, METRICS)
    made = ResultTable([AGED, PACK], [{}], PACK, AXES["rounds"], [row], AGED)
    for width, lines in ((120, ["52.9 (39.0, 66.8)", "+7.9 (-1.0, +16.8)"]),
                         (80, ["52.9", "39.0, 66.8", "+7.9", "-1.0, +16.8"])):  # fmt: skip
        text = made.accuracy().to_text(width)
        assert [line for line in lines if line not in text] == []
        assert "±" not in text
        assert "p = " not in text
    assert "with that of each seed; below it" in made.accuracy().title
    assert made.family.startswith("Too few seeds for a verdict: 2; ")


def test_the_primary_comparison_stands_apart():
    def row(policy, pairs=20):
        gains = {at: replace(GAIN, pairs=pairs, method=m)
                 for at, m in ((10.0, "max-t"), (40.0, "paired t test"))}  # fmt: skip
        at = {x: Estimate(0.8, 0.7, 0.9, gain) for x, gain in gains.items()}
        return Row(policy, {}, pairs, at, METRICS)

    other = PolicyKey("random", {})
    policies = [AGED, other, PACK]
    made = ResultTable(policies, [{}], PACK, AXES["rounds"], [row(AGED), row(other)], AGED)
    assert list(made.primary) == [(0, 40.0)]
    assert made.family == (
        f"Primary comparison, {AGED} after 40 rounds: one paired t test against max-pack. All "
        "others: paired t tests against max-pack, all 3 (policies and rounds) together by "
        "single-step max-t."
    )


def test_a_map_is_told_and_shown(table):
    squares = {(0, 0, 0): GAIN, (0, 0, 1): Contrast(-0.02, -0.03, -0.01, 0.0002, 20)}
    drawn = GainMap(
        ["age-based"], "max-pack", "data", ["a", "b"], "threshold.rate", ["2", "4"], {}, squares,
        "after 10 rounds", table.axis,
    )  # fmt: skip
    assert drawn.summary("age-based", "settings") == (
        "age-based wins in 1 and loses in 1 of 2 settings"
    )
    assert drawn.limit == 0.02
    assert drawn.table(0).title == "age-based minus max-pack after 10 rounds, percentage points"
    assert drawn.table(0).to_markdown().splitlines() == [
        "| data | rate = 2 | rate = 4 |", "|---|---:|---:|", "| a | +1.2* | -2.0*** |",
        "| b | – | – |",
    ]  # fmt: skip
    assert np.isnan(drawn.gains[0, 1]).all()
