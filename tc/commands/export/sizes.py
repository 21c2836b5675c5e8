"""Sizes that stay open, which callers of an exported kernel pass behind its own scalars."""

from __future__ import annotations

from tc.commands.export.selection import Exported
from tc.language.program.specialization import Layout, SymbolicSize


def open_sizes(kernel: Exported) -> tuple[SymbolicSize, ...]:
    """The sizes, in the order in which they are passed."""
    return kernel.executable.convention.signature.symbolic


def extents_said(kernel: Exported, layout: Layout) -> tuple[str, ...]:
    """The extents of an operand, with sizes by their names: ``A.0 + 2``."""
    if layout.first is None:
        return tuple(map(str, layout.shape))
    said = layout.first.said(tuple(size.name for size in open_sizes(kernel)))
    return (said, *map(str, layout.shape[1:]))
