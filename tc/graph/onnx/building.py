"""``Building``: one elaboration of a model: its nodes in turn, each by the rule of its operator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape
from tc.graph.ir.source import Declared, Demand, Request
from tc.graph.ir.values import Value
from tc.graph.onnx.fold import folded
from tc.graph.onnx.functions import MAIN_DOMAINS, Body, body_of
from tc.graph.onnx.needed import captured_of, needed
from tc.graph.onnx.operation import Operation, Rule, Surroundings
from tc.graph.onnx.repetition import Repetition, Signature, counters_of, declared
from tc.graph.onnx.rules import RULES
from tc.graph.onnx.tensors import array_of

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, NodeProto

    from tc.graph.ir.graph import Graph
    from tc.graph.ir.nodes import HostFunction
    from tc.graph.onnx.tensors import Folder

# Contents with more elements are computed by kernels, whatever is known of them.
MOST_FOLDED: Final = 4096


@frozen
class Model:
    """What holds for all nodes of a model: versions of operators by domain, functions by domain and name.

    ``folder`` is where data lies that is kept beside it.
    """

    name: str
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], FunctionProto]
    folder: Folder | None


class Building:
    """The values that names of the model stand for, and what is known of their contents."""

    def __init__(self, model: Model, request: Request) -> None:
        self.model = model
        self.request = request
        self.opsets = model.opsets
        self.builder = Builder(model.name)
        self.values: dict[str, Value | None] = {}
        self._contents: dict[str, np.ndarray] = {}
        # Numbers of what the host has computed; the graphs inside of this one go on with them.
        self._hosted: Iterator[int] = itertools.count()

    def input(self, declared: Declared, shape: Shape) -> None:
        """An input of this shape; its contents are known if they were demanded."""
        value = self.builder.input(declared.name, declared.type, shape)
        self.values[declared.name] = value
        known = self.request.contents.get(value.name)
        if known is not None:
            self._contents[value.name] = known

    def constant(self, name: str, array: np.ndarray) -> Value:
        """A constant, whose contents are known."""
        value = self.builder.constant(array, name)
        self.values[name] = value
        if array.size <= MOST_FOLDED:
            self._contents[value.name] = array
        return value

    def value(self, name: str, user: str) -> Value:
        """What a name stands for; GraphError, which says who asks, where it is nothing."""
        found = self.values.get(name)
        if found is None:
            raise GraphError(f"{user}: no node, input or initializer is called `{name}`")
        return found

    def contents(self, value: Value) -> np.ndarray:
        """What a value holds; demands it where that is not known."""
        found = self._contents.get(value.name)
        if found is None:
            found = self.builder.array_of(value)
        if found is None:
            found = self.request.contents.get(value.name)
        if found is None:
            raise Demand(self.builder.finish([value]))
        return found

    def on_host(self, function: HostFunction, operands: Sequence[Value], results: int) -> Sequence[Value]:
        """What a function makes of operands between two graphs: inputs of the second; demands them first."""
        step = next(self._hosted)
        names = [f"host {step}.{place}" for place in range(results)]
        if names[0] in self.request.computed:
            return [self.builder.value(name) for name in names]
        raise Demand(self.builder.finish(operands), lambda arrays, _: dict(zip(names, function(arrays), strict=True)))

    def repeated(
        self,
        body: GraphProto,
        carried: Sequence[Value],
        count: int | None,
        unrolled: Callable[[], Sequence[Value] | None],
    ) -> Sequence[Value]:
        """The results of a loop; ``unrolled`` where nothing that a step computes is to be known for the next one."""
        own, loop = Signature.of(body, len(carried)), next(self._hosted)
        names = [f"loop {loop}.{place}" for place in range(own.computed)]
        if names and names[0] in self.request.computed:
            return own.whole(carried, list(map(self.builder.value, names)))
        try:
            results = unrolled()
        except Demand:
            if not names:
                raise
            results = None
        if results is not None:
            return results
        operands = {own.carried[place]: carried[place] for place in own.changed}
        constants: dict[str, np.ndarray] = {own.condition: np.array(True)}
        unchanged = {own.carried[p]: value for p, value in enumerate(carried) if p not in own.changed}
        outside = {name: self.value(name, self.builder.origin) for name in captured_of(body)}
        for name, value in (unchanged | outside).items():
            known = self.builder.array_of(value)
            if known is None:
                operands[name] = value
            else:
                constants[name] = known
        source = BodySource(self.model, self.opsets, body, declared(own, operands), constants)
        counters = counters_of(body, own, operands.keys())
        run = Repetition(source, own, tuple(operands), counters, count, self.builder.origin)
        raise Demand(
            self.builder.finish(list(operands.values())),
            lambda arrays, outputs_of: dict(zip(names, run.compute(arrays, outputs_of), strict=True)),
        )

    def graph(
        self, inputs: Sequence[Declared], constants: Mapping[str, np.ndarray], nodes: Sequence[NodeProto]
    ) -> Graph:
        """The graph of the outputs that are wanted."""
        request = self.request
        for entry in inputs:
            self.input(entry, request.shapes[entry.name])
        for name, (type, shape) in request.computed.items():
            self.values.setdefault(name, self.builder.input(name, type, shape))
        for name, array in constants.items():
            self.constant(name, array)
        self.run(nodes, request.outputs)
        return self.builder.finish([self.value(name, "the outputs") for name in request.outputs])

    def run(self, nodes: Sequence[NodeProto], wanted: Sequence[str]) -> None:
        """The nodes that the wanted names depend on, in order."""
        for node in needed(nodes, wanted, self.values):
            self.node(node)

    def node(self, node: NodeProto) -> None:
        """Adds what a node computes, unless it is computed already."""
        kind, builder = node.op_type, self.builder
        builder.origin = f"node `{node.name or (node.output[0] if node.output else '')}` ({kind})"
        if all(name in self.values for name in node.output if name):
            return  # they are computed already
        operands = [self.value(name, builder.origin) if name else None for name in node.input]
        attributes = {attribute.name: attribute for attribute in node.attribute}
        domain = node.domain if node.domain not in MAIN_DOMAINS else ""
        opset = self.opsets.get(domain, 1)
        within = Surroundings(self.contents, self.inline, self.on_host, self.repeated)
        operation = Operation(builder, kind, opset, operands, attributes, node.output, within)
        known = [None if operand is None else self._contents.get(operand.name) for operand in operands]
        rule = RULES.get((domain, kind))
        try:
            contents = folded(operation, known)
            if contents is not None:
                for name, array in zip(node.output, contents, strict=False):
                    self._known(name, array)
            elif rule is not None:
                self._ruled(node, rule, operation)
            else:
                self._body(node, domain, operands)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise GraphError(f"{builder.origin} is malformed: {error}") from error

    def _ruled(self, node: NodeProto, rule: Rule, operation: Operation) -> None:
        """The results of a rule, under the names of the model where the node has made them."""
        before = self.builder.made
        pairs = zip(rule(operation), itertools.chain(node.output, itertools.repeat("")), strict=False)
        self._bind(node, [self.builder.rename(value, name, before) if name else value for value, name in pairs])

    def inline(self, graph: GraphProto, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of a graph inside a node, which sees the values around it."""
        inner = Building(self.model, self.request)
        inner.builder, inner._contents, inner.values = self.builder, self._contents, dict(self.values)
        inner.opsets, inner._hosted = self.opsets, self._hosted
        inner.values |= zip((entry.name for entry in graph.input), operands, strict=True)
        for tensor in graph.initializer:
            inner.constant(tensor.name, array_of(tensor, self.model.folder, f"the initializer `{tensor.name}`"))
        wanted = [entry.name for entry in graph.output]
        own = {name for node in graph.node for name in node.output}
        for name in own:  # names of another copy, or of a graph around this one
            inner.values.pop(name, None)
        origin = self.builder.origin
        inner.run(graph.node, wanted)
        self.builder.origin = origin
        return [inner.value(name, origin) for name in wanted]

    def _bind(self, node: NodeProto, results: Sequence[Value | None]) -> None:
        for name, value in zip(node.output, results, strict=False):
            if name and value is not None:
                self.values[name] = value
        missing = [name for name in node.output if name and name not in self.values]
        if missing:
            raise GraphError(f"{self.builder.origin}: the result `{missing[0]}` is not supported")

    def _known(self, name: str, array: np.ndarray) -> None:
        if not name:
            return
        if array.dtype == object:
            value = self.builder.unrealized(name, ScalarType.INT64, array.shape)
            self.values[name] = value
            self._contents[value.name] = array
        else:
            self.constant(name, array)

    def _body(self, node: NodeProto, domain: str, operands: Sequence[Value | None]) -> None:
        """The nodes of the function that an operator is, with names of their own."""
        types = [None if operand is None else operand.type for operand in operands]
        body = self.model.functions.get((node.domain, node.op_type))
        found = Body.of_model(body) if body is not None else body_of(node, domain, self.opsets.get(domain, 1), types)
        if found is None:
            raise GraphError(f"{self.builder.origin}: the operator has no rule and no body")
        inner = Building(self.model, self.request)
        inner.builder, inner._contents, inner.opsets = self.builder, self._contents, {**self.opsets, **found.opsets}
        inner._hosted = self._hosted
        for name, operand in zip(found.inputs, [*operands, *[None] * len(found.inputs)], strict=False):
            inner.values[name] = operand
        origin = self.builder.origin
        for part in found.nodes(node):
            inner.node(part)
        self.builder.origin = origin
        self._bind(node, [inner.values.get(name) for name in found.outputs])


class BodySource:
    """The graph inside a loop as a model; ``constants``: those of its inputs, and of the names around it, that are."""

    def __init__(
        self,
        model: Model,
        opsets: Mapping[str, int],
        body: GraphProto,
        inputs: tuple[Declared, ...],
        constants: Mapping[str, np.ndarray],
    ) -> None:
        own = {t.name: array_of(t, model.folder, f"the initializer `{t.name}`") for t in body.initializer}
        self._model: Final = replace(model, opsets=opsets)
        self._body: Final = body
        self._constants: Final = {**constants, **own}
        self.name: Final = body.name or "body"
        self.inputs: Final = inputs
        self.outputs: Final = tuple(dict.fromkeys(entry.name for entry in body.output))

    def elaborate(self, request: Request) -> Graph:
        """The graph of one step."""
        return Building(self._model, request).graph(self.inputs, self._constants, self._body.node)
