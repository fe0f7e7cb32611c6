"""The example app, with its own configuration, in this process."""

import json
import sys
import tomllib
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

from agewise.experiment import Result
from tests_extra.flower.federations import InProcessGrid, id_of

FOLDER = Path(__file__).parents[2] / "examples" / "flower"
sys.path.insert(0, str(FOLDER))
from agewise_example import client_app, server_app  # noqa: E402

PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())


def run(folder, **changes):
    """Run the app on six clients; the notes of its rounds."""
    config = PROJECT["tool"]["flwr"]["app"]["config"] | {"folder": str(folder)}
    config |= {name.replace("_", "-"): value for name, value in changes.items()}
    grid = InProcessGrid(client_app.app, lambda _: range(6), config=config)
    server_app.main(grid, Context(1, 1, {}, RecordDict(), config))
    return [json.loads(line) for line in (folder / "notes.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("selection", ["age-based", "max-pack", "flower"])
def test_rounds_are_noted_and_the_model_learns(selection, tmp_path):
    notes = run(tmp_path, selection=selection, num_server_rounds=6)
    assert [note["round"] for note in notes] == list(range(7))
    assert [len(note["arrived"]) for note in notes] == [0] + [3] * 6
    assert notes[-1]["accuracy"] > notes[0]["accuracy"] + 0.15


def test_the_end_is_the_target(tmp_path):
    """The round that reaches it is the last one, and it is in the results."""
    notes = run(tmp_path, target_accuracy=0.5, num_server_rounds=40, update_bytes=200_000)
    assert notes[-1]["accuracy"] >= 0.5 > notes[-2]["accuracy"]
    (history,) = [Result.open(tmp_path).history("age-based")]
    assert len(history.ages) == notes[-1]["round"]
    assert history.accuracy[-1] == notes[-1]["accuracy"]


def test_known_clients_have_the_rows_of_their_numbers(tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("\n".join(map(id_of, range(6))))
    links = {"links": "airtime", "shares": 3, "shadow": "random, max-pack"}
    notes = run(tmp_path / "live", client_ids=str(ids), num_server_rounds=4, **links)
    result = Result.open(tmp_path / "live")
    assert [key.name for key in result.policies] == ["age-based", "random", "max-pack"]
    received = [rows.tolist() for rows in result.history("age-based").received]
    assert received == [note["arrived"] for note in notes[1:]]


def test_pytorch_client(tmp_path):
    """All six clients, twice: the loss on the test samples falls both times."""
    pytest.importorskip("torch")
    notes = run(tmp_path, model="torch", num_server_rounds=2, places=6)
    losses = [note["loss"] for note in notes]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.03


def test_modelled_links_leave_a_choice(tmp_path):
    """What fits depends on the gains of the round: some clients, and not all."""
    notes = run(tmp_path, links="modelled", num_server_rounds=6)
    counts = [len(note["arrived"]) for note in notes[1:]]
    assert len(counts) == 6
    assert all(1 <= count < 6 for count in counts)
    assert {k for note in notes for k in note["arrived"]} == set(range(6))


def test_a_wrong_word_is_named(tmp_path):
    with pytest.raises(ValueError, match="links must be slots, airtime or modelled, not 'slot'"):
        run(tmp_path, links="slot")
    with pytest.raises(ValueError, match="model must be linear or torch, not 'tree'"):
        run(tmp_path, model="tree")
