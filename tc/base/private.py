"""Files and folders that only this user can read and write, whatever the umask."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
"""The bits of a mode with which others than the owner may write."""


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Makes a folder, and those above it that are missing, all of them with this mode.

    OSError as ``mkdir``, and NotADirectoryError where something else has the name.
    ``Path.mkdir`` gives the mode to the last one alone, and the others what the mask leaves.
    """
    try:
        folder.mkdir(mode)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_folder(folder.parent, mode)
        folder.mkdir(mode, exist_ok=True)
    except FileExistsError as error:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


def write_file(file: Path, text: str) -> None:
    """Writes a file of ours anew; OSError as ``open``, and for a symbolic link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8") as stream:
        # An earlier release may have made it.
        os.fchmod(stream.fileno(), 0o600)
        stream.write(text)


def reclaim(folder: str | os.PathLike[str]) -> None:
    """Takes from others the right to write into a folder of this user; does nothing where that is impossible."""
    try:
        status = os.lstat(folder)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & OTHERS_WRITE:
            os.chmod(folder, stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)
    except OSError:
        return
