"""The folder of an export of a cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tc.base.errors import OptionsError
from tc.cache.content.contents import Contents
from tc.cache.format.database_errors import damaged, told
from tc.commands.contents.listing import Filter
from tc.commands.export.readme import readme
from tc.commands.export.selection import Selection, select
from tc.export.folder import is_free, write_folder
from tc.export.header import header
from tc.export.launch_table import launch_table
from tc.export.makefile import makefile
from tc.export.sources import source_file
from tc.export.support import support_files


def export_folder(contents: Contents, folder: Path, wanted: Filter) -> Selection:
    """Writes the kernels that are wanted, and all that a C program needs to call them, into a new folder.

    CacheError where the cache is damaged, has no such kernel, or the folder cannot be written; OptionsError for a
    folder that holds something.  Then nothing is written.
    """
    with told(str(folder)):
        if not is_free(folder):
            raise OptionsError(f"{folder} is there already, and not an empty folder; name a new one")
    try:
        selection = select(contents, wanted)
        texts = tuple(_texts(selection))
    except (ValueError, OverflowError, LookupError) as error:
        raise damaged(contents.place, "an exported kernel", f"it holds what tc did not make ({error})") from error
    with told(str(folder)):
        write_folder(folder, texts)
    return selection


def _texts(selection: Selection) -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    kernels = selection.exported
    yield from ((kernel.file, source_file(kernel)) for kernel in kernels)
    yield "kernels.h", header(kernels)
    yield "kernels.c", launch_table(kernels)
    yield "Makefile", makefile(kernels)
    yield "README.txt", readme(kernels)
    yield from support_files()
