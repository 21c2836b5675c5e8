"""A folder of files, written all at once."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from tc.base.file_draft import draft_of
from tc.base.private import OTHERS_WRITE, make_folder

# The text of a file, or its bytes in pieces.
Content: TypeAlias = str | Iterable[bytes | memoryview]


def is_free(folder: Path) -> bool:
    """Whether nothing is lost when a folder takes this name."""
    if folder.is_symlink() or not folder.exists():
        return not folder.is_symlink()
    return folder.is_dir() and not any(folder.iterdir())


def write_folder(folder: Path, contents: Iterable[tuple[str, Content]]) -> None:
    """Makes a folder with these files, by name; one that has the name already is replaced.

    OSError where it cannot be written; then everything is as before.
    """
    path = folder.absolute()
    make_folder(path.parent, 0o755)
    with draft_of(path) as draft:
        make_folder(draft, 0o755)
        for name, content in contents:
            _write(draft / name, content)
        _put(draft, path)


def _write(file: Path, content: Content) -> None:
    if isinstance(content, str):
        file.write_text(content, encoding="utf-8")
    else:
        with file.open("wb") as stream:
            stream.writelines(content)
    # Who may write it decides what the programs run that are made of it.
    file.chmod(stat.S_IMODE(file.stat().st_mode) & ~OTHERS_WRITE)


def _put(draft: Path, path: Path) -> None:
    """The draft takes its place; what was there goes with the folder of the draft."""
    old = draft.with_name(f"{path.name}.old")
    with suppress(FileNotFoundError):
        path.rename(old)
    try:
        draft.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
