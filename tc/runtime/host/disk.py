"""Temporary folders, and content-addressed files that can be made again."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tc.base.private import OTHERS_WRITE, make_folder, reclaim
from tc.runtime.host.scratch import scratch_folder

# How the names of files begin that are being written.
_NEW: Final = "new-"
_DIGEST_BYTES: Final = hashlib.sha256().digest_size


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder that goes when the block ends; NoRoomError when there is no place for one."""
    with scratch_folder(_prefix(os.getpid())) as folder:
        yield folder


def clear_folders(process: int) -> None:
    """Removes what ``temporary_folder`` made in a process of this machine that was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(process)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(process: int) -> str:
    return f"tc-{process}-"


def remembered(folder: Path | None, ingredients: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
    """What ``make`` returned for these ``ingredients``, in this process or an earlier one.

    Any number of processes may ask at once.  ``folder`` lies in the user's own cache folder, which others lose the
    right to write, if they had it.  A folder that is None, not writable, or under another user's control is not used,
    and a damaged file is made anew; then every process makes its own.
    """
    key = hashlib.sha256("\0".join(ingredients).encode()).hexdigest()
    if folder is None or not _private(folder):
        return make()
    file = folder / key
    _clear_abandoned(folder)
    found = _read(file)
    if found is None:
        found = make()
        _write(file, found)
    return found


def _private(folder: Path) -> bool:
    """Whether ``folder`` exists (made if need be), is ours, and no other user may write into it."""
    try:
        make_folder(folder)
        reclaim(folder.parent)
        status = folder.lstat()
    except OSError:
        return False
    ours = status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode)
    return ours and not status.st_mode & OTHERS_WRITE


def _clear_abandoned(folder: Path) -> None:
    """Removes what processes were writing when they were killed."""
    with suppress(OSError):
        for path in folder.glob(f"{_NEW}*"):
            with suppress(OSError), path.open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _read(file: Path) -> bytes | None:
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None


def _write(file: Path, body: bytes) -> None:
    """Puts the file in place at once or, on a full or read-only disk, not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=_NEW, delete=False) as new:
            temporary = Path(new.name)
            try:
                # The system takes the lock from a process that is killed.
                fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new.write(hashlib.sha256(body).digest() + body)
                new.close()
                temporary.replace(file)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError:
        return
