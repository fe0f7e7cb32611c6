"""The package as a whole: what importing it costs, and that the examples run."""

import subprocess
import sys
from pathlib import Path

import pytest

import agewise
from agewise.simulation import simulate
from tests.scenarios import tiny

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize("statement", ["import agewise", "import agewise.cli"])
def test_importing_is_light(statement):
    """What is heavy comes with the first public name that needs it."""
    heavy = {"matplotlib", "numba", "numpy", "polars", "pydantic", "scipy"}
    assert not {*heavy, "torch"} & set(loaded_after(statement))
    assert heavy - {"matplotlib"} <= set(loaded_after(f"{statement}; agewise.compare"))


def test_linear_models_learn_without_torch(tmp_path, monkeypatch):
    """Whoever has PyTorch does not wait for it: here, importing it would fail."""
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    simulate(tiny(**{"run.rounds": 1}), "age-based", 0)
    assert "torch" not in sys.modules
    model = {"kind": "torch", "name": "mlp", "loss": "cross-entropy", "optimiser": "SGD"}
    with pytest.raises(RuntimeError, match="torch was imported"):
        simulate(tiny(**{"learn.model": model}), "age-based", 0)


def test_a_torch_model_without_torch_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    model = {"kind": "torch", "name": "mlp", "loss": "cross-entropy", "optimiser": "SGD"}
    with pytest.raises(ModuleNotFoundError, match=r"need torch: pip install 'agewise\[torch\]'"):
        simulate(tiny(**{"learn.model": model}), "age-based", 0)


def test_public_names_are_there():
    for name in agewise.__all__:
        assert getattr(agewise, name) is not None
    assert set(agewise.__all__) == set(dir(agewise))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agewise.nothing


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(script):
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_no_address_of_a_registry_in_the_set_up():
    for name in ("constraints.txt", "pyproject.toml", "Makefile"):
        assert "://" not in (ROOT / name).read_text()
