"""``Builder``: makes a graph node by node; shapes and types follow from the comprehensions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tc.base.errors import ArgumentError, GraphError, RangeError
from tc.base.types import ScalarType
from tc.graph.ir.constants import Constants, given, in_order, later
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.shapes import result_shapes
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.ir.views import Expand, Permute, Reinterpret, Reshape, Slice, Viewing, viewed
from tc.language.program.program import Program

if TYPE_CHECKING:
    from tc.graph.ir.constants import Contents
    from tc.graph.ir.nodes import HostFunction, Operator
    from tc.graph.ir.sizes import Dimension


@functools.lru_cache(maxsize=4096)
def program_of(text: str) -> Program:
    """The only definition of a text, or the last of several; the same one for the same text."""
    *_, last = programs_of(text).values()
    return last


def copy_program(type: ScalarType, rank: int) -> Program:
    """The program whose result has the elements of its argument."""
    letters = ", ".join(f"i{axis}" for axis in range(rank))
    sizes = ",".join(f"D{axis}" for axis in range(rank))
    return program_of(f"def copy({type}({sizes}) A) -> (B) {{ B({letters}) = A({letters}) }}")


def programs_of(text: str) -> Mapping[str, Program]:
    """The definitions of a text by name."""
    from tc.grammar.parser import parse
    from tc.language.lower.lower import lower_text

    return lower_text(parse(text), text)


class Builder:
    """Makes one graph.  Every method returns what the node computes.

    ``origin`` is where the nodes come from that are made next, as messages say it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.origin = ""
        self._values: dict[str, Value] = {}
        self._constants: dict[str, Contents] = {}
        self._inputs: list[str] = []
        self._nodes: list[Node] = []
        self._numbers: dict[str, int] = {}

    @staticmethod
    def continuing(graph: Graph) -> Builder:
        """A builder that adds to a graph; its nodes are not among those that were made."""
        made = Builder(graph.name)
        made._values, made._constants = dict(graph.values), Constants.of(graph.constants).contents()
        made._inputs = list(graph.inputs)
        return made

    def value(self, name: str) -> Value:
        """The value of a name."""
        return self._values[name]

    def values(self) -> dict[str, Value]:
        """All values by name."""
        return dict(self._values)

    def constants(self) -> Constants:
        """All constants by name."""
        return Constants(dict(self._constants))

    def change(self, value: Value) -> None:
        """Another value of the same name."""
        self._values[value.name] = value

    def nodes_from(self, place: int) -> Sequence[Node]:
        """The nodes that were made after so many."""
        return self._nodes[place:]

    def input(self, name: str, type: ScalarType, shape: Shape) -> Value:
        """Another input; GraphError for a name that is taken."""
        if name in self._values:
            raise GraphError(f"two values are called `{name}`")
        self._inputs.append(name)
        return self._add(Value(name, type, shape))

    def constant(self, array: np.ndarray, name: str = "constant") -> Value:
        """A constant; ``name`` is where its own begins."""
        held = in_order(array)
        value = self._add(Value(self.fresh(name), ScalarType(held.dtype.name), held.shape))
        self._constants[value.name] = given(held)
        return value

    def constant_later(self, make: Contents, type: ScalarType, shape: Shape, name: str = "constant") -> Value:
        """A constant whose contents, an array of this type and shape, are computed when they are looked at."""
        value = self._add(Value(self.fresh(name), type, shape))
        self._constants[value.name] = later(make)
        return value

    def unrealized(self, name: str, type: ScalarType, shape: Shape) -> Value:
        """A value that no node makes, since its contents are known and depend on open sizes."""
        return self._add(Value(self.fresh(name), type, shape))

    def apply(self, operator: Operator, *operands: Value) -> Value:
        """The only result of an operator."""
        (result,) = self.call(operator.text(operands), *operands, operator=operator)
        return result

    def call(
        self,
        what: str | Program,
        *operands: Value,
        names: Sequence[str] = (),
        operator: Operator | None = None,
    ) -> tuple[Value, ...]:
        """The results of a comprehension, or of the last definition of a text, for operands in order.

        ``names``: where those of the results begin.  ``operator``: what the text was made from.  GraphError where the
        operands do not fit.
        """
        program = program_of(what) if isinstance(what, str) else what
        try:
            shapes = result_shapes(program, operands)
        except (ArgumentError, RangeError) as error:
            raise self._error(str(error)) from None
        given = names or [f"{program.name}_{name}" for name in program.results]
        results = tuple(
            self._add(Value(self.fresh(start), program.tensor(name).type, shapes[name]))
            for name, start in zip(program.results, given, strict=True)
        )
        used = tuple(operand.name for operand in operands)
        made = tuple(value.name for value in results)
        self._nodes.append(Call(program, used, made, self.origin, operator))
        return results

    def host(
        self,
        operator: str,
        function: HostFunction,
        operands: Sequence[Value],
        results: Sequence[tuple[ScalarType, Shape]],
    ) -> tuple[Value, ...]:
        """What the host computes: results of these types and shapes."""
        made = tuple(self._add(Value(self.fresh(operator.lower()), type, shape)) for type, shape in results)
        used = tuple(operand.name for operand in operands)
        self._nodes.append(Host(operator, function, used, tuple(value.name for value in made), self.origin))
        return made

    def reshape(self, operand: Value, shape: Shape) -> Value:
        """The elements in another shape; they are copied first if they do not lie in order."""
        return operand if operand.shape == shape else self.view(operand, Reshape(shape))

    def permute(self, operand: Value, axes: Sequence[int]) -> Value:
        """The operand with its dimensions in another order."""
        wanted = tuple(axes)
        return operand if wanted == tuple(range(len(operand.shape))) else self.view(operand, Permute(wanted))

    def slice(
        self, operand: Value, starts: Sequence[Dimension], steps: Sequence[int], shape: Sequence[Dimension]
    ) -> Value:
        """Elements ``start + step * i`` of every dimension, so many of them as ``shape`` says."""
        how = Slice(tuple(starts), tuple(steps), tuple(shape))
        same = not any(start != 0 for start in starts) and set(steps) <= {1} and how.shape == operand.shape
        return operand if same else self.view(operand, how)

    def expand(self, operand: Value, shape: Shape) -> Value:
        """The operand with dimensions of one element repeated, and new ones before."""
        return operand if operand.shape == shape else self.view(operand, Expand(shape))

    def reinterpret(self, operand: Value, type: ScalarType) -> Value:
        """The bytes of the operand as another type of the same size."""
        return operand if operand.type is type else self.view(operand, Reinterpret(type))

    def contiguous(self, operand: Value) -> Value:
        """The operand, copied if its elements do not lie in order."""
        if operand.is_contiguous:
            return operand
        return self.call(copy_program(operand.type, len(operand.shape)), operand, names=[operand.name])[0]

    def view(self, operand: Value, how: Viewing) -> Value:
        """The operand, looked at in another way; copied first where its elements do not lie so."""
        found = viewed(operand, how, self.fresh(operand.name))
        if found is None:
            return self.view(self.contiguous(operand), how)
        value, offset = found
        self._nodes.append(View(operand.name, value.name, how, offset, self.origin))
        return self._add(value)

    def array_of(self, value: Value) -> np.ndarray | None:
        """The contents of a constant; None of others."""
        contents = self._constants.get(value.name)
        return None if contents is None else contents()

    def contents_of(self, value: Value) -> Contents | None:
        """What gives the contents of a constant; None of others."""
        return self._constants.get(value.name)

    def finish(self, outputs: Sequence[Value]) -> Graph:
        """The graph of what these values need."""
        graph = Graph(
            self.name,
            tuple(self._inputs),
            tuple(value.name for value in outputs),
            dict(self._values),
            tuple(self._nodes),
            self.constants(),
        )
        return self._realized(graph.needed())

    def _realized(self, graph: Graph) -> Graph:
        """The graph; GraphError where it needs a value that no node makes."""
        made = {*graph.inputs, *graph.constants, *(result for node in graph.nodes for result in node.results)}
        for name in (*graph.outputs, *(name for node in graph.nodes for name in node.operands)):
            if name not in made:
                raise GraphError(f"`{name}` holds sizes that are open; call the graph, or give its sizes")
        return graph

    @property
    def made(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def rename(self, value: Value, name: str, since: int = 0) -> Value:
        """The value under a name that begins so, if one of the nodes after so many has made it and none uses it."""
        own = [at for at in range(since, len(self._nodes)) if value.name in self._nodes[at].results]
        used = any(value.name in self._nodes[at].operands for at in range(since, len(self._nodes)))
        if value.name == name or not own or used:
            return value
        (at,) = own
        node, held = self._nodes[at], replace(value, name=self.fresh(name))
        if isinstance(node, View | Join):
            self._nodes[at] = replace(node, result=held.name)
        else:
            results = tuple(held.name if result == value.name else result for result in node.results)
            self._nodes[at] = replace(node, results=results)
        del self._values[value.name]
        return self._add(held)

    def fresh(self, start: str) -> str:
        """A name that no value has, which begins so."""
        name = start
        while name in self._values:
            self._numbers[start] = self._numbers.get(start, 1) + 1
            name = f"{start}_{self._numbers[start]}"
        return name

    def _add(self, value: Value) -> Value:
        self._values[value.name] = value
        return value

    def _error(self, message: str) -> GraphError:
        return GraphError(f"{self.origin}: {message}" if self.origin else message)
