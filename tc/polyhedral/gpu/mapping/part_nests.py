"""Loop distribution of nests that share too few loops to keep a GPU busy.

The scheduler fuses statements that share an independent loop.  Where that loop is short, there is no other one for
blocks, though statements inside have more independent loops, or are products, which need two loops for a tile.
Coincident loops around a sequence may be distributed over it, and exchanged with the loop inside of them: they carry no
dependence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.gpu.mapping.grid_defaults import is_tiled_product
from tc.polyhedral.gpu.mapping.launched_steps import are_worth_launches
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.share_loops import inner_loops
from tc.targets.machine import GpuMachine

# Iterations of one thread that take longer than memory takes for what they hand over, and, where nests are launched
# step by step, than a few launches.
_WORTH_PARTING: Final = 64
_WORTH_LAUNCHES: Final = 256
# A branch is worth it that has this part of all instances, and so many times the threads.
_PART: Final = 4
_TIMES: Final = 2


def part_nests(tree: ScheduleTree, scop: Scop, machine: GpuMachine) -> ScheduleTree:
    """The tree in which nests with too few threads are distributed, or launched step by step."""
    if tree.domain.is_empty() or tree.domain.params().dim(isl.dim_type.param):
        return tree
    return replace(tree, root=_Parting(scop, machine).visit(tree.root, tree.domain))


@frozen
class _Parting:
    """``steps``: how often the nests are launched."""

    scop: Scop
    machine: GpuMachine
    steps: int = 1

    def visit(self, node: Node, domain: isl.UnionSet) -> Node:
        """The node, whose outermost bands are nests."""
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                return Sequence(
                    tuple(replace(f, child=self.visit(f.child, domain.intersect(f.domain))) for f in filters)
                )
            case Band():
                return self.band(node, domain)
            case Extension():
                raise AssertionError("buffers are placed in mapped trees, so this comes first")
            case _:
                assert_never(node)

    def band(self, band: Band, domain: isl.UnionSet) -> Node:
        if self.are_launched(band, domain):
            steps = extent_of(band.members[0].function, domain)
            return replace(band, child=replace(self, steps=steps).visit(band.child, domain))
        plain = all(m.coincident and m.kind is LoopKind.SEQUENTIAL and not m.split for m in band.members)
        if not plain:
            return band
        own = volume(domain) // (self.threads(band, domain) * self.steps)
        match band.child:
            case Sequence(filters) if own > (_WORTH_PARTING if self.steps == 1 else _WORTH_LAUNCHES):
                runs = tuple(self.runs(band, filters, domain))
                if len(runs) > 1:
                    return self.visit(Sequence(tuple(_with_loops(band.members, run) for run in runs)), domain)
            case Band(members, permutable, child) if own > _WORTH_LAUNCHES and not any(m.coincident for m in members):
                exchanged = Band(members, permutable, _merged(band.members, child))
                steps = extent_of(members[0].function, domain)
                long = volume(domain) > _WORTH_LAUNCHES * self.threads(band, domain) * steps
                if long and self.are_launched(exchanged, domain):
                    return self.band(exchanged, domain)
            case _:
                pass
        return band

    def are_launched(self, band: Band, domain: isl.UnionSet) -> bool:
        """Whether each iteration of the outermost loop is launched; those of loops inside of it are not."""
        return self.steps == 1 and are_worth_launches(band, domain, self.machine.block_threads)

    def runs(self, band: Band, branches: tuple[Filter, ...], domain: isl.UnionSet) -> Iterator[tuple[Filter, ...]]:
        """The branches that gain from it on their own, and those between them together."""
        together: list[Filter] = []
        for branch in branches:
            if not self.gains(band, branch, domain):
                together.append(branch)
                continue
            if together:
                yield tuple(together)
            yield (branch,)
            together = []
        if together:
            yield tuple(together)

    def threads(self, band: Band, domain: isl.UnionSet) -> int:
        """How many threads share the loops of a nest."""
        rows = inner_loops(band.child, domain).values()
        longest = max((row.extent for row in rows), default=1)
        return _points(band.members, domain) * min(longest, self.machine.block_threads)

    def gains(self, band: Band, branch: Filter, domain: isl.UnionSet) -> bool:
        """Whether a branch that has much of the work can be shared by more threads, or in tiles, on its own."""
        own = domain.intersect(branch.domain)
        if _PART * volume(own) < volume(domain) or not isinstance(branch.child, Band):
            return False
        alone, together = _merged(band.members, branch.child), self.threads(band, domain)
        enough = self.machine.enough_blocks * self.machine.block_threads
        if together < enough and self.threads(alone, own) >= _TIMES * together:
            return True
        if is_tiled_product(self.scop, self.machine, band, domain):
            return False
        return is_tiled_product(self.scop, self.machine, alone, own)


def _points(members: tuple[Member, ...], domain: isl.UnionSet) -> int:
    return math.prod(extent_of(member.function, domain) for member in members if member.coincident)


def _with_loops(members: tuple[Member, ...], branches: tuple[Filter, ...]) -> Filter:
    """Some branches of the sequence inside of the loops, inside of loops of their own."""
    every = branches[0].domain
    for branch in branches[1:]:
        every = every.union(branch.domain)
    own = tuple(replace(m, function=m.function.intersect_domain(every.universe())) for m in members)
    return Filter(every, _merged(own, Sequence(branches) if len(branches) > 1 else branches[0].child))


def _merged(members: tuple[Member, ...], child: Node) -> Band:
    """Coincident loops around a node: one band with its own, whose order is free where theirs is."""
    if isinstance(child, Band) and child.permutable:
        return replace(child, members=(*members, *child.members))
    return Band(members, permutable=True, child=child)
