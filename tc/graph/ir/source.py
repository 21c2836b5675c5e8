"""``Source``: what a graph is made of for the shapes of a call; and what it may ask for on the way.

Models have shapes that depend on what inputs hold, or on what nodes compute.  Where such contents are needed, a source
raises ``Demand``; it is asked again when they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import Shape

if TYPE_CHECKING:
    import numpy as np


@frozen
class Declared:
    """An input as the model declares it; ``shape`` is None where it says nothing of it.

    ``optional``: a call may leave it out, if what it asks for does not depend on it, or if it has a value without it.
    """

    name: str
    type: ScalarType
    shape: Shape | None
    optional: bool = False


@frozen
class Request:
    """What a graph is wanted for.

    ``shapes``: of the inputs.  ``contents``: of values that were demanded.  ``computed``: types and shapes of values
    that exist already, as inputs do.  ``outputs``: names of the values that are wanted.
    """

    shapes: Mapping[str, Shape]
    outputs: tuple[str, ...]
    contents: Mapping[str, np.ndarray] = field(default_factory=dict)
    computed: Mapping[str, tuple[ScalarType, Shape]] = field(default_factory=dict)


# The outputs of a source for arrays by the names of its inputs; graphs may depend on the contents of some inputs.
RunSource: TypeAlias = "Callable[[Source, Mapping[str, np.ndarray], frozenset[str]], Sequence[np.ndarray]]"
Computation: TypeAlias = "Callable[[Sequence[np.ndarray], RunSource], Mapping[str, np.ndarray]]"


class Demand(Exception):  # noqa: N818  # no error: the source goes on when it has what it asks for
    """``graph`` computes values whose contents decide what comes next.

    ``compute``: makes arrays of them, by name, which are then ``computed``; None where their contents are wanted
    themselves.  ``names``: what the source calls the outputs, where rewriting has given them other names.
    """

    def __init__(self, graph: Graph, compute: Computation | None = None, names: tuple[str, ...] | None = None) -> None:
        self.names = graph.outputs if names is None else names
        super().__init__(f"the contents of {', '.join(self.names)}")
        self.graph = graph
        self.compute = compute
        # The inputs that the outputs depend on.
        used = {*graph.outputs, *(name for node in graph.nodes for name in node.operands)}
        self.reads = used.intersection(graph.inputs)


class Source(Protocol):
    """Something that graphs are made of."""

    @property
    def name(self) -> str:
        """What the model is called."""

    @property
    def inputs(self) -> tuple[Declared, ...]:
        """The inputs in order."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The results in order."""

    def elaborate(self, request: Request) -> Graph:
        """The graph; raises Demand, or GraphError."""
