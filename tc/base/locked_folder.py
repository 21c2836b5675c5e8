"""Folders that are locked as long as their process needs them, so that others can tell those of killed ones."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path


def lock_folder(folder: Path) -> int | None:
    """A descriptor that holds the lock of a folder as long as it is open; None if the folder is removed meanwhile.

    The system takes the lock from a process that is killed, also where processes do not see each other (containers
    that share a folder).
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        return descriptor  # a file system without locks, where nothing is taken for abandoned
    if os.fstat(descriptor).st_nlink == 0 or not folder.exists():
        os.close(descriptor)
        return None
    return descriptor


def clear_if_abandoned(folder: Path) -> None:
    """Removes a folder of this user whose lock is free; does nothing where that is impossible."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
