"""What all tests need: interrupts that arrive, and modules only where their packages are.

A shell starts background jobs with interrupts ignored, which every process below them inherits;
tests that interrupt a program of their own would wait for nothing.
"""

import signal
from importlib.util import find_spec

_NEEDED = {"flwr": "src/agewise/flower", "torch": "src/agewise/learn/neural"}
collect_ignore = [folder for package, folder in _NEEDED.items() if not find_spec(package)]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
