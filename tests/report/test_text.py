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
from agewise.experiment import LearningCurve, RunMetrics
from agewise.policies import AgeBased, MaxPack, make_policy
from agewise.records import PolicyKey
from agewise.report._claims import CLAIMS_NOTE, Pair, claims_of, judge
from agewise.report.page import make_page
from agewise.statistics import Contrast, Estimate
from agewise.tables import Row
from agewise.tables._words import (
    and_list,
    p_text,
    points_text,
    short_names,
    stars,
    variation_text,
)
from tests.scenarios import tiny


def names(*policies):
    return list(short_names([make_policy(policy).key for policy in policies]).values())


def test_policies_have_their_names_and_what_tells_likes_apart():
    assert names("age-based", "max-pack", "max-pack:packing=exact:work_limit=9") == [
        "age-based", "max-pack (packing=greedy)", "max-pack (packing=exact:work_limit=9)"
    ]  # fmt: skip
    assert names("max-pack", "max-pack:ties=lowest-index", "age-based") == [
        "max-pack (ties=random)", "max-pack (ties=lowest-index)", "age-based"
    ]  # fmt: skip
    assert names("age-based:alpha=0", "age-based:alpha=1,ties=lowest-index") == [
        "age-based (alpha=0, ties=random)", "age-based (alpha=1, ties=lowest-index)"
    ]  # fmt: skip


def test_different_policies_have_different_names():
    near = [PolicyKey("p", {"a": 0.1}), PolicyKey("p", {"a": 0.1 + 1e-9}), PolicyKey("p", {})]
    assert len(set(short_names(near).values())) == 3


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
    assert [points_text(x) for x in (-0.0004, -0.0006, 0.1)] == ["+0.0", "-0.1", "+10.0"]
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
    unknown, none = Contrast(*(np.nan,) * 4, pairs=3), Contrast(0.0, 0.0, 0.0, 1.0, 3)
    gains = {10.0: unknown, 20.0: unknown, 40.0: unknown, 100.0: none}
    at = {x: Estimate(0.5, 0.5, 0.5, gain) for x, gain in gains.items()}
    claims = judge(Pair((late, late), (metrics, metrics)), Row(AgeBased().key, {}, 3, at, {}))
    assert claims[1].verdict == "cannot be judged"
    assert claims[0].evidence == "+0.0 points at round 100 (p = 1.000)"


def test_one_p_value_for_one_difference(tmp_path, capsys):
    """Terminal, page and claims take it from the same table, and say which tests it is one of."""
    result = agewise.compare(
        tiny(**{"run.rounds": 25, "threshold.rate": 5.0}), ["age-based", "max-pack", "random"], 5,
        tmp_path / "five", engine="inline", quiet=True,
    )  # fmt: skip
    table = result.table()
    said = [p_text(table.rows[0].gains[at].p) for at in (10, 20, 25)]
    alone = statistics.contrast(
        *(result.accuracy(policy)[:, 24] for policy in ("age-based", "max-pack"))
    )
    assert p_text(alone.p) not in said, "the correction can be seen"
    evidence = claims_of(result)[0].evidence
    assert re.findall(r"\((p [^)]*)\)", evidence) == said
    page = make_page(result)
    numbers = page[page.index('id="numbers"') :]
    aged = re.search(r">age-based</th>(.*?)</tr>", numbers).group(1)
    assert re.findall(r"p [=&][^<]*", aged) == [escape(text) for text in said]
    printing.print_result(result, printing.ShowOptions(), as_json=False)
    shown = capsys.readouterr().out
    first = shown[shown.index("Test accuracy over") :].split("\n max-pack  ")[0]
    assert re.findall(r"p [=<] [\d.]+", first) == said
    family = table.family
    assert "all 6 of them (policies and rounds)" in family
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


def test_the_third_claim_is_judged_on_the_same_models_where_they_were_compared(compared):
    row = {"measure": "diversity", "difference": -0.2, "difference_p": 0.001}
    row |= {"difference_low": -0.3, "difference_high": -0.1}
    row |= {"age_based": 0.85, "max_pack": 1.1}
    explained = {"seeds": 20, "rows": [row]}
    claim = judge(pair_of(compared, (0, 1, 2)), compared.table().rows[0], explained)[2]
    assert claim.verdict == "does not hold"
    assert (
        "on the same models the diversity of what is heard is 0.85 against 1.10" in claim.evidence
    )
