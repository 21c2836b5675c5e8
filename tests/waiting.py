"""Waiting for what must happen: as long as a busy machine takes, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Seconds after which something will never happen.  No test needs them, however busy the machine is.
PATIENCE: Final = 900.0
_PAUSE: Final = 0.02


def wait_until(happened: Callable[[], bool], otherwise: Callable[[], object] = str) -> None:
    """AssertionError, with what ``otherwise`` says, if it never happens."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"nothing happened {otherwise()}".strip()
        time.sleep(_PAUSE)


def is_running(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
