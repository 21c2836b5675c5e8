"""``Operation``: one node of a model as its rule sees it: operands, attributes, and the graph to add to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.language.program.program import Program

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto

    from tc.graph.ir.nodes import HostFunction

# What computes a node: its results in order.
Rule: TypeAlias = "Callable[[Operation], Sequence[Value]]"


@frozen
class Surroundings:
    """What a node may ask of the model around it: contents of values, the nodes of a graph inside, the host."""

    contents: Callable[[Value], np.ndarray]
    inline: Callable[[GraphProto, Sequence[Value]], Sequence[Value]]
    on_host: Callable[[HostFunction, Sequence[Value], int], Sequence[Value]]
    repeated: Callable[[GraphProto, Sequence[Value], int | None, Callable[[], Sequence[Value] | None]], Sequence[Value]]


class Operation:
    """One node: ``operands`` in order, None where one is left out."""

    def __init__(
        self,
        builder: Builder,
        kind: str,
        opset: int,
        operands: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        results: Sequence[str],
        within: Surroundings,
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.opset = opset
        self.operands = tuple(operands)
        self.attributes = attributes
        self.results = tuple(results)
        self._within = within

    # --- operands ----------------------------------------------------------------------------------------

    def operand(self, index: int) -> Value:
        """The operand at this place; GraphError if it is left out."""
        found = self.optional(index)
        if found is None:
            raise self.error(f"operand {index} is missing")
        return found

    def optional(self, index: int) -> Value | None:
        """The operand at this place; None if it is left out."""
        return self.operands[index] if index < len(self.operands) else None

    def contents(self, value: Value) -> np.ndarray:
        """What a value holds, which shapes depend on: integers, among which there may be open sizes, or floats."""
        return self._within.contents(value)

    def sizes(self, value: Value) -> tuple[Dimension, ...]:
        """The contents of a value as sizes."""
        found = self.contents(value).reshape(-1)
        return tuple(int(size) if isinstance(size, np.generic | int) else size for size in found)

    def integers(self, value: Value) -> tuple[int, ...]:
        """The contents of a value as numbers; GraphError where one is open."""
        from tc.graph.ir.sizes import number

        return tuple(number(size, f"`{value.name}`") for size in self.sizes(value))

    # --- attributes --------------------------------------------------------------------------------------

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute; GraphError if it is missing and has no default."""
        return int(self._attribute(name).i) if default is None or name in self.attributes else default

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute; GraphError if it is missing and has no default."""
        return float(self._attribute(name).f) if default is None or name in self.attributes else default

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute; GraphError if it is missing and has no default."""
        if default is not None and name not in self.attributes:
            return default
        return self._attribute(name).s.decode("utf-8", "replace")

    def list(self, name: str) -> tuple[int, ...] | None:
        """An attribute; None if it is missing."""
        return tuple(self.attributes[name].ints) if name in self.attributes else None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """An attribute; None if it is missing."""
        return tuple(self.attributes[name].floats) if name in self.attributes else None

    def texts(self, name: str) -> tuple[str, ...]:
        """An attribute; nothing if it is missing."""
        found = self.attributes[name].strings if name in self.attributes else ()
        return tuple(text.decode("utf-8", "replace") for text in found)

    def graph(self, name: str) -> GraphProto:
        """An attribute that is a graph."""
        return self._attribute(name).g

    def _attribute(self, name: str) -> AttributeProto:
        if name not in self.attributes:
            raise self.error(f"the attribute `{name}` is missing")
        return self.attributes[name]

    def axis(self, axis: int, rank: int) -> int:
        """An axis from 0 on; GraphError if there is none."""
        if not -rank <= axis < max(rank, 1):
            raise self.error(f"axis {axis} of a tensor with {rank} dimensions")
        return axis % rank if rank else 0

    def axes(self, index: int, rank: int, name: str = "axes") -> tuple[int, ...] | None:
        """Axes from 0 on, of an attribute or, in later versions, of an operand; None where neither is there."""
        value = self.optional(index)
        found = self.list(name) if value is None else self.integers(value)
        return None if found is None else tuple(self.axis(axis, rank) for axis in found)

    # --- results -----------------------------------------------------------------------------------------

    def call(self, what: str | Program, *operands: Value) -> tuple[Value, ...]:
        """The results of a comprehension; the last call of a rule that has as many as the node is named like them."""
        return self.builder.call(what, *operands)

    def one(self, what: str | Program, *operands: Value) -> Value:
        """The only result of a comprehension."""
        (found,) = self.call(what, *operands)
        return found

    def inline(self, graph: GraphProto, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of a graph inside the node, whose nodes are added to those around it."""
        return self._within.inline(graph, operands)

    def on_host(self, function: HostFunction, operands: Sequence[Value], results: int = 1) -> Sequence[Value]:
        """What a function of arrays makes of operands: results whose shapes depend on what the operands hold.

        It runs on the host, between a graph that computes the operands and one that takes the results.
        """
        return self._within.on_host(function, operands, results)

    def repeated(
        self,
        body: GraphProto,
        carried: Sequence[Value],
        count: int | None,
        unrolled: Callable[[], Sequence[Value] | None],
    ) -> Sequence[Value]:
        """The results of a loop that runs at least once: ``unrolled``, if no step decides what the next one is.

        Otherwise, and where that gives None, it runs as ``Repetition``.  ``count``: the most steps.
        """
        return self._within.repeated(body, carried, count, unrolled)

    def error(self, message: str) -> GraphError:
        """The error with the place of the node."""
        return GraphError(f"{self.builder.origin}: {message}")

    def type_of(self, number: int) -> ScalarType:
        """The type with a number of ONNX."""
        from tc.graph.onnx.tensors import type_of

        return type_of(number, self.builder.origin)
