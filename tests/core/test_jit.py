"""When a compiled kernel may be used again: as long as no file behind it changes."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agewise.core.jit

KERNEL = """
from room.helper import more
from room.jit import kernel


@kernel
def answer(x):
    return more(x)
"""
HELPER = """
from room.jit import njit


@njit
def more(x):
    return x + {step}
"""
CALL = (
    "from room.kernels import answer; print(answer(40));"
    "print(sum(answer.stats.cache_hits.values()))"
)


FULL_DISK = """
import errno, os
from numba.core import caching

def no_space(path, mode="r"):
    if mode == "wb":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    return open(path, mode)

caching.open = no_space
"""


def run(folder):
    done = call(folder)
    assert done.stderr == ""
    return [int(line) for line in done.stdout.split()]


def call(folder, before=""):
    command = [sys.executable, "-c", before + CALL]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)


@pytest.fixture
def answers(tmp_path, monkeypatch, caplog):
    """What a process that is just started finds: the answer, cache hits, and what is said."""
    monkeypatch.syspath_prepend(tmp_path)

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "room"]:
            del sys.modules[name]

    def imported_anew():
        forget()
        caplog.clear()
        answer = importlib.import_module("room.kernels").answer
        return answer(40), sum(answer.stats.cache_hits.values()), caplog.messages

    yield imported_anew
    forget()


def make_room(folder):
    room = folder / "room"
    room.mkdir()
    (room / "__init__.py").touch()
    shutil.copy(Path(agewise.core.jit.__file__), room / "jit.py")
    (room / "kernels.py").write_text(KERNEL)
    (room / "helper.py").write_text(HELPER.format(step=2))
    return room


def emptied(content):
    return content[:0]


def cut(content):
    return content[: len(content) // 2]


def garbled(content):
    middle = len(content) // 2
    return content[:middle] + bytes(255 - x for x in content[middle:])


@pytest.mark.parametrize(
    ("damage", "ending"), [(emptied, "nbi"), (garbled, "nbi"), (cut, "nbc"), (garbled, "nbc")]
)
def test_a_damaged_cache_costs_one_line_and_is_replaced(tmp_path, answers, damage, ending):
    room = make_room(tmp_path)
    assert answers() == (42, 0, [])
    (file,) = room.glob(f"__pycache__/*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    value, hits, (line,) = answers()
    assert (value, hits) == (42, 0)
    assert line.startswith("the cache of compiled kernels ")
    assert line.endswith(f"{file}: its checksum is wrong); they are compiled anew")
    assert answers() == (42, 1, [])


def test_a_full_disk_costs_one_line(tmp_path):
    room = make_room(tmp_path)
    done = call(tmp_path, FULL_DISK)
    assert done.stdout.split() == ["42", "0"]
    where = f"cannot be written in {room / '__pycache__'} (No space left on device)"
    assert done.stderr == f"the cache of compiled kernels {where}; they are compiled anew\n"
    assert run(tmp_path) == [42, 0]


def test_a_kernel_is_compiled_anew_when_a_file_behind_it_changes(tmp_path):
    """Numba alone would go on with the old helper, which is compiled into the kernel."""
    room = make_room(tmp_path)
    assert run(tmp_path) == [42, 0]
    assert run(tmp_path) == [42, 1]
    (room / "helper.py").write_text(HELPER.format(step=3))
    assert run(tmp_path) == [43, 0]
    assert run(tmp_path) == [43, 1]
    (room / "stranger.py").write_text("step = 4\n")
    assert run(tmp_path) == [43, 1]


def test_kernels_of_types_that_are_there_no_more_are_forgotten(tmp_path):
    room = make_room(tmp_path)
    with (room / "helper.py").open("a") as helper:
        helper.write("import typing\nclass Pair(typing.NamedTuple):\n    first: int\n")
    (room / "kernels.py").write_text(KERNEL.replace("more(x)", "more(x.first)"))
    call(tmp_path, "import room.helper, room.kernels as k; k.answer(room.helper.Pair(1)); exit()\n")
    (room / "helper.py").write_text(HELPER.format(step=2))
    (room / "kernels.py").write_text(KERNEL)
    assert run(tmp_path) == [42, 0]
    assert run(tmp_path) == [42, 1]


def test_modules_of_the_room_import_each_other_in_the_one_way_that_is_looked_for():
    for file in Path(agewise.core.jit.__file__).parent.glob("*.py"):
        for line in file.read_text().splitlines():
            if "agewise" in line and line.lstrip().startswith(("import ", "from ")):
                assert line.startswith("from agewise.core.")
