"""Outputs that are views: what they look at is computed, and the views are made of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import View
from tc.graph.run.arrays import view_of

if TYPE_CHECKING:
    import numpy as np

    from tc.graph.ir.values import Value


@frozen
class Bases:
    """``graph``: computes what outputs look at, each of them once.  ``views``: of each output, the first one first.

    ``numbers``: of each output, which of the computed values it looks at.  ``values``: also those of views, by name.
    """

    graph: Graph
    values: Mapping[str, Value]
    views: tuple[tuple[View, ...], ...]
    numbers: tuple[int, ...]

    def outputs(self, computed: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs, which share memory where they look at the same value."""
        return [self._viewed(computed[number], views) for number, views in zip(self.numbers, self.views, strict=True)]

    def _viewed(self, array: np.ndarray, views: Sequence[View]) -> np.ndarray:
        for view in views:
            array = view_of(array, view, self.values[view.operand], self.values[view.result])
        return array


def bases_of(graph: Graph) -> Bases:
    """The graph without the views that its outputs are."""
    makers = graph.producers()
    bases: dict[str, int] = {}
    views, numbers = [], []
    for output in graph.outputs:
        own: list[View] = []
        base = output
        while isinstance(node := makers.get(base), View):
            own.append(node)
            base = node.operand
        views.append(tuple(reversed(own)))
        numbers.append(bases.setdefault(base, len(bases)))
    return Bases(graph.needed(bases), graph.values, tuple(views), tuple(numbers))
