"""The oracle of graphs: every node by the reference of its comprehension, rounded to the type of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.run.arrays import laid, view_of
from tc.graph.run.comprehensions import comprehension_of
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

if TYPE_CHECKING:
    from tc.dispatch.arguments import Arguments


class Evaluation:
    """A graph that the oracle runs."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def run(self, bound: Arguments, _names: Sequence[str]) -> tuple[object, ...]:
        """The outputs in order, as NumPy's arrays."""
        found = evaluate(self._graph, {name: borrow(view) for name, view in bound.inputs.items()})
        return tuple(found[name] for name in self._graph.outputs)


def evaluate(graph: Graph, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name."""
    arrays = {**graph.constants, **inputs}
    for node in graph.nodes:
        match node:
            case Call():
                found = comprehension_of(node.program).reference(*(arrays[name] for name in node.operands))
                made = found if isinstance(found, tuple) else (found,)
                for name, array in zip(node.results, made, strict=True):
                    arrays[name] = laid(_rounded(array, graph.values[name].type), graph.values[name])
            case View():
                arrays[node.result] = view_of(
                    arrays[node.operand], node, graph.values[node.operand], graph.values[node.result]
                )
            case Host():
                for name, array in zip(node.results, node.function([arrays[n] for n in node.operands]), strict=True):
                    arrays[name] = laid(array, graph.values[name])
            case Join():
                whole = np.concatenate([arrays[name] for name in node.operands], node.axis)
                arrays[node.result] = laid(whole, graph.values[node.result])
    return {name: arrays[name] for name in graph.outputs}


def _rounded(array: np.ndarray, type: ScalarType) -> np.ndarray:
    with np.errstate(all="ignore"):  # what overflows is infinite, as in kernels
        return np.asarray(array).astype(numpy_dtype(type))
