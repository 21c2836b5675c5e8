"""Register tiles: small tiles of the loops inside a reduction, whose results fit the vector registers.

Below the loops that carry the reduction only the tile's own loops are left, so that every element of the target is
loaded and stored once for the whole reduction (``tc.polyhedral.promote`` does that) and operands are used several times
for each time they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.specialization import Layout
from tc.polyhedral.scop import Scop, ScopStatement
from tc.polyhedral.strides import accesses, iterator_of, stride
from tc.polyhedral.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.vectorize import extent_of, layouts_of

# Sizes for the independent loops inside a reduction, outermost first; 0 moves a loop out of it.  None: no tile.
ChooseRegisters: TypeAlias = Callable[[tuple[Member, ...], ScopStatement], tuple[int, ...] | None]

# With this many independent sums the latency of multiply-adds is hidden; more rows than that only cost registers.
ROWS = 8
# Two to four vectors of results in a row use every operand that is broadcast as often.
LANES = 32


def explicit_registers(sizes: tuple[int, ...]) -> ChooseRegisters:
    """Sizes for the innermost independent loops, innermost last; loops beyond them move out.  None for no sizes."""

    def choose(members: tuple[Member, ...], _statement: ScopStatement) -> tuple[int, ...] | None:
        if not sizes:
            return None
        missing = len(members) - len(sizes)
        return tuple(0 for _ in range(missing)) + sizes[max(0, -missing) :]

    return choose


def default_registers(scop: Scop) -> ChooseRegisters:
    """The static rule: rows that share what a row loads, and a few vectors of each; sizes that divide the extents."""
    layouts = layouts_of(scop)

    def choose(members: tuple[Member, ...], statement: ScopStatement) -> tuple[int, ...] | None:
        domain = isl.UnionSet.from_set(statement.domain)
        lanes = _divisor(members[-1], statement, domain, LANES)
        rows = {p: _divisor(m, statement, domain, ROWS) for p, m in enumerate(members[:-1])}
        sharing = [p for p in rows if _shares(members[p], members[-1], statement, layouts)]
        best = max(sharing, key=lambda p: (rows[p], p), default=None)
        if lanes < LANES // 4 or best is None or rows[best] < 2:
            return None
        return tuple(lanes if p == len(members) - 1 else rows[p] if p == best else 0 for p in range(len(members)))

    return choose


def _divisor(member: Member, statement: ScopStatement, domain: isl.UnionSet, most: int) -> int:
    """The largest size up to ``most`` that divides both the loop's extent and its iterator's: no tile is partial."""
    iterator = iterator_of(member.function, statement.body)
    if iterator is None:
        return 1
    position = statement.body.iterators.index(iterator)
    whole = int(statement.domain.dim_max_val(position).to_python()) + 1
    extent = extent_of(member.function, domain)
    return max(size for size in range(1, most + 1) if extent % size == 0 and whole % size == 0)


def _shares(row: Member, lane: Member, statement: ScopStatement, layouts: Mapping[str, Layout]) -> bool:
    """Whether everything that is read along the lanes is the same in every row."""
    body = statement.body
    across, along = iterator_of(row.function, body), iterator_of(lane.function, body)
    if across is None or along is None:
        return False
    reads = [(tensor, subscripts) for tensor, subscripts in accesses(body) if tensor != body.target]
    moving = [(t, s) for t, s in reads if stride(s, layouts[t], along) != 0]
    return bool(moving) and all(stride(s, layouts[t], across) == 0 for t, s in moving)


def register_tile_tree(tree: ScheduleTree, scop: Scop, choose: ChooseRegisters) -> ScheduleTree:
    """Tile the independent loops that every innermost reduction has inside it."""
    return replace(tree, root=_RegisterTiler(scop, choose).visit(tree.root, tree.domain))


@dataclass(frozen=True, slots=True)
class _RegisterTiler:
    scop: Scop
    choose: ChooseRegisters

    def visit(self, node: Node, domain: isl.UnionSet) -> Node:
        match node:
            case Leaf() | Extension():
                return node
            case Sequence(filters):
                return Sequence(
                    tuple(replace(f, child=self.visit(f.child, domain.intersect(f.domain))) for f in filters)
                )
            case Band(members, _, child):
                if isinstance(child, Leaf) and domain.n_set() == 1:
                    (name,) = statement_names(domain)
                    return replace(node, members=self.tile(members, self.scop.statement(name)))
                return replace(node, child=self.visit(child, domain))
            case _:
                assert_never(node)

    def tile(self, members: tuple[Member, ...], statement: ScopStatement) -> tuple[Member, ...]:
        split = first_carried(members, statement, self.scop)
        if split is None:
            return members
        carried = [m for m in members[split:] if not m.coincident]
        inner = tuple(m for m in members[split:] if m.coincident)
        sizes = self.choose(inner, statement)
        if sizes is None:
            return members
        outer: list[Member] = list(members[:split])
        points: list[Member] = []
        for member, size in zip(inner, sizes, strict=True):
            if size == 0:
                outer.append(member)
                continue
            value = isl.Val.int_from_si(member.function.get_ctx(), size)
            tile = member.function.scale_down_val(value).floor()
            outer.append(Member(tile, member.coincident))
            points.append(replace(member, function=member.function.mod_val(value)))
        return (*outer, *carried, *points)


def first_carried(members: tuple[Member, ...], statement: ScopStatement, scop: Scop) -> int | None:
    """Where the innermost loops begin that carry the reduction, with independent loops inside them; None if nowhere.

    Along every one of them the target stays the same.  Tile loops of a carried iterator stay outside.
    """
    if not statement.accumulates:
        return None
    body = statement.body
    target = layouts_of(scop)[body.target]
    end = len(members)
    while end > 0 and members[end - 1].coincident:
        end -= 1
    position = end
    seen: set[str] = set()
    while position > 0 and not members[position - 1].coincident:
        iterator = iterator_of(members[position - 1].function, body)
        if iterator is None or stride(body.subscripts, target, iterator) != 0:
            return None
        if iterator in seen:
            break
        seen.add(iterator)
        position -= 1
    return None if position == end or end == len(members) else position
