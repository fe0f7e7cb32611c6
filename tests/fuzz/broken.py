"""Targets that do all that must not happen, to see that it is noticed."""

import os
import pickle
import subprocess
import time

from tests.fuzz.mutate import Trap
from tests.fuzz.oracle import Case, Target


def target(name, attempt, names=("input",)):
    def make(self, _chance):
        return Case(lambda folder: attempt(self, folder), names, {"input": b"x"}, "the input")

    return type(name, (Target,), {"name": name, "make": make})


def _raise(error):
    def attempt(_self, _folder):
        raise error

    return attempt


def _unpickle(self, _folder):
    pickle.loads(pickle.dumps(Trap(self.trap)))  # noqa: S301


def _crawl(_self, _folder):
    with open(os.pipe()[0], "rb") as pipe:  # noqa: PTH123
        pipe.read()


TARGETS = (
    target("sound", lambda _self, _folder: None),
    target("clean", _raise(ValueError("input: not valid"))),
    target("traceback", _raise(KeyError("input"))),
    target("nameless", _raise(ValueError("not valid"))),
    target("lines", _raise(ValueError("input:\nnot valid"))),
    target("pickle", _unpickle),
    target("program", lambda _self, _folder: subprocess.run(["true"], check=True)),  # noqa: S607
    target("memory", lambda _self, _folder: bytes(2**40)),
    target("hang", _crawl),
    target("sleep", lambda _self, _folder: time.sleep(3600)),
    target("abort", lambda _self, _folder: os.abort()),
)
