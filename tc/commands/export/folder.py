"""The folder of an export, written all at once."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

from tc.base.errors import OptionsError
from tc.base.file_draft import draft_of
from tc.base.private import OTHERS_WRITE, make_folder
from tc.cache.content.contents import Contents
from tc.cache.format.database_errors import damaged, told
from tc.commands.contents.listing import Filter
from tc.commands.export.building import makefile, readme
from tc.commands.export.header import header
from tc.commands.export.launch_table import launch_table
from tc.commands.export.selection import Selection, select
from tc.commands.export.sources import source_file

_OURS: Final = ("call.h", "call_plain.c", "call_threads.c")
_RUNTIME: Final = ("pool.h", "pool.c", "workspace.h")


def export_folder(contents: Contents, folder: Path, wanted: Filter) -> Selection:
    """Writes the kernels that are wanted, and all that a C program needs to call them, into a new folder.

    CacheError where the cache is damaged, has no such kernel, or the folder cannot be written; OptionsError for a
    folder that holds something.  Then nothing is written.
    """
    with told(str(folder)):
        if not _is_free(folder):
            raise OptionsError(f"{folder} is there already, and not an empty folder; name a new one")
    selection = select(contents, wanted)
    try:
        texts = dict(_texts(selection))
    except (ValueError, OverflowError, LookupError) as error:
        raise damaged(contents.place, "an exported kernel", f"it holds what tc did not make ({error})") from error
    path = folder.absolute()
    with told(str(folder)):
        make_folder(path.parent, 0o755)
        with draft_of(path) as draft:
            make_folder(draft, 0o755)
            for name, text in texts.items():
                file = draft / name
                file.write_text(text, encoding="utf-8")
                # Who may write it decides what the programs run that are made of it.
                file.chmod(stat.S_IMODE(file.stat().st_mode) & ~OTHERS_WRITE)
            draft.rename(path)
    return selection


def _is_free(folder: Path) -> bool:
    """Whether nothing is lost when a folder takes this name."""
    if folder.is_symlink() or not folder.exists():
        return not folder.is_symlink()
    return folder.is_dir() and not any(folder.iterdir())


def _texts(selection: Selection) -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    kernels = selection.exported
    yield from ((kernel.file, source_file(kernel)) for kernel in kernels)
    yield "kernels.h", header(kernels)
    yield "kernels.c", launch_table(kernels)
    yield "Makefile", makefile(kernels)
    yield "README.txt", readme(kernels)
    yield from ((name, files("tc.commands.export").joinpath(name).read_text(encoding="utf-8")) for name in _OURS)
    yield from ((name, files("tc.runtime").joinpath(name).read_text(encoding="utf-8")) for name in _RUNTIME)
