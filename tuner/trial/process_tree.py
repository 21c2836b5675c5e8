"""Kills a process with all its descendants, also orphaned ones."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a command to end; the processes that it has started ignore them."""

_PAUSE: Final = 0.002


def end_session(leader: int) -> None:
    """Kills every process of the session that ``leader`` began, itself among them.

    Compilers have process groups of their own, so that whoever runs one can stop it with its children; what they have
    in common with a process that is killed is its session.
    """
    while members := list(_living(leader)):
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        # A process that is being killed may still start children.
        time.sleep(_PAUSE)


def _living(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # The name, in parentheses, may hold anything.
                state, _, _, found, *_ = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if int(found) == session and state not in (b"Z", b"X"):
                    yield int(entry.name)
