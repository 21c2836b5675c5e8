"""A graph made again: for other shapes of its inputs, or for one comprehension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.base.errors import GraphError
from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Constants
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.ir.sizes import Dimension, Shape, Size, open_size, shape_at, shape_text
from tc.graph.ir.source import Declared, Request
from tc.graph.ir.values import Value
from tc.graph.ir.views import Expand, Permute, Reinterpret, Reshape, Slice, Viewing
from tc.language.program.program import Literal, Program, SizeReference


def graph_of(program: Program) -> Graph:
    """The graph of one call, whose sizes are those of the program.

    GraphError where it takes scalars, which graphs do not have.
    """
    if program.scalars:
        raise GraphError(
            f"`{program.name}` takes the scalar `{program.scalars[0].name}`; declare a tensor without dimensions"
        )
    builder = Builder(program.name)
    operands = []
    for name in program.arguments:
        tensor = program.tensor(name)
        extents: list[Dimension] = []
        for extent in tensor.shape:
            if isinstance(extent, SizeReference):
                extents.append(open_size(extent.name))
            else:
                assert isinstance(extent, Literal)
                extents.append(int(extent.value))
        operands.append(builder.input(name, tensor.type, tuple(extents)))
    names = [name if name not in program.arguments else f"{name}_out" for name in program.results]
    return builder.finish(builder.call(program, *operands, names=names))


class GraphSource:
    """A graph as a source: its open sizes are those of the call."""

    def __init__(self, graph: Graph) -> None:
        self._graph: Final = graph
        values = (graph.values[name] for name in graph.inputs)
        self.name: Final = graph.name
        self.inputs: Final = tuple(Declared(value.name, value.type, value.shape) for value in values)
        self.outputs: Final = graph.outputs

    def elaborate(self, request: Request) -> Graph:
        """The graph for the shapes of the inputs; any of its values may be asked for."""
        graph = self._graph
        for name in request.outputs:
            if name not in graph.values:
                raise GraphError(f"`{graph.name}` has no value `{name}`")
        wanted = graph.needed(request.outputs)
        sizes = _sizes(graph, request.shapes)
        return wanted if not sizes else _replayed(wanted, sizes)


def _sizes(graph: Graph, shapes: Mapping[str, Shape]) -> dict[str, Dimension]:
    """What the open sizes are, by name; GraphError where the shapes do not fit."""
    found: dict[str, Dimension] = {}
    for name in graph.inputs:
        declared, given = graph.values[name].shape, shapes[name]
        fits = len(declared) == len(given)
        for wanted, extent in zip(declared, given, strict=False):
            if isinstance(wanted, Size) and wanted != extent and len(wanted.names) == 1:
                (own,) = wanted.names
                fits = fits and found.setdefault(own, extent) == extent
            else:
                fits = fits and wanted == extent
        if not fits:
            raise GraphError(f"input `{name}` is declared ({shape_text(declared)}), got ({shape_text(given)})")
    return found


def _replayed(graph: Graph, sizes: Mapping[str, Dimension]) -> Graph:
    builder = Builder(graph.name)
    values: dict[str, Value] = {}
    for name in graph.inputs:
        value = graph.values[name]
        values[name] = builder.input(name, value.type, shape_at(value.shape, sizes))
    for name, contents in Constants.of(graph.constants).contents().items():
        values[name] = builder.constant_later(contents, graph.values[name].type, graph.values[name].shape, name)
    for node in graph.nodes:
        builder.origin = node.origin
        operands = [values[name] for name in node.operands]
        match node:
            case Call():
                made = builder.call(node.program, *operands, names=node.results, operator=node.operator)
            case View():
                made = (builder.view(operands[0], _at(node.how, sizes)),)
            case Host():
                shapes = [(graph.values[n].type, shape_at(graph.values[n].shape, sizes)) for n in node.results]
                made = builder.host(node.operator, node.function, operands, shapes)
            case Join():
                raise AssertionError("plans, in which joins are, have no open sizes")
        values |= zip(node.results, made, strict=True)
    return builder.finish([values[name] for name in graph.outputs])


def _at(how: Viewing, sizes: Mapping[str, Dimension]) -> Viewing:
    match how:
        case Reshape(shape):
            return Reshape(shape_at(shape, sizes))
        case Expand(shape):
            return Expand(shape_at(shape, sizes))
        case Slice(starts, steps, shape):
            return Slice(shape_at(starts, sizes), steps, shape_at(shape, sizes))
        case Permute() | Reinterpret():
            return how
