"""The sources that every exported folder has, beside those that are generated."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

_CALLS: Final = ("call.h", "call_plain.c", "call_threads.c")
_RUNTIME: Final = ("pool.h", "pool.c", "workspace.h")
# The names that these and the table of the kernels give to the linker.  All of them include pool.h.
_LINKED: Final = ("tc_call", "tc_copy", "tc_find", "tc_kernel_count", "tc_kernels", "tc_run", "tc_run_program")


def support_files(owner: str | None = None, *, threads: bool = True) -> Iterator[tuple[str, str]]:
    """The name and the text of each.

    ``owner``: what stands before the names that others see, so that several folders fit into one program.
    ``threads``: with what runs kernels on the processor, on one thread or on many.
    """
    names = (*_CALLS, *_RUNTIME) if threads else (_CALLS[0], _RUNTIME[0])
    for name in names:
        room = "tc.export" if name in _CALLS else "tc.runtime"
        text = files(room).joinpath(name).read_text(encoding="utf-8")
        yield name, f"{_renaming(owner)}\n{text}" if owner is not None and name == "pool.h" else text


def _renaming(owner: str) -> str:
    lines = (f"#define {name} {owner}_{name}\n" for name in _LINKED)
    return "".join(("// Names of this folder alone, so that several of them fit into one program.\n", *lines))
