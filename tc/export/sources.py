"""The files of exported kernels: the source as it was generated, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping

from tc.export.c_text import comment, identifier
from tc.export.exported import Exported
from tc.runtime.loaded_kernel import ENTRY


def source_file(kernel: Exported) -> str:
    """The source, in which every name that others see is replaced by one of its own.

    Everything else in it is static, so that many of them fit into one program.  ValueError for names that are none.
    """
    executable = kernel.executable
    lines = (
        comment(f"Exported by Tensor Comprehensions: {kernel.origin}."),
        *(f"#define {identifier(given)} {own}" for given, own in renamed(kernel).items()),
    )
    return "\n".join((*lines, "", executable.source))


def renamed(kernel: Exported) -> Mapping[str, str]:
    """By the name that a function has in the generated source, the name that it is exported under."""
    if kernel.host is not None:
        return {ENTRY: kernel.name}
    if kernel.module:
        return {}
    return {grid.name: f"{kernel.name}_{number}" for number, grid in enumerate(kernel.executable.convention.grids)}
