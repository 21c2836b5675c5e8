"""Sizes in texts that are no extents of operands.

Where they are open, they become the extents of one more operand, which is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, Size
from tc.graph.ir.values import Value
from tc.graph.operators.texts import parameter


@frozen
class Extents:
    """Sizes as a text has them, and the operand that comes last, with its parameter, if one is needed."""

    texts: tuple[str, ...]
    parameters: tuple[str, ...]
    operands: tuple[Value, ...]


def extents_of(builder: Builder, sizes: Sequence[Dimension]) -> Extents:
    """The sizes, of which those that are open are called ``E0``, ``E1``."""
    texts = tuple(f"E{place}" if isinstance(size, Size) else str(size) for place, size in enumerate(sizes))
    shape = tuple(size for size in sizes if isinstance(size, Size))
    if not shape:
        return Extents(texts, (), ())
    names = [text for text, size in zip(texts, sizes, strict=True) if isinstance(size, Size)]
    operand = builder.expand(builder.constant(np.zeros((), np.bool_), "extents"), shape)
    return Extents(texts, (parameter(ScalarType.BOOL, names, "extents"),), (operand,))
