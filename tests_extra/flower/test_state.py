"""States that were edited, cut or made elsewhere are refused in one sentence."""

import json
import logging
from types import SimpleNamespace

import numpy as np
import pytest

from agewise.flower import FederationError, Slots
from agewise.flower.state import _CHECKSUM, _TEXT, _checksum
from tests.scenarios import tiny
from tests_extra.flower.federations import Problem


@pytest.fixture(scope="module")
def problem():
    return Problem(tiny())


@pytest.fixture(scope="module")
def saved(problem, tmp_path_factory):
    """The entries of a state after three rounds."""
    folder = tmp_path_factory.mktemp("live")
    problem.start(start_of(problem, folder), 3)
    with np.load(folder / "state.npz") as archive:
        return folder, dict(archive)


def start_of(problem, folder):
    return problem.scheduled("markov", Slots(3), folder=folder, shadow=["random"])


def test_what_a_round_measured_is_put_into_json_once(problem, tmp_path, monkeypatch):
    """Else a state takes ever longer to write."""
    made = []
    dumps = lambda value: made.append(value) or json.dumps(value)  # noqa: E731
    monkeypatch.setattr("agewise.flower.state.json", SimpleNamespace(dumps=dumps))
    result = problem.start(start_of(problem, tmp_path), 4)
    assert [x["agewise-chosen"] for x in made if "agewise-chosen" in x] == [
        result.train_metrics_clientapp[t]["agewise-chosen"] for t in range(1, 5)
    ]


def is_refused(problem, folder, entries, caplog, seal):
    """Write these entries over the state, and start."""
    arrays = {name: np.asarray(x) for name, x in entries.items() if name != _CHECKSUM}
    seal = _checksum(arrays) if seal else entries.get(_CHECKSUM, np.zeros(32, np.uint8))
    np.savez(folder / "state.npz", **arrays, **{_CHECKSUM: seal})
    caplog.clear()
    with caplog.at_level(logging.ERROR), pytest.raises(FederationError, match="state.npz: ") as got:
        problem.start(start_of(problem, folder), 4)
    assert "\n" not in str(got.value)
    assert sum(record.levelno == logging.ERROR for record in caplog.records) == 1


def edits(array):
    """An array as it must not be."""
    if array.dtype.kind not in "SV":
        yield array + np.array(1, array.dtype)
    yield np.append(array, array.reshape(-1)[:1]) if array.size else np.zeros(1)
    yield array.astype("U8") if array.dtype.kind != "V" else np.zeros(3)


def test_every_edit_of_every_entry_is_noticed(problem, saved, caplog):
    folder, entries = saved
    count = 0
    for name, array in entries.items():
        others = {key: x for key, x in entries.items() if key != name}
        is_refused(problem, folder, others, caplog, seal=False)
        for edited in edits(array):
            is_refused(problem, folder, others | {name: edited}, caplog, seal=False)
            count += 1
    assert count > 82


@pytest.mark.parametrize("kind", ["missing", "text", "longer"])
def test_what_does_not_fit_is_refused_whoever_sealed_it(kind, problem, saved, caplog):
    folder, entries = saved
    for name in set(entries) - {_CHECKSUM, _TEXT}:
        array = entries[name]
        edited = {
            "missing": {},
            "text": {
                name: array.astype("U8") if array.dtype.kind != "S" else np.arange(array.size)
            },
            "longer": {name: np.append(array, array.reshape(-1)[:1])},
        }[kind]
        others = {key: x for key, x in entries.items() if key != name}
        is_refused(problem, folder, others | edited, caplog, seal=True)


@pytest.mark.parametrize(
    "edit",
    [
        {"model/model": "nan"},
        {"federation/policy0.t": np.array(-1)},
        {"federation/policy0.t": np.array(2)},
        {"federation/policy0.ages": "negative"},
        {_TEXT: np.frombuffer(b"{}", np.uint8)},
        {_TEXT: np.frombuffer(b"[1, 2", np.uint8)},
    ],
    ids=str,
)
def test_values_that_no_run_leaves_are_refused(edit, problem, saved, caplog):
    folder, entries = saved
    ((name, value),) = edit.items()
    if isinstance(value, str):
        value = entries[name] * np.nan if value == "nan" else -1 - entries[name].astype(int)
    is_refused(problem, folder, entries | {name: value}, caplog, seal=True)


def test_rounds_have_no_matrix_of_links(saved):
    """Links that are alike on all subchannels are kept as one number for each client."""
    folder, _ = saved
    with np.load(folder / "rounds" / "000002.npz") as arrays:
        assert arrays["gains"].shape == (12, 1)
        assert max(x.size for x in arrays.values()) == 12
    with np.load(folder / "trace.npz") as trace:
        assert trace["gains"].shape == (3, 12, 3)


def test_clients_that_are_not_those_of_the_state_are_refused(problem, saved, caplog):
    folder, entries = saved
    with np.load(folder / "clients.npz") as archive:
        ids = archive["ids"]
    for edited in (ids[:5], ids[::-1], np.append(b"x", ids), np.arange(12), None):
        if edited is None:
            (folder / "clients.npz").unlink()
        else:
            np.savez(folder / "clients.npz", ids=edited)
        is_refused(problem, folder, entries, caplog, seal=True)
    np.savez(folder / "clients.npz", ids=np.append(ids, b"joined later, before the power failed"))
    np.savez(folder / "state.npz", **entries)
    again = start_of(problem, folder)
    problem.start(again, 4)
    assert len(again.client_ids) == 12
