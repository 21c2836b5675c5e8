"""Makes a graph of comprehensions of a graph of ``torch.fx``, for numbers as sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import fx

from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.values import Value
from tc.torch.fx.layout import Layout, array_of, attribute_of
from tc.torch.fx.operation import At, Held, Operation, Rules, UnclaimedError, extents
from tc.torch.fx.origin import origin_of
from tc.torch.fx.placing import placing_of
from tc.torch.fx.types import TYPES

_SIZES: Final = (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default)


@frozen
class Returned:
    """An output of the graph by its name, an input by its place, or else a number or None."""

    value: str | None = None
    place: int | None = None
    number: Any = None


@frozen
class Imported:
    """``inputs``: names of values by placeholder, None of numbers.  ``outputs``: what is returned in order, the only
    one itself where it is ``single``.
    """

    graph: Graph
    inputs: tuple[str | None, ...]
    outputs: tuple[Returned, ...]
    single: bool


def imported(
    module: fx.GraphModule, name: str, rules: Rules, given: Sequence[Layout | bool | int | float], at: At
) -> Imported:
    """The graph of this name for what placeholders are.  ``at`` is told how many nodes have been imported.

    UnclaimedError for an operator without a rule, or whose rule refuses it.
    """
    return _Importer(module, name, rules).run(given, at)


class _Importer:
    """One pass over the nodes."""

    def __init__(self, module: fx.GraphModule, name: str, rules: Rules) -> None:
        self.module: Final = module
        self.rules: Final = rules
        self.builder: Final = Builder(name)
        self.held: Final[dict[fx.Node, Held]] = {}

    def run(self, given: Sequence[Layout | bool | int | float], at: At) -> Imported:
        inputs: list[str | None] = []
        places: dict[fx.Node, int] = {}
        for number, node in enumerate(self.module.graph.nodes):
            at(number, "operators")
            self.builder.origin = origin_of(node)
            if node.op == "placeholder":
                places[node] = len(inputs)
                inputs.append(self._input(node, given[len(inputs)]))
            elif node.op == "get_attr":
                self.held[node] = self._constant(node)
            elif node.op == "output":
                return self._finished(node, inputs, places)
            else:
                self.held[node] = computed(node, self.builder, self.held, self.rules)
        raise UnclaimedError("has no output")

    def _input(self, node: fx.Node, given: Layout | bool | int | float) -> str | None:
        if not isinstance(given, Layout):
            self.held[node] = given
            return None
        if given.dtype not in TYPES:
            raise UnclaimedError(f"takes {given.dtype}")
        shape = tuple(given.shape[axis] for axis in given.order)
        value = self.builder.input(self.builder.fresh(node.name), TYPES[given.dtype], shape)
        back = tuple(given.order.index(axis) for axis in range(len(shape)))
        self.held[node] = self.builder.permute(value, back)
        return value.name

    def _constant(self, node: fx.Node) -> Held:
        found = attribute_of(self.module, node)
        if not isinstance(found, torch.Tensor) or found.dtype not in TYPES or found.device.type != "cpu":
            raise UnclaimedError("reads an attribute that is no tensor in memory")
        return self.builder.constant(array_of(found.detach().contiguous()), node.name)

    def _finished(self, node: fx.Node, inputs: list[str | None], places: Mapping[fx.Node, int]) -> Imported:
        (returned,) = node.args
        single = not isinstance(returned, list | tuple)
        every: Sequence[Any] = (returned,) if single else returned  # type: ignore[assignment]
        outputs, values = [], []
        for one in every:
            held = self.held[one] if isinstance(one, fx.Node) else one
            if isinstance(one, fx.Node) and one in places:
                outputs.append(Returned(place=places[one]))
            elif isinstance(held, Value):
                value = self._laid_out(one, held)
                values.append(value)
                outputs.append(Returned(value=value.name))
            elif isinstance(held, tuple):
                raise UnclaimedError("returns several results of an operator as one")
            else:
                outputs.append(Returned(number=held))
        graph = self.builder.finish(values)
        return Imported(graph, tuple(inputs), tuple(outputs), single)

    def _laid_out(self, node: fx.Node, value: Value) -> Value:
        """The value in the order in which its elements lie in memory in PyTorch, each place once."""
        placing = placing_of(node)
        if placing.strides is not None:
            zeros, ones = ([number] * len(value.shape) for number in (0, 1))
            value = self.builder.slice(value, zeros, ones, placing.kept)
        return self.builder.contiguous(self.builder.permute(value, placing.order))


def computed(node: fx.Node, builder: Builder, held: Mapping[fx.Node, Held], rules: Rules) -> Held:
    """What a node computes; UnclaimedError where no rule does."""
    if node.target is operator.getitem:
        whole, place = held[node.args[0]], node.args[1]  # type: ignore[index]
        found = whole[place] if isinstance(whole, tuple) else None  # type: ignore[index]
        if found is None:
            raise UnclaimedError(f"gives no result {place}")
        return found
    if node.target in _SIZES:
        value = held[node.args[0]]  # type: ignore[index]
        assert isinstance(value, Value)
        if node.target is torch.ops.aten.sym_size.int:
            return int(value.shape[node.args[1]])  # type: ignore[index, arg-type]
        return math.prod(extents(value))
    if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload):
        return _number(node, held)
    if node.op != "call_function" or node.target not in rules:
        raise UnclaimedError("is not supported")
    operation = Operation(node, builder, held)
    try:
        made = rules[node.target](operation)
    except TCError as error:
        raise UnclaimedError(f"is refused: {error}") from error
    every = (made,) if isinstance(made, Value) else tuple(made)
    for at, (value, type) in enumerate(zip(every, operation.types, strict=False)):
        wanted = isinstance(made, Value) or operation.wants(at)
        if wanted and value is not None and value.type is not type:
            raise UnclaimedError(f"has a rule that gives {value.type} for result {at}, which is {type}")
    return made if isinstance(made, Value) else every


def _number(node: fx.Node, held: Mapping[fx.Node, Held]) -> Held:
    """What a function of numbers gives, such as a product of sizes."""
    target = node.target
    positional, named = _with_values((node.args, node.kwargs), held)
    if not callable(target) or any(isinstance(one, Value | tuple | list) for one in (*positional, *named.values())):
        raise UnclaimedError("is not supported")
    function: Callable[..., Any] = target
    found = function(*positional, **named)
    if not isinstance(found, bool | int | float):
        raise UnclaimedError("gives no number")
    return found


def _with_values(given: Any, held: Mapping[fx.Node, Held]) -> Any:
    """Arguments with what stands for nodes."""
    put: Any = held.__getitem__
    return fx.node.map_arg(given, put)
