"""Drafts of files and folders that are put in place atomically, and removed with their process."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tc.base.locked_folder import clear_if_abandoned, lock_folder

_BYTES: Final = 8


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A place for what becomes ``path`` when it is renamed, in a private folder beside it, which goes with the block.

    The folder above ``path`` must be there.  Drafts of the same name whose processes were killed are removed.
    OSError where there is no room for it.
    """
    _clear_abandoned(path)
    while True:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(_BYTES)}")
        folder.mkdir(0o700)
        lock = lock_folder(folder)
        if lock is not None:
            break  # else another process removed it as abandoned before it was locked
    try:
        yield folder / path.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _clear_abandoned(path: Path) -> None:
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _BYTES}}}")
    # A folder that cannot be listed has nothing that can be removed.
    with suppress(OSError):
        for folder in path.parent.iterdir():
            if ours.fullmatch(folder.name) is not None:
                clear_if_abandoned(folder)
