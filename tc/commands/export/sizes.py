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
    pairs = zip(open_sizes(kernel), layout.first.factors, strict=True)
    terms = [size.name if factor == 1 else f"{factor} * {size.name}" for size, factor in pairs if factor]
    constant = [str(layout.first.constant)] if layout.first.constant or not terms else []
    said = " + ".join((*terms, *constant)).replace("+ -", "- ")
    if layout.first.divisor > 1:
        said = f"({said}) / {layout.first.divisor}"
    return (said, *map(str, layout.shape[1:]))
