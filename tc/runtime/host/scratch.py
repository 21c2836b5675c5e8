"""Temporary folders that are removed with their process: by itself, or, if it was killed, by the next one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tc.base.counted import bytes_text
from tc.base.errors import NoRoomError
from tc.base.locked_folder import clear_if_abandoned, lock_folder

# Folders of searches, of reproducers, and of processes by number.
_OURS: Final = re.compile(r"tc-(tune|reproducer|\d+)-.+")


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A private folder whose name begins so, and which goes when the block ends; NoRoomError if there is no place.

    It is locked as long as it is needed.  The system takes the lock from a process that is killed, and so tells
    ``clear_abandoned``, also where processes do not see each other (containers that share a folder).
    """
    while True:
        with _new_folder(prefix) as name:
            lock = lock_folder(Path(name))
            if lock is None:
                continue  # another process removed it as abandoned before it was locked
            try:
                yield Path(name)
            finally:
                os.close(lock)
            return


def _new_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    with told_of_room():
        return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


@contextmanager
def told_of_room(needed: int = 0) -> Iterator[None]:
    """NoRoomError for a temporary file that cannot be written.  ``needed``: bytes, as far as they are known."""
    free = _free()
    try:
        yield
    except OSError as error:
        # An array of NumPy that does not fit gives no number.
        if error.errno in (None, errno.ENOSPC, errno.EDQUOT):
            raise no_room(free, needed) from error
        raise NoRoomError(f"no place for temporary files: {error}; name a writable folder in TMPDIR") from error


def no_room(free: int | None = None, needed: int = 0) -> NoRoomError:
    """The error for a folder for temporary files that is full.

    ``free``: bytes that it had before anything was written.  ``needed``: bytes, as far as they are known.
    """
    folder = tempfile.gettempdir()
    usage = shutil.disk_usage(folder)
    wanted = f", and about {bytes_text(needed)} are needed" if needed else ""
    return NoRoomError(
        f"the folder for temporary files is full: {folder} has {bytes_text(usage.free if free is None else free)} left "
        f"of {bytes_text(usage.total)}{wanted}; free some space there, or name another folder in TMPDIR"
    )


def _free() -> int | None:
    """Bytes that are free in the folder for temporary files; None if there is none."""
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free
    except OSError:
        return None


def clear_abandoned() -> None:
    """Removes the folders of this user's processes that were killed."""
    # A folder that cannot be listed has nothing that can be removed.
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).iterdir():
            if _OURS.fullmatch(folder.name) is not None:
                clear_if_abandoned(folder)
