"""The command ``agewise``, also as ``python -m agewise``."""

import sys
from importlib import import_module


def main() -> None:
    """Run the command line; Ctrl-C ends it with a sentence even while its modules are imported."""
    try:
        command = import_module("agewise.cli")
    except KeyboardInterrupt:
        said = "interrupted: nothing was finished; the same command starts anew"
        sys.stderr.write(f"agewise: {said}\n")
        sys.exit(130)
    command.main()


if __name__ == "__main__":
    main()
