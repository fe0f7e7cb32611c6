"""Threads that share the work of one learner, and threads of the program that use the same one."""

import os
import signal
import threading

import numpy as np
import pytest

from agewise import Streams
from agewise.learn import set_threads, threads
from tests.scenarios import tiny

STREAMS = Streams(3)
UES = np.arange(12)
KMEANS = {"kind": "k-means", "clusters": 10, "initial_deviation": 0.01}


@pytest.fixture(autouse=True)
def _chunks_of_any_size(monkeypatch):
    """Work is handed to threads however little it is."""
    before = threads._count
    monkeypatch.setattr(threads, "LEAST_ENTRIES", 1)
    yield
    set_threads(before)


def a_learner(seed=3, **changes):
    scenario = tiny(**changes)
    data = scenario.data.load()
    return scenario.learn.learner(
        data, scenario.data.divide(data, scenario.device_table(Streams(seed)), Streams(seed))
    )


def rounds_of(learner, count=10):
    """The bytes of all models of some rounds, and of what the last of them is worth."""
    model, found = learner.init(STREAMS), []
    for t in range(count):
        models = learner.train(model, np.roll(UES, t)[: 1 + t % 12], t, STREAMS)
        model = models.mean(axis=0)
        found.append(models.tobytes())
    evaluation = learner.evaluate(model)
    found += [learner.losses(model, UES).tobytes(), learner.objective(model)]
    return [*found, evaluation.accuracy, evaluation.loss, evaluation.class_accuracy.tobytes()]


def alone(learner):
    set_threads(1)
    return rounds_of(learner)


@pytest.mark.parametrize("changes", [{}, {"learn.batch_size": 7}, {"learn.model": KMEANS}])
def test_the_number_of_threads_changes_nothing(changes):
    learner = a_learner(**changes)
    expected = alone(learner)
    for count in (2, 5):
        set_threads(count)
        assert rounds_of(learner) == expected


def test_work_is_divided_only_where_it_pays(monkeypatch):
    monkeypatch.setattr(threads, "LEAST_ENTRIES", 100)
    set_threads(5)
    names, lock = [], threading.Lock()

    def work(chunk):
        with lock:
            names.append((chunk.start, chunk.stop, threading.current_thread().name))

    def divided(items, entries):
        names.clear()
        threads.in_chunks(work, items, entries)
        return [(start, stop) for start, stop, _ in sorted(names)]

    assert divided(12, 199.0) == [(0, 12)]
    assert names[0][2] == threading.current_thread().name
    assert divided(12, 399.0) == [(0, 4), (4, 8), (8, 12)]
    assert divided(2, 1e9) == [(0, 1), (1, 2)]
    assert divided(10, 1e9) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert divided(0, 1e9) == [(0, 0)]


def test_what_work_raises_is_raised_when_all_is_done():
    set_threads(3)
    done = []

    def work(chunk):
        done.append(chunk.start)
        if chunk.start > 0:
            raise ArithmeticError(f"from {chunk.start}")

    with pytest.raises(ArithmeticError, match="from 2"):
        threads.in_chunks(work, 6, 1e9)
    assert sorted(done) == [0, 2, 4]


def test_threads_of_the_program_may_use_one_learner():
    learner, found = a_learner(), {}
    expected = alone(learner)
    set_threads(3)
    users = [
        threading.Thread(target=lambda i=i: found.update({i: rounds_of(learner)})) for i in range(3)
    ]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == dict.fromkeys(range(3), expected)


def test_arrays_that_do_not_lie_in_one_piece():
    learner = a_learner()
    set_threads(3)
    model = learner.init(STREAMS)
    twice = np.repeat(model, 2)[::2]
    ues = np.repeat(UES, 2)[::2]
    assert not twice.flags.c_contiguous
    expected = learner.train(model, UES, 0, STREAMS)
    np.testing.assert_array_equal(learner.train(twice, ues, 0, STREAMS), expected)
    assert learner.evaluate(twice).loss == learner.evaluate(model).loss


def test_there_is_at_least_one_thread():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        set_threads(0)


@pytest.mark.parametrize(
    ("quotas", "cores"),
    [
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({}, 8),
    ],
)
def test_the_quota_of_a_container_bounds_the_cores(tmp_path, monkeypatch, quotas, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for name, content in quotas.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    assert threads.available_cores(tmp_path) == cores


def test_affinity_bounds_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert threads.available_cores(tmp_path) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of fork and threads
def test_a_child_may_fork_off_while_another_thread_learns():
    learner, over = a_learner(), threading.Event()
    expected = alone(learner)
    set_threads(3)
    model = learner.init(STREAMS)

    def learn():
        while not over.is_set():
            learner.train(model, UES, 0, STREAMS)

    busy = threading.Thread(target=learn)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if rounds_of(learner) == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        busy.join()
    assert rounds_of(learner) == expected
