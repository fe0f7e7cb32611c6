"""Tables in forked processes: safe where Polars had not started, a sentence where it had."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.experiment.watch import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORK = """
import os, signal, sys, tempfile
from pathlib import Path
from agewise import simulate
from agewise.records import History
from tests.scenarios import tiny
from tests.samples import read_table

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # instead of waiting for ever
        try:
            print(work(), flush=True)
        except RuntimeError as error:
            print(error, flush=True)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "it hung"

def run():
    return simulate(tiny(**{"run.rounds": 2}), "max-pack", 0)

run()  # compiles the kernels, and starts no threads of Polars
folder = Path(tempfile.mkdtemp())
table = folder / "table.csv"
table.write_text("x,label\\n1,0\\n2,1\\n1,0\\n2,1\\n")
"""


def said(script):
    done = subprocess.run(
        [sys.executable, "-c", FORK.replace("\\\\", "\\") + textwrap.dedent(script)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_child_may_use_tables_if_the_parent_has_not():
    script = """
    in_child(lambda: run().to_bytes()[:4])
    in_child(lambda: len(read_table(table, "label", 0.5).train))
    """
    assert said(script) == ["b'PAR1'", "2"]


def test_one_sentence_instead_of_a_hang_if_the_parent_has():
    script = """
    history = run()
    history.save(folder / "run.parquet")
    in_child(lambda: history.to_bytes())
    in_child(lambda: History.load(folder / "run.parquet"))
    in_child(lambda: read_table(table, "label", 0.5))
    in_child(lambda: in_child(lambda: run().to_bytes()))
    in_child(lambda: run().accuracy.tolist() == history.accuracy.tolist())
    """
    *refused, last = said(script)
    assert last == "True"
    sentence = "tables cannot be used in a process that was forked after its parent had used them"
    assert [line.partition(":")[0] for line in refused if line != "None"] == [sentence] * 4
