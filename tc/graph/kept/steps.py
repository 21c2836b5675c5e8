"""A memory plan as JSON and back: values and nodes in order, each by its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.ir.views import Expand, Permute, Reinterpret, Reshape, Slice, Viewing
from tc.graph.memory.blocks import Block
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import Storage
from tc.graph.run.arrays import numbers
from tc.language.program.program import Program

# The number of its kernel, by the results of a call.
Numbers: TypeAlias = Mapping[tuple[str, ...], int]


@frozen
class StoredValue:
    """A value; all sizes are numbers."""

    name: str
    type: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


@frozen
class StoredView:
    """``kind`` of view with its lists of numbers, or its type; ``offset`` in elements."""

    kind: str
    numbers: tuple[tuple[int, ...], ...]
    offset: int
    type: ScalarType | None = None


@frozen
class StoredNode:
    """A view, a call of the kernel with a number, or a join along an axis."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    origin: str
    kernel: int | None = None
    view: StoredView | None = None
    axis: int | None = None


@frozen
class StoredBlock:
    """The memory of a value: bytes, the steps in which it is needed, and where it is in the arena."""

    value: int
    bytes: int
    first: int
    last: int
    offset: int


@frozen
class StoredPlan:
    """A plan without its constants.  ``roots``, ``in_place`` and ``starts``: pairs of a value and where it lies."""

    name: str
    values: tuple[StoredValue, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[StoredNode, ...]
    roots: tuple[tuple[int, int], ...]
    in_place: tuple[tuple[int, int], ...]
    starts: tuple[tuple[int, int], ...]
    blocks: tuple[StoredBlock, ...]


def stored_plan(plan: MemoryPlan, kernels: Numbers) -> StoredPlan | None:
    """The plan as it is stored; None where the host computes something, by a function that has no name."""
    graph, storage = plan.graph, plan.storage
    if any(isinstance(node, Host) for node in graph.nodes):
        return None
    at = {name: place for place, name in enumerate(graph.values)}
    return StoredPlan(
        name=graph.name,
        values=tuple(map(_stored_value, graph.values.values())),
        inputs=tuple(at[name] for name in graph.inputs),
        outputs=tuple(at[name] for name in graph.outputs),
        nodes=tuple(_stored_node(node, at, kernels) for node in graph.nodes),
        roots=tuple((at[name], at[root]) for name, root in storage.roots.items() if name != root),
        in_place=tuple((at[name], at[operand]) for name, operand in storage.in_place.items()),
        starts=tuple((at[name], start) for name, start in storage.starts.items()),
        blocks=tuple(StoredBlock(at[b.name], b.bytes, b.first, b.last, plan.offsets[b.name]) for b in plan.blocks),
    )


def _stored_value(value: Value) -> StoredValue:
    strides = None if value.strides is None else numbers(value.strides, value.name)
    return StoredValue(value.name, value.type, numbers(value.shape, value.name), strides)


def _stored_node(node: Node, at: Mapping[str, int], kernels: Numbers) -> StoredNode:
    operands, results = (tuple(at[name] for name in names) for names in (node.operands, node.results))
    match node:
        case Call():
            return StoredNode(operands, results, node.origin, kernel=kernels[node.results])
        case View():
            return StoredNode(operands, results, node.origin, view=_stored_view(node))
        case Join():
            return StoredNode(operands, results, node.origin, axis=node.axis)
        case Host():
            raise AssertionError("plans with functions of the host are not stored")
        case _:
            assert_never(node)


def _stored_view(view: View) -> StoredView:
    def made(kind: str, *lists: Sequence[Dimension], type: ScalarType | None = None) -> StoredView:
        (offset,) = numbers((view.offset,), view.result)
        return StoredView(kind, tuple(numbers(tuple(one), view.result) for one in lists), offset, type)

    match view.how:
        case Reshape(shape):
            return made("reshape", shape)
        case Permute(axes):
            return made("permute", axes)
        case Slice(starts, steps, shape):
            return made("slice", starts, steps, shape)
        case Expand(shape):
            return made("expand", shape)
        case Reinterpret(type):
            return made("reinterpret", type=type)
        case _:
            assert_never(view.how)


def restored_values(stored: StoredPlan) -> dict[str, Value]:
    """The values by name."""
    return {one.name: Value(one.name, one.type, one.shape, one.strides) for one in stored.values}


def restored_plan(
    stored: StoredPlan, values: dict[str, Value], interfaces: Sequence[Interface], constants: Mapping[str, np.ndarray]
) -> tuple[MemoryPlan, Numbers]:
    """The plan, and the numbers of its kernels; programs of calls have names of arguments and results only.

    ValueError or LookupError for what ``stored_plan`` did not make.
    """
    names = tuple(one.name for one in stored.values)
    programs = [Program(one.name, (), (), (), one.arguments, one.results, (), ()) for one in interfaces]
    nodes = tuple(_restored_node(node, names, programs) for node in stored.nodes)
    roots = dict(zip(names, names, strict=True)) | {names[at]: names[root] for at, root in stored.roots}
    graph = Graph(
        stored.name,
        tuple(names[at] for at in stored.inputs),
        tuple(names[at] for at in stored.outputs),
        values,
        nodes,
        constants,
    )
    plan = MemoryPlan(
        graph,
        Storage(
            roots,
            {names[at]: names[operand] for at, operand in stored.in_place},
            {names[at]: start for at, start in stored.starts},
        ),
        tuple(Block(names[one.value], one.bytes, one.first, one.last) for one in stored.blocks),
        {names[one.value]: one.offset for one in stored.blocks},
    )
    pairs = zip(nodes, stored.nodes, strict=True)
    return plan, {node.results: one.kernel for node, one in pairs if one.kernel is not None}


def _restored_node(stored: StoredNode, names: tuple[str, ...], programs: Sequence[Program]) -> Node:
    operands, results = (tuple(names[at] for at in places) for places in (stored.operands, stored.results))
    if stored.kernel is not None:
        return Call(programs[stored.kernel], operands, results, stored.origin)
    if stored.axis is not None:
        (result,) = results
        return Join(operands, result, stored.axis, stored.origin)
    if stored.view is None:
        raise ValueError("a node has neither a kernel nor a view")
    (operand,), (result,) = operands, results
    return View(operand, result, _restored_how(stored.view), stored.view.offset, stored.origin)


def _restored_how(stored: StoredView) -> Viewing:
    match stored.kind, stored.numbers, stored.type:
        case "reshape", [shape], None:
            return Reshape(shape)
        case "permute", [axes], None:
            return Permute(axes)
        case "slice", [starts, steps, shape], None:
            return Slice(starts, steps, shape)
        case "expand", [shape], None:
            return Expand(shape)
        case "reinterpret", [], ScalarType() as type:
            return Reinterpret(type)
        case _:
            raise ValueError(f"there is no view {stored.kind!r}")
