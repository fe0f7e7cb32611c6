"""The document on the optimum says what policies lose and how old they let updates get."""

from agewise.studies import gap
from agewise.tables._words import estimate_text, percent_text
from benchmarks.documents.gap import gap_markdown
from tests.scenarios import tiny


def test_losses_stand_by_regime_and_ages_beside_the_bound(tmp_path):
    policies = ("age-based", "max-pack")
    vary = {"threshold.rate": (1.0, 2.0)}
    scenario = tiny(**{"run.rounds": 6})
    table = gap(scenario, policies, vary, 5, tmp_path / "gap", every=2, quiet=True).table
    text = gap_markdown(table)
    for first, second in (table.rows[:2], table.rows[2:]):
        losses = [estimate_text(row.loss_per_round) for row in (first, second)]
        rate = first.variation["threshold.rate"]
        cells = [cell.strip() for line in text.splitlines() for cell in [line] if losses[0] in line]
        assert any(f"{rate:g}" in line and losses[1] in line for line in cells)
    own = [row.above_bound.mean for row in table.rows if row.policy == table.policies[0]]
    assert f"age-based {percent_text(sum(own) / 2)}" in text
