"""The `packds` command of the wheel: `python -m packds` does the same."""

import signal
import sys

from ._packds import run


def main() -> int:
    """Runs the command with the process's arguments; returns its exit code."""
    # Python would handle Ctrl-C only after the command has ended. With the default action, Ctrl-C ends it immediately.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["packds", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
