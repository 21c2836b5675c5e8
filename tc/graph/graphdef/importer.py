"""GraphDefs as sources of graphs: the nodes that the wanted values depend on, each by the rule of its operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.errors import GraphError, TextError
from tc.base.once import Once
from tc.base.types import ScalarType
from tc.graph.graphdef.fold import folded
from tc.graph.graphdef.nodes import Input, NodeDef, Nodes
from tc.graph.graphdef.operation import MOST_FOLDED, Operation, shape_attribute
from tc.graph.graphdef.operators import OPERATORS
from tc.graph.graphdef.operators.shapes import written
from tc.graph.graphdef.operators.state import NOTHING, VARIABLES
from tc.graph.graphdef.order import Needed, needed
from tc.graph.graphdef.tensors import TYPES, Tensor, type_of
from tc.graph.graphdef.variables import Assignments
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import open_size
from tc.graph.ir.source import Declared, Demand, Request
from tc.graph.ir.values import Value
from tc.graph.protobuf.schema import Unread

PLACEHOLDERS: Final = frozenset(("Placeholder", "PlaceholderV2", "PlaceholderWithDefault"))
# Graphs of older versions have an empty shape where they do not know it.
_SHAPES_OF_PLACEHOLDERS: Final = 24


class GraphDefSource:
    """A GraphDef.  Placeholders and variables are inputs; a call gives those that what it asks for depends on."""

    def __init__(self, graph: Unread, name: str = "graph") -> None:
        self.name: Final = name
        self.nodes: Final = Nodes(graph)
        self._assignments: Final = Assignments(self.nodes)
        # All nodes are looked at for these, which a call that names its outputs need not wait for.
        self._inputs: Final[Once[None, tuple[Declared, ...]]] = Once()
        self._outputs: Final[Once[None, tuple[str, ...]]] = Once()

    @property
    def inputs(self) -> tuple[Declared, ...]:
        """Placeholders, and then variables."""
        return self._inputs.get(None, self._find_inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The nodes whose results no other node uses."""
        return self._outputs.get(None, self._find_outputs)

    def arrays(self) -> dict[str, np.ndarray]:
        """The tensors of nodes by their names, where all elements are there."""
        constants = (self.nodes[name] for name in self.nodes if self.nodes.operator(name) == "Const")
        held = ((node.name, node.attributes.get("value")) for node in constants)
        tensors = {name: attribute.value for name, attribute in held if attribute is not None}
        return {name: one.array() for name, one in tensors.items() if isinstance(one, Tensor) and one.is_whole}

    def _find_inputs(self) -> tuple[Declared, ...]:
        kinds = (PLACEHOLDERS, VARIABLES)
        found = [name for kind in kinds for name in self.nodes if self.nodes.operator(name) in kind]
        return tuple(declared for name in found if (declared := self._declared(self.nodes[name])) is not None)

    def _find_outputs(self) -> tuple[str, ...]:
        used = {operand.node for name in self.nodes for operand in self.nodes.inputs(name)}
        others = PLACEHOLDERS | VARIABLES | NOTHING
        return tuple(name for name in self.nodes if name not in used and self.nodes.operator(name) not in others)

    def elaborate(self, request: Request) -> Graph:
        """The graph for the shapes of the inputs that are given."""
        wanted = [Input.parse(name) for name in request.outputs]
        order = needed(self.nodes, self._assignments, wanted, frozenset(request.shapes))
        building = _Building(self, request)
        for part in order:
            building.node(part)
        return building.finish([building.value(operand, "") for operand in wanted])

    def _declared(self, node: NodeDef) -> Declared | None:
        """A placeholder or a variable as an input; None for one of a type that no input has."""
        type = node.attributes.get("dtype")
        number = type.value if type is not None and type.kind == "type" else None
        if not isinstance(number, int) or number not in TYPES:
            return None
        shape = shape_attribute(node)
        if node.operator == "Placeholder" and shape == () and self.nodes.producer < _SHAPES_OF_PLACEHOLDERS:
            shape = None
        extents = None
        if shape is not None:
            extents = tuple(
                open_size(f"{node.name}.{axis}") if size is None else size for axis, size in enumerate(shape)
            )
        return Declared(node.name, type_of(number, node.place), extents, optional=True)


class _Building:
    """One elaboration: the values of the nodes so far, and what is known of their contents."""

    def __init__(self, source: GraphDefSource, request: Request) -> None:
        self.request = request
        self.builder = Builder(source.name)
        self._values: dict[str, tuple[Value | None, ...]] = {}
        self._contents: dict[str, np.ndarray] = {}
        self._open: dict[str, Value] = {}  # values whose contents are open sizes, or what computes them
        for declared in source.inputs:
            if declared.name in request.shapes:
                value = self.builder.input(declared.name, declared.type, request.shapes[declared.name])
                self._values[declared.name] = (value,)

    def value(self, operand: Input, user: str) -> Value:
        """The result of a node; GraphError if it has not so many."""
        results = self._values[operand.node]
        found = results[operand.index] if operand.index < len(results) else None
        if found is None:
            count = f"{len(results)} result" + ("" if len(results) == 1 else "s")
            raise GraphError(f"{user}`{operand.node}` has {count}, and none is called `{operand.node}:{operand.index}`")
        return found

    def contents(self, value: Value) -> np.ndarray:
        """What a value holds; demands it where that is not known."""
        for known in (self._contents.get(value.name), self.builder.array_of(value)):
            if known is not None:
                return known
        found = self.request.contents.get(value.name)
        if found is None:
            raise Demand(self.finish([value]))
        return found

    def node(self, part: Needed) -> None:
        """The results of a node."""
        node = part.node
        self.builder.origin = node.place
        operands = [self.value(operand, f"{node.place}: ") for operand in part.operands]

        def known(array: np.ndarray, type: ScalarType) -> Value:
            return self._known(node.name, array, type)

        def operation(operands: Sequence[Value]) -> Operation:
            return Operation(self.builder, node, operands, part.wanted, self.contents, known)

        before = self.builder.made
        try:
            contents = [self._known_contents(operand) for operand in operands]
            results: Sequence[Value | None] | None = folded(operation(operands), contents)
            if results is None:
                operands = [self._computed(operand) for operand in operands]
                results = OPERATORS[node.operator].rule(operation(operands))
        except (GraphError, TextError) as error:  # of a text for types that the operator does not take
            raise error if str(error).startswith(node.place) else GraphError(f"{node.place}: {error}") from None
        if self.builder.made > before:  # the names of the model, where the node made them
            names = [node.name, *(f"{node.name}:{index}" for index in range(1, len(results)))]
            pairs = zip(results, names, strict=True)
            results = [None if value is None else self.builder.rename(value, name) for value, name in pairs]
        self._values[node.name] = tuple(results)

    def finish(self, values: Sequence[Value]) -> Graph:
        """The graph of what these values need."""
        return self.builder.finish([self._computed(value) for value in values])

    def _computed(self, value: Value) -> Value:
        """The value, by a kernel if it holds sizes that are open."""
        if value.name not in self._open:
            return value
        if self._open[value.name] is value:
            array = self._contents[value.name]
            made = written(self.builder, array, value.type)
            self._open[value.name], self._contents[made.name] = made, array
        return self._open[value.name]

    def _known(self, name: str, array: np.ndarray, type: ScalarType) -> Value:
        if array.dtype == object:
            value = self.builder.unrealized(name, type, array.shape)
            self._open[value.name] = value
        else:
            value = self.builder.constant(array, name)
        self._contents[value.name] = array
        return value

    def _known_contents(self, value: Value) -> np.ndarray | None:
        found = self._contents.get(value.name)
        found = self.builder.array_of(value) if found is None else found
        return found if found is not None and found.size <= MOST_FOLDED else None
