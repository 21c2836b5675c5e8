"""``MemoryPlan``: when each value is in memory, where in the arena, and what that comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Node, View
from tc.graph.ir.sizes import shape_text
from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.offsets import ALIGNMENT, placed
from tc.graph.memory.order import Task, Tasks, least_memory
from tc.graph.memory.storage import Storage, bytes_of, last_uses, storage_of

MEGABYTE: Final = 10**6


@frozen
class Row:
    """A line of the table: a node, or the end of a value.

    ``bytes``: of what is new.  ``total``: of all that is held.  ``without``: of all, if nothing ended.
    """

    statement: str
    shape: str
    bytes: int
    total: int
    without: int


@frozen
class MemoryPlan:
    """``offsets``: by owner, where its memory begins in the arena.  Outputs are allocated by each call."""

    graph: Graph
    storage: Storage
    blocks: tuple[Block, ...]
    offsets: Mapping[str, int]

    @property
    def peak(self) -> int:
        """The most bytes of intermediate values that are needed at a time."""
        return live_peak(self.blocks)

    @property
    def arena(self) -> int:
        """The bytes of the arena in which all intermediate values have a place."""
        return arena_size(self.blocks, [self.offsets[block.name] for block in self.blocks])

    @property
    def constants(self) -> int:
        """The bytes of the constants."""
        return sum(array.nbytes for array in self.graph.constants.values())

    def fits(self, bytes: int) -> bool:
        """Whether inputs, constants, outputs and the arena fit so many bytes."""
        named = dict.fromkeys((*self.graph.inputs, *self.graph.outputs))
        held = sum(bytes_of(self.graph.values[name]) for name in named if name not in self.graph.constants)
        return self.arena + self.constants + held <= bytes

    def rows(self) -> tuple[Row, ...]:
        """The table: a row for each node, and one for each value that ends after it.  Outputs are not counted."""
        last = last_uses(self.graph, self.storage.roots)
        total = without = 0
        found = []
        for at, node in enumerate(self.graph.nodes):
            new = sum(bytes_of(self.graph.values[name]) for name in node.results if name in self.offsets)
            total, without = total + new, without + new
            shape = "; ".join(shape_text(self.graph.values[name].shape) for name in node.results)
            found.append(Row(statement_of(node), shape, new, total, without))
            for name in (name for name, end in last.items() if end == at and name in self.offsets):
                ended = bytes_of(self.graph.values[name])
                total -= ended
                found.append(Row(f"free {name}", "", -ended, total, without))
        return tuple(found)

    def table(self) -> str:
        """The rows as text, in megabytes (10^6 bytes)."""
        lines = [["statement", "shape", "new MB", "total MB", "without freeing MB"]]
        for row in self.rows():
            sizes = [f"{size / MEGABYTE:.6f}" for size in (row.bytes, row.total, row.without)]
            lines.append([row.statement, row.shape, *sizes])
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if column < 2 else cell.rjust(width)  # texts left, numbers right
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def statement_of(node: Node) -> str:
    """A node in one line."""
    results = ", ".join(node.results)
    match node:
        case Call():
            return f"{results} = {node.program.name}({', '.join(node.operands)})"
        case View():
            return f"{results} = {type(node.how).__name__.lower()}({node.operand})"
        case Host():
            return f"{results} = {node.operator}({', '.join(node.operands)})  # host"


def planned(graph: Graph, *, in_place: bool = True, reorder: bool = True) -> MemoryPlan:
    """The plan of a graph, all of whose sizes are numbers: the order, who shares memory with whom, and offsets."""
    if reorder:
        graph = _reordered(graph)
    storage = storage_of(graph, in_place=in_place)
    blocks = _blocks(graph, storage)
    offsets = placed(blocks)
    return MemoryPlan(graph, storage, blocks, dict(zip((block.name for block in blocks), offsets, strict=True)))


def _blocks(graph: Graph, storage: Storage) -> tuple[Block, ...]:
    last = last_uses(graph, storage.roots)
    returned = {storage.roots[name] for name in graph.outputs}
    found = []
    for at, node in enumerate(graph.nodes):
        if isinstance(node, View):
            continue
        own = [name for name in node.results if storage.roots[name] == name and name not in returned]
        found += [Block(name, _rounded(bytes_of(graph.values[name])), at, last[name]) for name in own]
    return tuple(found)


def _rounded(size: int) -> int:
    return math.ceil(size / ALIGNMENT) * ALIGNMENT


def _reordered(graph: Graph) -> Graph:
    """The graph in an order that needs no more memory; views come right before their first user."""
    roots = storage_of(graph, in_place=False).roots
    numbers = {name: number for number, name in enumerate(dict.fromkeys(roots.values()))}
    moved: Sequence[Node] = [node for node in graph.nodes if not isinstance(node, View)]
    outside = {*graph.inputs, *graph.constants}
    tasks = tuple(
        Task(
            tuple(numbers[roots[name]] for name in node.operands if roots[name] not in outside),
            tuple(numbers[name] for name in node.results),
        )
        for node in moved
    )
    sizes = tuple(bytes_of(graph.values[name]) for name in numbers)
    kept = frozenset(numbers[roots[name]] for name in graph.outputs)
    order = least_memory(Tasks(tasks, sizes, kept))
    views = {node.result: node for node in graph.nodes if isinstance(node, View)}
    made: dict[int, Node] = {}

    def add(name: str) -> None:
        view = views.get(name)
        if view is not None and id(view) not in made:
            add(view.operand)
            made[id(view)] = view

    for number in order:
        for name in moved[number].operands:
            add(name)
        made[id(moved[number])] = moved[number]
    for name in graph.outputs:
        add(name)
    return replace(graph, nodes=tuple(made.values()))
