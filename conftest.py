"""What all tests need: interrupts that arrive, and modules only where their packages are.

A shell starts background jobs with interrupts ignored, which every process below them inherits;
tests that interrupt a program of their own would wait for nothing.
"""

import signal
from importlib.util import find_spec

_FLOWER = ("grid", "replies", "round", "state", "strategy")
_NEEDED = {
    "flwr": [f"src/agewise/flower/{name}.py" for name in _FLOWER],
    "gymnasium": ["src/agewise/gym.py"],
    "torch": ["src/agewise/learn/neural"],
}
collect_ignore = [path for name, paths in _NEEDED.items() if not find_spec(name) for path in paths]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
