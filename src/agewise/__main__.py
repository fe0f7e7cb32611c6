"""The command ``agewise``, also as ``python -m agewise``."""

import sys
import threading
from _thread import interrupt_main
from importlib import import_module


def main() -> None:
    """Run the command line; Ctrl-C ends it with a sentence even while its modules are imported."""
    sys.unraisablehook = _interrupt_again
    try:
        command = import_module("agewise.cli")
    except KeyboardInterrupt:
        said = "interrupted: nothing was finished; the same command starts anew"
        sys.stderr.write(f"agewise: {said}\n")
        sys.exit(130)
    command.main()


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat an interrupt that came amid a callback, where Python would print and forget it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
