"""Results of parts of the user's own: they resume, follow their code, and are read without it."""

import pytest

from agewise import Result, compare, sweep
from agewise.scenario import ScenarioError
from tests.scenarios import tiny

LOSS = """
import numpy as np
from agewise.radio import PathLoss

class Steep(PathLoss):
    slope_db: float = 35.0

    def loss_db(self, distance_m, line_of_sight):
        return self.slope_db * np.log10(np.maximum(distance_m, 1.0))
"""
SHORT = {"run.rounds": 2}


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOSS)
    return file


def compared(scenario, out, seeds=2, engine="inline"):
    return compare(scenario, ["age-based"], seeds, out, engine=engine, quiet=True)


def test_a_folder_goes_on_and_is_read_without_the_code(file, tmp_path):
    scenario = tiny(**SHORT, **{"channel.path_loss": f"{file}:Steep"})
    first = compared(scenario, tmp_path / "out")
    made = {each: each.stat().st_mtime_ns for each in (tmp_path / "out" / "runs").iterdir()}
    assert len(made) == 2
    more = compared(scenario, tmp_path / "out", seeds=3, engine="local")
    assert {each: each.stat().st_mtime_ns for each in made} == made
    file.write_text("raise SystemExit('this was run')")
    read = Result.open(tmp_path / "out")
    assert read.table().to_polars().equals(more.table().to_polars())
    assert first.history("age-based", 0).to_bytes() == read.history("age-based", 0).to_bytes()


def test_runs_are_computed_again_when_the_code_changes(file, tmp_path):
    scenario = tiny(**SHORT, **{"channel.path_loss": f"{file}:Steep"})
    before = compared(scenario, tmp_path / "out").history("age-based", 0)
    file.write_text(LOSS.replace("35.0", "20.0"))
    after = compared(scenario, tmp_path / "out").history("age-based", 0)
    assert not (before.owner == after.owner).all()


def test_a_sweep_over_a_part_of_the_users_and_one_of_ours(file, tmp_path):
    ours = {"kind": "power-law", "exponent": 3.0, "reference_distance_m": 1.0}
    vary = {"channel.path_loss": [f"{file}:Steep", ours]}
    swept = sweep(tiny(**SHORT), ["age-based"], vary, 1, tmp_path / "out", quiet=True)
    file.unlink()
    assert len(Result.open(tmp_path / "out").variations) == len(swept.variations) == 2


def test_a_field_that_the_class_does_not_have_is_told_with_those_it_has(file):
    scenario = tiny(**{"channel.path_loss": {"kind": f"{file}:Steep", "slope": 3.0}})
    with pytest.raises(ScenarioError, match=r"there is no 'slope': .*Steep takes slope_db"):
        scenario.loaded()
