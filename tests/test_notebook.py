"""What objects show in a notebook, and the notebook of first steps."""

import os
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import agewise
from tests.scenarios import tiny

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorials" / "first-steps.ipynb"
VOID = {"br", "rect", "circle", "polyline", "path"}


class Balanced(HTMLParser):
    """Reads HTML whose elements are all closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.seen = [], "", []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(value):
    """The text and the elements of what a notebook shows."""
    reader = Balanced()
    reader.feed(value._repr_html_())
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("nb") / "<b>r"
    return agewise.compare(tiny(), ["age-based", "max-pack"], 2, out, engine="inline", quiet=True)


def test_results_and_their_tables(compared):
    for value in (compared, compared.table(), compared.table().service(), compared.to_target(0.1)):
        said = shown(value)
        assert "max-pack" in said.text
        assert "table" in said.seen
    said = shown(compared)
    assert "<b>r" in said.text, "a name is no markup"
    assert said.seen.count("polyline") == 2
    assert f"{100 * compared.accuracy('max-pack')[:, -1].mean():.1f}" in said.text


def test_a_history_has_its_numbers_and_its_curve(compared):
    history = compared.history("age-based", 1)
    said = shown(history)
    assert f"{np.count_nonzero(history.participation)} of 12" in said.text
    assert f"{history.ages.mean():.1f} rounds" in said.text
    assert said.seen.count("polyline") == 1


def test_a_scenario_has_its_sections_and_its_phones(compared, tmp_path):
    said = shown(compared.scenario)
    assert said.seen.count("circle") == 12
    for section in compared.scenario.resolved():
        assert section in said.text
    missing = tiny(channel={"kind": "trace", "path": str(tmp_path / "none.npz")})
    assert "none.npz" in shown(missing).text, "without the picture"


def test_an_allocation_has_the_owner_of_each_subchannel():
    allocation = agewise.schedule(
        np.full((3, 4), 100.0), [5, 1, 2], power=1.0, rate_threshold=2.0, policy="age-based"
    )
    said = shown(allocation)
    assert said.seen.count("rect") == 4
    assert f"{allocation.scheduled.sum()} of 3" in said.text
    served = allocation.owner[allocation.owner >= 0]
    assert all(str(ue) in said.text for ue in served)


def test_the_notebook_of_first_steps_runs(tmp_path, monkeypatch):
    source = os.pathsep.join(filter(None, sys.path))
    monkeypatch.setenv("PYTHONPATH", source)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    kinds = [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert kinds.count("text/html") >= 5, "scenario, result, history, allocation and table"
    assert "image/png" in kinds, "the figure shows itself"
