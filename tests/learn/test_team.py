"""Threads that share the work of one learner, and threads of the program that use the same one."""

import os
import signal
import threading

import numpy as np
import pytest

from agewise import Streams
from agewise.data import divide, load
from agewise.learn import make_learner
from agewise.learn.team import set_threads
from tests.scenarios import tiny

STREAMS = Streams(3)
UES = np.arange(12)


def a_learner(seed=3):
    scenario = tiny()
    data = load(scenario.data)
    return make_learner(
        data, divide(data.train.labels, scenario.data, 12, Streams(seed)), scenario.learn
    )


def rounds_of(learner, count):
    """All models of some rounds, and what the last of them is worth."""
    model, models = learner.init(STREAMS), []
    for t in range(count):
        models.append(learner.train(model, np.roll(UES, t)[: 1 + t % 12], t, STREAMS))
        model = models[-1].mean(axis=0)
    return [*models, learner.losses(model, UES), np.array(learner.objective(model))]


@pytest.fixture
def alone():
    set_threads(1)
    expected = rounds_of(a_learner(), 30)
    set_threads(3)
    yield expected
    set_threads(2)


def agree(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_helpers_change_nothing(alone):
    agree(rounds_of(a_learner(), 30), alone)


def test_two_threads_of_the_program_may_use_one_learner(alone):
    learner, found = a_learner(), {}
    users = [
        threading.Thread(target=lambda i=i: found.update({i: rounds_of(learner, 30)}))
        for i in range(3)
    ]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(found) == 3
    for result in found.values():
        agree(result, alone)


def test_learners_in_turn(alone):
    """The helpers follow from one learner to the other and back."""
    first, second = a_learner(), a_learner(4)
    model = first.init(STREAMS)
    expected = first.train(model, UES, 0, STREAMS)
    other = second.train(model, UES, 0, STREAMS)
    assert not np.array_equal(expected, other)
    for _ in range(40):
        np.testing.assert_array_equal(first.train(model, UES, 0, STREAMS), expected)
        np.testing.assert_array_equal(second.train(model, UES, 0, STREAMS), other)
    agree(rounds_of(first, 30), alone)


def test_arrays_that_do_not_lie_in_one_piece(alone):  # noqa: ARG001 (three threads)
    learner = a_learner()
    model = learner.init(STREAMS)
    twice = np.repeat(model, 2)[::2]
    ues = np.repeat(UES, 2)[::2]
    assert not twice.flags.c_contiguous
    expected = learner.train(model, UES, 0, STREAMS)
    for _ in range(20):
        np.testing.assert_array_equal(learner.train(twice, ues, 0, STREAMS), expected)
        assert learner.evaluate(twice) == learner.evaluate(model)


def test_an_interrupt_leaves_the_learner_usable(alone, monkeypatch):
    learner = a_learner()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("agewise.learn.team._Helper.join_team", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.evaluate(learner.init(STREAMS))
    agree(rounds_of(learner, 30), alone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of fork and threads
def test_a_child_may_fork_off_while_another_thread_learns(alone):
    learner, over = a_learner(), threading.Event()
    model = learner.init(STREAMS)
    expected = learner.evaluate(model)

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
                os._exit(0 if learner.evaluate(model) == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        busy.join()
    agree(rounds_of(learner, 30), alone)
