"""Outputs that are views: what they look at is computed, and the views are made of that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import View
from tc.graph.run.arrays import numbers
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence


@frozen
class Look:
    """An output as a part of what is computed: of the array with a ``number``, from the byte ``offset`` on.

    ``whole``: it is that array.
    """

    number: int
    type: ScalarType
    shape: tuple[int, ...]
    offset: int
    whole: bool

    def of(self, computed: Sequence[np.ndarray]) -> np.ndarray:
        """The output, which shares memory with others that look at the same array."""
        base = computed[self.number]
        if self.whole:
            return base
        dtype = numpy_dtype(self.type)
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        end = self.offset + math.prod(self.shape) * dtype.itemsize
        return base.reshape(-1).view(np.uint8)[self.offset : end].view(dtype).reshape(self.shape)


@frozen
class Bases:
    """``graph``: computes what outputs look at, each of them once.  ``looks``: of each output."""

    graph: Graph
    looks: tuple[Look, ...]


def bases_of(graph: Graph) -> Bases:
    """The graph without the views that its outputs are, whose elements lie one after the other."""
    makers, values = graph.producers(), graph.values
    bases: dict[str, int] = {}
    looks = []
    for output in graph.outputs:
        assert values[output].is_contiguous
        base, offset = output, 0
        while isinstance(node := makers.get(base), View):
            (start,) = numbers((node.offset,), node.result)
            offset += start * values[node.operand].type.itemsize
            base = node.operand
        value, shape = values[output], numbers(values[output].shape, output)
        number = bases.setdefault(base, len(bases))
        whole = (offset, value.type, shape) == (0, values[base].type, values[base].shape)
        looks.append(Look(number, value.type, shape, offset, whole))
    return Bases(graph.needed(bases), tuple(looks))
