"""``MemoryPlan``: when each value is in memory, where in the arena, and what that comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.sizes import shape_text
from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.offsets import ALIGNMENT, placed
from tc.graph.memory.placing import USUAL, Placing
from tc.graph.memory.storage import Storage, bytes_of, first_uses, last_uses, storage_of, written
from tc.graph.memory.tasks import reordered

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
    """``offsets``: by owner, where its memory begins in the arena.  Outputs are allocated by each call, and computed in
    place where they are all of a value.
    """

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
        return sum(bytes_of(self.graph.values[name]) for name in self.graph.constants)

    def fits(self, bytes: int) -> bool:
        """Whether inputs, constants, outputs and the arena fit so many bytes."""
        named = dict.fromkeys((*self.graph.inputs, *self.graph.outputs))
        held = sum(bytes_of(self.graph.values[name]) for name in named if name not in self.graph.constants)
        return self.arena + self.constants + held <= bytes

    def rows(self) -> tuple[Row, ...]:
        """The table: a row for each node, and one for each value that ends after it.  Outputs are not counted."""
        roots = self.storage.roots
        first, last = first_uses(self.graph, roots), last_uses(self.graph, roots)
        total = without = 0
        found = []
        for at, node in enumerate(self.graph.nodes):
            begun = dict.fromkeys(roots[name] for name in node.results)
            new = sum(bytes_of(self.graph.values[n]) for n in begun if first[n] == at and n in self.offsets)
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
        case Join():
            return f"{results} = join({', '.join(node.operands)})"


def planned(
    graph: Graph,
    *,
    in_place: bool = True,
    reorder: bool = True,
    placing: Placing = USUAL,
    workspace: int | None = None,
) -> MemoryPlan:
    """The plan of a graph, all of whose sizes are numbers: the order, who shares memory with whom, and offsets.

    ``reorder``: the arena is no larger than in the order given.  ``workspace``: where the arena is larger, orders are
    searched for longer.
    """
    if not reorder:
        return _in_order(graph, in_place, placing)
    best = _in_order(reordered(graph), in_place, placing)
    if best.arena > live_peak(needed_blocks(graph, in_place=in_place, reorder=False)):
        best = min(best, _in_order(graph, in_place, placing), key=lambda plan: plan.arena)
    if workspace is not None and best.arena > workspace:
        longer = _in_order(reordered(graph, thorough=True), in_place, placing)
        best = min(best, longer, key=lambda plan: plan.arena)
    return best


def _in_order(graph: Graph, in_place: bool, placing: Placing) -> MemoryPlan:
    storage = storage_of(graph, in_place=in_place)
    blocks = _blocks(graph, storage)
    offsets = placed(blocks, placing)
    return MemoryPlan(graph, storage, blocks, dict(zip((block.name for block in blocks), offsets, strict=True)))


def needed_blocks(graph: Graph, *, in_place: bool = True, reorder: bool = True) -> tuple[Block, ...]:
    """What a plan needs in its arena, without the search for offsets."""
    ordered = reordered(graph) if reorder else graph
    return _blocks(ordered, storage_of(ordered, in_place=in_place))


def _blocks(graph: Graph, storage: Storage) -> tuple[Block, ...]:
    """The memory that is needed in the arena: a block for each root that a node writes to."""
    first, last = first_uses(graph, storage.roots), last_uses(graph, storage.roots)
    outside = {*graph.inputs, *graph.constants, *written(graph, storage.roots)}
    return tuple(
        Block(name, _rounded(bytes_of(graph.values[name])), at, last[name])
        for name, at in first.items()
        if name not in outside
    )


def _rounded(size: int) -> int:
    return math.ceil(size / ALIGNMENT) * ALIGNMENT
