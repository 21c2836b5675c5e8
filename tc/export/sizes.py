"""Sizes that stay open, which callers of an exported kernel pass behind its own scalars."""

from __future__ import annotations

from tc.export.exported import Exported
from tc.language.program.specialization import Layout, SymbolicSize


def open_sizes(kernel: Exported) -> tuple[SymbolicSize, ...]:
    """The sizes, in the order in which they are passed."""
    return kernel.executable.convention.signature.symbolic


def extents_said(kernel: Exported, layout: Layout) -> tuple[str, ...]:
    """The extents of an operand, with sizes by their names: ``A.0 + 2``."""
    names = tuple(size.name for size in open_sizes(kernel))
    return tuple(str(extent) if isinstance(extent, int) else extent.said(names) for extent in layout.bounds)


def places_said(size: SymbolicSize) -> str:
    """Where a size is, in words: ``dimension 1 of A and dimension 0 of B``."""
    return " and ".join(f"dimension {dimension} of {argument}" for argument, dimension in size.places)
