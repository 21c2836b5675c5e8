"""A process that measures when it is told to: it says what it found as lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

_PAUSE: Final = 0.03


class EndedError(Exception):
    """A process ended before it said anything; ``last``: the last line of its errors."""

    def __init__(self, contender: str, last: str) -> None:
        super().__init__(f"{contender} ended: {last}")
        self.contender = contender
        self.last = last


class TurnProcess:
    """``python -m module arguments``, which says something first, and then once for every line that it is sent."""

    def __init__(self, contender: str, module: str, arguments: Sequence[str]) -> None:
        self._contender: Final = contender
        self._process: Final = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read(self) -> dict[str, Any]:
        """What it says next; EndedError where it ended."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        if not found:
            _, errors = self._process.communicate()
            raise EndedError(self._contender, (errors.strip().splitlines() or [""])[-1][:200])
        said: dict[str, Any] = json.loads(found)
        return said

    def turn(self) -> dict[str, Any]:
        """What it says of one turn, which begins when threads of the others sleep."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.read()

    def end(self) -> None:
        """Ends the process."""
        if self._process.poll() is None:
            self._process.communicate()
