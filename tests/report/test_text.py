"""Names and numbers in words, and the claims of a result."""

import ast
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

import agewise.report
from agewise import statistics
from agewise.cli import _printing as printing
from agewise.experiment import LearningCurve, Plan, RunMetrics
from agewise.policies import AgeBased, MaxPack, make_policy
from agewise.records import PolicyKey
from agewise.report._claims import CLAIMS_NOTE, Pair, claims_of, judge
from agewise.report._verdict import verdict
from agewise.report.page import make_page
from agewise.statistics import Contrast, Estimate
from agewise.tables import Row
from agewise.tables._words import (
    and_list,
    contrast_text,
    limits_text,
    p_text,
    points_text,
    stars,
    variation_text,
)
from tests.scenarios import tiny


def names(*policies):
    return [str(make_policy(policy)) for policy in policies]


def test_policies_have_their_names_and_what_tells_likes_apart():
    assert names("age-based", "max-pack", "max-pack:packing=exact:work_limit=9") == [
        "age-based", "max-pack", "max-pack:packing=exact:work_limit=9"
    ]  # fmt: skip
    assert names("max-pack", "max-pack:ties=lowest-index", "age-based") == [
        "max-pack", "max-pack:ties=lowest-index", "age-based"
    ]  # fmt: skip
    assert names("age-based:alpha=0", "age-based:alpha=1,ties=lowest-index") == [
        "age-based:alpha=0", "age-based:alpha=1,ties=lowest-index"
    ]  # fmt: skip


def test_different_policies_have_different_names():
    near = [PolicyKey("p", {"a": 0.1}), PolicyKey("p", {"a": 0.1 + 1e-9}), PolicyKey("p", {})]
    assert len(set(map(str, near))) == 3


@pytest.mark.parametrize(
    ("p", "text", "marks"),
    [
        (float("nan"), "", ""), (0.0, "p < 0.001", "***"),
        (0.001, "p = 0.001", "**"), (0.01, "p = 0.010", "*"), (0.05, "p = 0.050", ""),
        (1.0, "p = 1.000", ""),
    ],
)  # fmt: skip
def test_p_values_and_stars(p, text, marks):
    assert (p_text(p), stars(Contrast(0.1, 0.0, 0.2, p, 5))) == (text, marks)
    assert stars(Contrast(0.1, 0.0, 0.2, p, 4)) == "", "too few seeds for a verdict"


def test_small_words():
    said = {-0.00045: "-0.04", -0.0006: "-0.1", 0.1: "+10.0", 0.00002: "+0.00", 0.0: "0.0"}
    assert {x: points_text(x) for x in said} == said, "the sign is that of the number"
    assert limits_text(Contrast(0.0082, -0.00045, 0.01685, 0.06, 20)) == "-0.04 to +1.7"
    assert [and_list(words) for words in ((), "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    trace = {"kind": "trace", "path": "g.npz", "power_budget": None}
    assert (
        variation_text({"channel": trace, "timing": "none"})
        == "channel=trace(path=g.npz), timing=none"
    )
    assert variation_text({}) == ""


def pair_of(result, seeds):
    runs = [
        {seed: result.history(policy, seed) for seed in seeds}
        for policy in (AgeBased().key, MaxPack().key)
    ]
    return Pair(tuple(map(LearningCurve.of, runs)), tuple(map(RunMetrics.of, runs)))


def test_the_claims_of_a_result_are_judged_on_the_seeds_in_common(compared, swept):
    row = compared.table().rows[0]
    assert claims_of(compared) == judge(pair_of(compared, (0, 1, 2)), row)
    key = make_policy("max-pack").key
    fewer = [entry for entry in compared.entries if (entry.policy, entry.seed) != (key, 1)]
    partly = replace(compared, entries=fewer)
    assert claims_of(partly) == judge(pair_of(compared, (0, 2)), partly.table().rows[0])
    assert claims_of(partly) != claims_of(compared)
    none = replace(compared, entries=[e for e in compared.entries if e.policy != key])
    assert claims_of(none) == []
    assert claims_of(swept) == []
    others = [policy for policy in compared.policies if policy != key]
    assert claims_of(replace(compared, policies=others)) == []


def test_early_rounds_that_were_not_measured_cannot_be_judged():
    ones, accuracy = np.ones(3), np.full((3, 100), np.nan)
    accuracy[:, 49::50] = 0.5
    late = LearningCurve([0, 1, 2], accuracy, np.tile(np.arange(1.0, 101.0), (3, 1)))
    metrics = RunMetrics(*(ones,) * 8)
    unknown, none = Contrast(*(np.nan,) * 4, 3), Contrast(0.0, 0.0, 0.0, 1.0, 5)
    gains = {10.0: unknown, 20.0: unknown, 40.0: unknown, 100.0: none}
    at = {x: Estimate(0.5, 0.5, 0.5, gain) for x, gain in gains.items()}
    claims = judge(Pair((late, late), (metrics, metrics)), Row(AgeBased().key, {}, 3, at, {}))
    assert claims[1].verdict == "cannot be judged"
    assert claims[0].evidence == "0.0 points at round 100 (p = 1.000)"


def test_one_p_value_for_one_difference(tmp_path, capsys):
    """Terminal, page and claims take it from the same table, and say which tests it is one of."""
    result = agewise.compare(
        tiny(**{"run.rounds": 25, "threshold.rate": 5.0}), ["age-based", "max-pack", "random"], 5,
        tmp_path / "five", engine="inline", quiet=True,
    )  # fmt: skip
    table = result.table()
    pair = result.only(
        Plan.of(result.scenario, ["age-based", "max-pack"], 5, baseline="max-pack")
    ).table()
    assert pair.rows[0].gains[25] == table.rows[0].gains[25], "whatever ran beside them"
    assert pair.rows[0].gains[10] != table.rows[0].gains[10]
    said = [p_text(table.rows[0].gains[at].p) for at in (10, 20, 25)]
    alone = [
        statistics.contrast(*(result.accuracy(p)[:, x] for p in ("age-based", "max-pack")))
        for x in (9, 24)
    ]
    assert p_text(alone[0].p) != said[0], "the correction can be seen"
    assert p_text(alone[1].p) == said[2], "the primary comparison stands by itself"
    evidence = claims_of(result)[0].evidence
    assert re.findall(r"\((p [^)]*)\)", evidence) == said
    page = make_page(result)
    numbers = page[page.index('id="numbers"') :]
    aged = re.search(r">age-based</th>(.*?)</tr>", numbers).group(1)
    assert re.findall(r"p [=&][^<]*", aged) == [escape(text) for text in said]
    printing.print_result(result, printing.ShowOptions(), as_json=False)
    shown = capsys.readouterr().out
    answer = verdict(result, table).answer
    assert answer in shown
    assert contrast_text(alone[1]).partition(" (")[0] in answer
    assert f"95% interval {limits_text(alone[1])}, {p_text(alone[1].p)}; 5 seeds" in answer
    first = shown[shown.index("Test accuracy over") :].split("\n max-pack  ")[0]
    assert re.findall(r"p [=<] [\d.]+", first) == said
    family = table.family
    assert "Primary comparison, age-based after 25 rounds: one paired t test" in family
    assert "all 5 (policies and rounds) together by Bonferroni" in family
    assert family in " ".join(shown.split())
    assert escape(family) in page
    assert escape(CLAIMS_NOTE) in page


def test_reports_are_made_from_records_alone():
    """Nothing here asks the radio, the data or the access point again."""
    banned = {"agewise.radio", "agewise.data", "agewise.scheduling"}
    for file in Path(agewise.report.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported = {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
            elif isinstance(node, ast.Import):
                imported = {name.name for name in node.names}
            else:
                continue
            rooms = {".".join(str(module).split(".")[:2]) for module in imported}
            assert not rooms & banned, f"{file.name} imports {rooms & banned}"
