"""Concatenations that move nothing: what makes an operand writes to its part of the result.

A concatenation becomes a join where that saves moving elements.  A value lies in one place, so that of several
concatenations the first one has it; the others copy it.  One that begins another one, as in a dense block, is a part of
that: its operands lie in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.sizes import Shape, elements
from tc.graph.ir.values import Value, contiguous
from tc.graph.ir.views import Permute, Reinterpret, Reshape, viewed
from tc.graph.memory.blocks import Block, live_peak, peak_step
from tc.graph.memory.storage import bytes_of, viewed_by
from tc.graph.operators.joining import Concatenated
from tc.graph.operators.pointwise import Pointwise
from tc.graph.partition.kinds import Kind, kind_of

# Parts of longer concatenations are not looked for in others.
MOST_PARTS: Final = 64
# How often joins that need more memory are left out, one after the other, before none is made.
MOST_ATTEMPTS: Final = 8


@frozen
class Costs:
    """``kernel``: bytes that are moved in the time of one more kernel.

    ``row``: bytes that a part has in one piece at least, a line of the cache.
    """

    kernel: int = 1 << 16
    row: int = 64


_USUAL: Final = Costs()


def joined(graph: Graph, blocks: Callable[[Graph], Sequence[Block]], costs: Costs = _USUAL) -> Graph:
    """The graph with joins instead of concatenations, where that moves less and needs no more memory at a time.

    ``blocks``: what a graph needs of memory in the end.
    """
    chosen = _Concatenations(graph, costs).worthwhile()
    if not chosen:
        return graph
    most = live_peak(blocks(graph))
    for _ in range(MOST_ATTEMPTS):
        found = _Joining(graph, chosen, costs).graph()
        needed = blocks(found)
        if live_peak(needed) <= most:
            return found
        worst = _worst([block for block in needed if block.name in chosen], peak_step(needed))
        chosen = {name: parts for name, parts in chosen.items() if name != worst}
        if worst is None or not chosen:
            break
    return graph


def _worst(wholes: Sequence[Block], at: int) -> str | None:
    """The largest value that is there when most is needed; if there is none, for which others may be there, of all."""
    there = [block for block in wholes if block.first <= at <= block.last] or wholes
    return max(there, key=lambda block: block.bytes).name if there else None


class _Concatenations:
    """The concatenations of a graph, by their results."""

    def __init__(self, graph: Graph, costs: Costs) -> None:
        self._graph: Final = graph
        self._costs: Final = costs
        self._makers: Final = graph.producers()
        self._users: Final = graph.users()

    def worthwhile(self) -> dict[str, tuple[str, ...]]:
        """The operands of those that become joins, by result; an operand may be another concatenation."""
        found = self._with_shared_parts()
        owners: dict[str, str] = {}
        for name, parts in found.items():
            for part in parts:
                owners.setdefault(viewed_by(self._makers, part), name)
        return {name: parts for name, parts in found.items() if self._is_worth_it(name, parts, owners)}

    def _with_shared_parts(self) -> dict[str, tuple[str, ...]]:
        """Operands that are those of an earlier concatenation, in order, are replaced by that."""
        found: dict[str, tuple[str, ...]] = {}
        known: dict[tuple[int, tuple[str, ...]], str] = {}
        for node in self._graph.nodes:
            if not isinstance(node, Call) or not isinstance(node.operator, Concatenated):
                continue
            name, axis = node.results[0], node.operator.axis
            parts = tuple(own for own in node.operands if elements(self._graph.values[own].shape) != 0)
            if len(parts) < 2:  # one is a copy, none has no elements
                continue
            known.setdefault((axis, parts), name)
            found[name] = _shortened(parts, axis, known) if len(parts) <= MOST_PARTS else parts
        return found

    def _is_worth_it(self, name: str, parts: Sequence[str], owners: Mapping[str, str]) -> bool:
        """Whether as many bytes need not be moved as more kernels cost."""
        saved = kernels = 0
        placed: set[str] = set()
        for part in parts:
            base = viewed_by(self._makers, part)
            if owners[base] != name or base in placed or not self._may_lie(part, name):
                kernels += 1
                continue
            placed.add(base)
            if self._would_share(part):
                kernels += 1
            else:
                saved += bytes_of(self._graph.values[part])
        return saved > 0 and 2 * saved >= self._costs.kernel * (kernels - 1)

    def _may_lie(self, part: str, whole: str) -> bool:
        """Whether a kernel may write the operand to its part of the result."""
        maker = self._makers[whole]
        assert isinstance(maker, Call)
        assert isinstance(maker.operator, Concatenated)
        value, axis = self._graph.values[part], maker.operator.axis
        outermost = all(extent == 1 for extent in value.shape[:axis])
        row = elements(value.shape[axis:])
        assert isinstance(row, int)
        long = outermost or row * value.type.itemsize >= self._costs.row
        return long and _has_own_memory(self._graph, self._makers, part)

    def _would_share(self, part: str) -> bool:
        """Whether the operand is computed in the kernel of the concatenation, if that moves its operands."""
        maker = self._makers[part]
        if not isinstance(maker, Call) or kind_of(maker.program) is not Kind.POINTWISE or len(self._users[part]) > 1:
            return False
        shape = self._graph.values[part].shape
        before = [own for own in maker.operands if isinstance(self._makers.get(own), Call)]
        return all(self._graph.values[own].shape != shape for own in before)


def _shortened(parts: tuple[str, ...], axis: int, known: Mapping[tuple[int, tuple[str, ...]], str]) -> tuple[str, ...]:
    """The parts with those that make an earlier concatenation, the longest first, as one."""
    for length in range(len(parts) - 1, 1, -1):
        for first in range(len(parts) - length + 1):
            other = known.get((axis, parts[first : first + length]))
            if other is not None:
                return _shortened((*parts[:first], other, *parts[first + length :]), axis, known)
    return parts


def _has_own_memory(graph: Graph, makers: Mapping[str, Node], name: str) -> bool:
    """Whether a kernel or the host makes the value, which is not returned, or it is all of such a value."""
    while isinstance(node := makers.get(name), View) and isinstance(node.how, Reshape | Permute | Reinterpret):
        name = node.operand
    returned = {viewed_by(makers, output) for output in graph.outputs}
    return isinstance(node, Call | Host) and name not in returned


class _Joining:
    """Makes joins of concatenations, the last one first, so that the place of each is known."""

    def __init__(self, graph: Graph, chosen: Mapping[str, tuple[str, ...]], costs: Costs) -> None:
        self._graph: Final = graph
        self._row: Final = costs.row
        self._chosen: Final = chosen
        self._makers: Final = graph.producers()
        self._builder: Final = Builder.continuing(graph)
        self._nodes: Final[dict[str, Sequence[Node]]] = {}
        self._views: Final[dict[str, list[View]]] = {}
        for node in graph.nodes:
            if isinstance(node, View):
                self._views.setdefault(node.operand, []).append(node)
        self._owners: Final[dict[str, str]] = {}
        for name, parts in chosen.items():
            for part in parts:
                self._owners.setdefault(viewed_by(self._makers, part), name)

    def graph(self) -> Graph:
        """The graph with joins, and copies of operands that cannot lie in their parts."""
        for node in reversed(self._graph.nodes):
            if node.results[0] in self._chosen:
                assert isinstance(node, Call)
                self._join(node)
        nodes = tuple(own for node in self._graph.nodes for own in self._nodes.get(node.results[0], (node,)))
        return replace(self._graph, nodes=nodes, values=self._builder.values()).in_order().needed()

    def _join(self, call: Call) -> None:
        assert isinstance(call.operator, Concatenated)
        name, builder = call.results[0], self._builder
        steps = builder.value(name).steps
        placed: set[str] = set()
        operands: list[str] = []
        for part in self._chosen[name]:
            base, wanted = viewed_by(self._makers, part), replace(builder.value(part), strides=steps)
            free = self._owners[base] == name and base not in placed
            if free and self._place(wanted):
                placed.add(base)
                operands.append(part)
            else:
                operands.append("")
        if not placed:
            return
        before = builder.made
        builder.origin = call.origin
        for at, part in enumerate(self._chosen[name]):
            if not operands[at]:
                operands[at] = self._copied(part, steps)
        join = Join(tuple(operands), name, call.operator.axis, call.origin)
        self._nodes[name] = (*builder.nodes_from(before), join)

    def _copied(self, part: str, steps: Shape) -> str:
        made = self._builder.apply(Pointwise("copy", "{0}"), self._builder.value(part))
        self._builder.change(_regular(replace(made, strides=steps)))
        return made.name

    def _place(self, wanted: Value) -> bool:
        """Whether the value that an operand looks at is now written with the strides of its part."""
        if not _has_own_memory(self._graph, self._makers, wanted.name) or _row(wanted) < self._row:
            return False
        value: Value | None = _regular(wanted)
        while value is not None and isinstance(node := self._makers[value.name], View):
            value = _source(self._builder.value(node.operand), node, value)
        if value is None or _row(value) < self._row:
            return False
        return self._change(value)

    def _change(self, value: Value) -> bool:
        """Whether the value may have other strides, and so all views of it; then they have."""
        changed = {value.name: value}
        waiting = [value] if value != self._builder.value(value.name) else []
        offsets: dict[str, View] = {}
        while waiting:
            operand = waiting.pop()
            for view in self._views.get(operand.name, ()):
                found = viewed(operand, view.how, view.result)
                if found is None:
                    return False
                changed[view.result] = found[0]
                offsets[view.result] = replace(view, offset=found[1])
                waiting.append(found[0])
        for own in changed.values():
            self._builder.change(own)
        self._nodes.update({name: (view,) for name, view in offsets.items()})
        return True


def _source(operand: Value, view: View, value: Value) -> Value | None:
    """The operand with such strides that the view of it is the value."""
    match view.how:
        case Reshape():
            found = viewed(value, Reshape(operand.shape), operand.name)
        case Permute(axes):
            found = viewed(value, Permute(tuple(axes.index(axis) for axis in range(len(axes)))), operand.name)
        case Reinterpret():
            found = viewed(value, Reinterpret(operand.type), operand.name)
        case _:
            return None
    return None if found is None else _regular(found[0])


def _regular(value: Value) -> Value:
    """The value without strides if it is contiguous."""
    return replace(value, strides=None) if value.is_contiguous else value


def _row(value: Value) -> int | float:
    """The bytes that lie in one piece; infinite for all of them."""
    row = value.type.itemsize
    for extent, step, own in reversed(list(zip(value.shape, value.steps, contiguous(value.shape), strict=True))):
        assert isinstance(extent, int)
        if extent == 1:
            continue
        if step != own:
            return row
        row *= extent
    return math.inf
