"""When a compiled kernel may be used again: as long as no file of its room changes."""

import shutil
import subprocess
import sys
from pathlib import Path

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


def run(folder):
    command = [sys.executable, "-c", CALL]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def test_a_kernel_is_compiled_anew_when_another_file_of_the_room_changes(tmp_path):
    """Numba alone would go on with the old helper, which is compiled into the kernel."""
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").touch()
    shutil.copy(Path(agewise.core.jit.__file__), room / "jit.py")
    (room / "kernels.py").write_text(KERNEL)
    (room / "helper.py").write_text(HELPER.format(step=2))
    assert run(tmp_path) == [42, 0]
    assert run(tmp_path) == [42, 1]
    (room / "helper.py").write_text(HELPER.format(step=3))
    assert run(tmp_path) == [43, 0]
    assert run(tmp_path) == [43, 1]
