"""``StatusLine``: how far a search is, in the last line of a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

from tc.tuner.session.say import ERASE, say

_DESCRIPTOR: Final = 2


class StatusLine:
    """A line on the standard error that is written anew again and again, below all others; terminals alone show it."""

    def __init__(self) -> None:
        self._shown = False

    def say(self, line: str) -> None:
        """Prints a line that stays."""
        self.clear()
        say(line)

    def show(self, text: str) -> None:
        """Puts a text into the line, as much of it as there is room for."""
        if sys.stderr is None or not sys.stderr.isatty():
            return
        with suppress(OSError, ValueError):
            # A character in the last column would move some terminals to the next line.
            room = max(1, os.get_terminal_size(_DESCRIPTOR).columns - 1)
            sys.stderr.write(f"{ERASE}{text[:room]}")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown and sys.stderr is not None:
            self._shown = False
            with suppress(OSError, ValueError):
                sys.stderr.write(ERASE)
                sys.stderr.flush()
