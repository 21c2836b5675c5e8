"""Lines on the standard output and error, which may be closed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

ERASE: Final = "\r\x1b[K"
"""What takes away the line in which a terminal's cursor is."""


def say(line: str) -> None:
    """Prints a line on the standard error; where that is closed, the line is lost and the process goes on."""
    # A process whose standard error was closed when it began has none, and print would take the standard output.
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


def say_in_handler(line: str) -> None:
    """The same in a signal handler, which must not use streams that the interrupted code may be using."""
    with suppress(OSError):
        os.write(2, f"{ERASE if os.isatty(2) else ''}{line}\n".encode())


def tell(line: str) -> None:
    """Prints a line on the standard output, which is discarded from now on if its reader has closed it."""
    if sys.stdout is None:
        return
    try:
        print(line, flush=True)
    except OSError:
        # What is still buffered would make the process fail when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
