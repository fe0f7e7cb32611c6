"""The package as a whole: what importing it costs, what it declares, that the examples run."""

import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import agewise
from agewise.simulation import simulate
from tests.contents import ABOUT, NEEDED, problems_of_sdist, problems_of_wheel, source_files
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
    with pytest.raises(ModuleNotFoundError, match=r"needs torch: pip install 'agewise\[torch\]'"):
        simulate(tiny(**{"learn.model": model}), "age-based", 0)


def test_public_names_are_there():
    for name in agewise.__all__:
        assert getattr(agewise, name) is not None
    assert set(agewise.__all__) == set(dir(agewise))
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = agewise.nothing


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(script):
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


def declared():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_pythons_that_are_declared_are_tested():
    (tested,) = re.findall(r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    names = [text.rpartition(" :: ") for text in declared()["classifiers"]]
    versions = [last for first, _, last in names if first == "Programming Language :: Python"]
    assert versions == tested.split()
    assert declared()["requires-python"] == f">={versions[0]}"


def test_the_oldest_flower_that_is_asked_for_is_the_first_that_is_tried():
    """The page names them all."""
    (tried,) = re.findall(r"^FLOWERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    first, *_ = versions = tried.split()
    example = tomllib.loads((ROOT / "examples/flower/pyproject.toml").read_text())["project"]
    for asked in (*declared()["optional-dependencies"]["flower"], example["dependencies"][-1]):
        assert f"{asked}.0" == f"flwr>={first}"
    page = (ROOT / "docs/flower.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"`make test-flowers` tries Flower (.*?\d)\. ", page)
    assert named.replace(" and ", ", ").split(", ") == versions


def test_extras_are_the_ones_that_are_named():
    """In the table of the page on installing, and wherever a module asks for a package of one."""
    extras = set(declared()["optional-dependencies"])
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    heads = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(heads))) == extras
    texts = [file.read_text() for file in (ROOT / "src").rglob("*.py")]
    asked = {each for text in texts for each in re.findall(r'require\("[\w.]+", "(\w+)"\)', text)}
    assert {"ray", "torch", "flower", "hdf5"} <= asked <= extras


def test_every_dependency_has_a_pin():
    """Those of the package itself, of the tests, and what builds and checks a wheel."""
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    extras = declared()["optional-dependencies"]
    needed = [*declared()["dependencies"], *(one for name in ("dev", "hdf5", "pandas", "ray",
              "tensorboard") for one in extras[name])]  # fmt: skip
    names = {re.split(r"[<>=\[]", one)[0].lower() for one in needed} - {"agewise"}
    assert names | {"build", "twine", "hatchling"} <= pins.keys()


def test_data_files_are_where_they_are_read():
    for name in NEEDED:
        assert files("agewise").joinpath(*name.split("/")[1:]).is_file(), name
    assert sum(name.startswith("agewise/scenario/presets/") for name in source_files()) > 10


def test_what_is_amiss_in_a_wheel_is_found():
    """The check of `make dist`, on lists of files."""
    about = {f"agewise-1.dist-info/{name}" for name in ABOUT}
    whole = source_files() | about
    assert problems_of_wheel(whole) == []
    assert problems_of_wheel(whole - {"agewise/py.typed"}) == ["missing: agewise/py.typed"]
    assert problems_of_wheel(whole | {"tests/reference.py"}) == ["unwanted: tests/reference.py"]
    found = problems_of_sdist({"agewise-1/Makefile", "agewise-1/src/agewise/x.nbi"})
    assert "missing: constraints.txt" in found
    assert found[-1] == "unwanted: src/agewise/x.nbi"


def test_no_address_of_a_registry_in_the_set_up():
    for name in ("constraints.txt", "pyproject.toml", "Makefile"):
        assert "://" not in (ROOT / name).read_text()
