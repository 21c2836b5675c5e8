"""Chooses the loop of every outermost nest that is distributed over the cores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.pack import can_pack
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.scattered import owners_of
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.cpu.chunk_steps import runs_steps
from tc.polyhedral.cpu.join_blocks import join_blocks
from tc.polyhedral.cpu.join_regions import Chosen, join_regions
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.tile import is_register

# Waking another core costs a few microseconds: below this many instances one core is done earlier.
WORTH_SPREADING = 1 << 14
# In every step of a block they wait for each other again.
WORTH_SPREADING_STEPS = 1 << 18
# With this many chunks for two cores the last one to finish leaves little idle time.
ENOUGH_CHUNKS = 16


def parallelize_tree(tree: ScheduleTree, scop: Scop, cores: int, room: int, *, join: bool = True) -> ScheduleTree:
    """Mark one coincident member of every outermost band as parallel, and move it to the front.

    For one core the loops get the same order, which also says what is packed how often, and none is marked.
    ``join``: bands that exchange data may share their parallel loop.
    ``room``: the most elements of an operand of a register tile that will be packed below the parallel loop.  Every
    iteration packs its own, so loops that choose a part of a large operand go outside, and a parallel loop that does
    not is cut into few chunks.
    """
    kind = LoopKind.PARALLEL if cores > 1 else LoopKind.SEQUENTIAL
    parallelizer = _Parallelizer(scop, layouts_of(scop), kind, cores, room, join and cores > 1)
    return replace(tree, root=parallelizer.visit(tree.root, tree.domain))


@frozen
class _Parallelizer:
    scop: Scop
    layouts: Mapping[str, Layout]
    kind: LoopKind
    cores: int
    room: int
    join: bool

    @property
    def packs(self) -> bool:
        return self.room > 0

    def visit(self, node: Node, domain: isl.UnionSet, steps: int = 1) -> Node:
        """``steps``: how often the node runs, in the steps of blocks around it."""
        worth = WORTH_SPREADING if steps == 1 else WORTH_SPREADING_STEPS * steps
        match node:
            case Leaf() | Extension():
                return node
            case Sequence():
                if self.scop.shared_parts:
                    node = join_blocks(node, domain, self.scop)
                if self.join and volume(domain) >= worth:
                    node = join_regions(node, domain, self.scop, self.cores, self.cut)
                branches = (
                    replace(f, child=self.visit(f.child, domain.intersect(f.domain), steps)) for f in node.filters
                )
                return Sequence(tuple(branches)) if len(node.filters) > 1 else next(branches).child
            case Band() if runs_steps(node):
                below = steps * max(1, extent_of(node.members[0].function, domain))
                return replace(node, child=self.visit(node.child, domain, below))
            case Band():
                joined = any(member.kind is LoopKind.PARALLEL for member in node.members)
                return node if joined or volume(domain) < worth else self.band(node, domain, steps)
            case _:
                assert_never(node)

    def band(self, band: Band, domain: isl.UnionSet, steps: int) -> Node:
        members = band.members
        counts = [extent_of(m.function, domain) if m.coincident else 0 for m in members]
        shared = self.operand(band, domain)
        # An operand that fits as a whole is packed once for each thread; the loops keep their order along memory.
        whole = shared is not None and self.packs and self.elements(*shared) <= self.room
        chooses = [shared is not None and not whole and _moves(member, *shared, self.layouts) for member in members]
        # A loop that serves the vector lanes is taken only where no other one is parallel.
        ranked = [
            (
                not is_register(member),
                self.counts_owners(member, domain),
                chooses[position] and count >= self.cores,
                _spread(count, self.cores),
                chooses[position],
                -position,
            )
            for position, (count, member) in enumerate(zip(counts, members, strict=True))
            if count > 1
        ]
        if not ranked:
            return replace(band, child=self.visit(band.child, domain, steps))
        position = -max(ranked)[-1]
        others = [p for p in range(len(members)) if p != position]
        if shared is not None and all(members[p].coincident for p in others):
            others.sort(key=lambda p: (is_register(members[p]), not chooses[p]))
        parallel = replace(members[position], kind=self.kind)
        beside = self.collapsed(band, counts, position, domain) if shared is None else None
        if beside is not None:
            parallel, others = beside[0], [p for p in others if p != beside[1]]
        inner = tuple(members[p] for p in others)
        if shared is None or chooses[position]:
            return replace(band, members=(parallel, *inner))
        size = isl.Val.int_from_si(domain.get_ctx(), -(-counts[position] // self.cores))
        chunk = replace(parallel, function=parallel.function.scale_down_val(size).floor())
        return replace(band, members=(chunk, members[position], *inner))

    def collapsed(
        self, band: Band, counts: list[int], position: int, domain: isl.UnionSet
    ) -> tuple[Member, int] | None:
        """The parallel loop and another one as one, where it has fewer iterations than there are cores; and which."""
        if not band.permutable or counts[position] >= self.cores:
            return None
        usable = [
            p
            for p, member in enumerate(band.members)
            if p != position and counts[p] > 1 and not is_register(member) and member.kind is LoopKind.SEQUENTIAL
        ]
        if not usable:
            return None
        other = max(usable, key=lambda p: (min(counts[p], ENOUGH_CHUNKS), -p))
        first, second = band.members[position].function, band.members[other].function
        least = isl.UnionPwAff.intersect_domain(second, domain).floor().min_val()
        size = isl.Val.int_from_si(domain.get_ctx(), counts[other])
        begun = second.sub(isl.UnionPwAff.val_on_domain(second.domain(), least))
        function = first.scale_val(size).add(begun)
        return replace(band.members[position], function=function, kind=self.kind), other

    def counts_owners(self, member: Member, domain: isl.UnionSet) -> bool:
        """Whether its iterations are the owners of what a scatter writes, each of whom looks at all indices."""
        bodies = (self.scop.statement(name).body for name in statement_names(domain))
        return any(iterator_of(member.function, body) in owners_of(body) for body in bodies)

    def cut(self, band: Band, domain: isl.UnionSet) -> Chosen | None:
        """The outermost loop that can be cut into chunks, unless a large operand is to be divided among the cores.

        It divides one that it chooses a part of itself.
        """
        member = next((m for m in band.members if m.coincident and not is_register(m)), None)
        if member is None:
            return None
        shared = self.operand(band, domain)
        if shared is None:
            return Chosen(member, apart=False)
        apart = _moves(member, *shared, self.layouts)
        if not apart and not (self.packs and self.elements(*shared) <= self.room):
            return None
        return Chosen(member, apart)

    def elements(self, statement: ScopStatement, read: int) -> int:
        """How many elements of the operand the whole statement reads."""
        original = value_reads(statement.body)[read]
        layout, domain = self.layouts[original.tensor], statement.domain
        names = enumerate(statement.body.iterators[: domain.dim(isl.dim_type.set)])
        return math.prod(
            int(domain.dim_max_val(n).to_python()) - int(domain.dim_min_val(n).to_python()) + 1
            for n, name in names
            if stride(original.subscripts, layout, name) != 0
        )

    def operand(self, band: Band, domain: isl.UnionSet) -> tuple[ScopStatement, int] | None:
        """The reduction with a register tile that has the most instances, and its read that moves along the lanes."""
        found: list[tuple[int, ScopStatement, int]] = []
        for name, members in paths_below(band, domain):
            statement = self.scop.statement(name)
            lanes = [m for m in members if m.kind is LoopKind.VECTOR]
            lane = iterator_of(lanes[-1].function, statement.body) if lanes else None
            if lane is None or not statement.accumulates or not any(m.kind is LoopKind.REGISTER for m in members):
                continue
            for position, read in enumerate(value_reads(statement.body)):
                along = stride(read.subscripts, self.layouts[read.tensor], lane)
                if along == 0 or not can_pack(statement, position):
                    continue
                packed = self.packs and along != 1
                if packed or along == 1:
                    found.append((volume(isl.UnionSet.from_set(statement.domain)), statement, position))
        best = max(found, key=lambda item: item[0], default=None)
        return None if best is None else best[1:]


def _spread(count: int, cores: int) -> int:
    """How well cores share the iterations of a loop: enough of them, or half of that and as many for each."""
    enough = ENOUGH_CHUNKS * max(cores, 2) // 2
    return enough if count % cores == 0 and 2 * count >= enough else min(count, enough)


def _moves(member: Member, statement: ScopStatement, read: int, layouts: Mapping[str, Layout]) -> bool:
    """Whether the member chooses which part of the operand is read."""
    iterator = iterator_of(member.function, statement.body)
    original = value_reads(statement.body)[read]
    return iterator is not None and stride(original.subscripts, layouts[original.tensor], iterator) != 0
