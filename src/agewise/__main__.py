"""The command ``agewise``, also as ``python -m agewise``."""

import signal
import sys
import threading
from importlib import import_module
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C ends it with a sentence even while its modules are imported."""
    came = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.set()
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored
        signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = _interrupt_again
    try:
        import_module("agewise.cli").main()
    except BaseException as error:
        # An interrupt amid the import of a C module comes out as an ImportError.
        told = isinstance(error, SystemExit) and error.code in (0, 130)
        if told or not came.is_set():
            raise
        said = "interrupted: the same command goes on from what was finished"
        sys.stderr.write(f"agewise: {said}\n")
        sys.exit(130)


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat an interrupt that came amid a callback, where Python would print and forget it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        main_thread = threading.main_thread().ident or 0
        threading.Timer(0.05, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
