"""Nests that follow each other, and hand over rows to the same row of the next, share the loop over rows.

The scheduler keeps them apart, since each of them has more parallel loops of its own.  In one nest, a block takes a row
through all of them (``tc.polyhedral.gpu.mapping.short_chains`` says when that is quicker).  What one nest writes and
another one touches must belong to the same row in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from itertools import combinations
from typing import Final

import islpy as isl

from tc.polyhedral.analysis.box import prefix_map
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.gpu.mapping.gather_nests import is_small
from tc.polyhedral.gpu.mapping.short_chains import is_short_chain
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Member, ScheduleTree, Sequence, statement_names
from tc.targets.machine import GpuMachine

# Layers of a chain: of longer ones, isl would have too many pairs to look at.
_MOST: Final = 8


def join_chains(tree: ScheduleTree, scop: Scop, machine: GpuMachine) -> ScheduleTree:
    """The tree in which consecutive outermost nests are one where that takes less time."""
    open_sizes = tree.domain.params().dim(isl.dim_type.param)
    if not isinstance(tree.root, Sequence) or open_sizes:
        return tree
    joined = tuple(_joined(tree.root.filters, tree.domain, scop, machine))
    return replace(tree, root=Sequence(joined) if len(joined) > 1 else joined[0].child)


def _joined(filters: tuple[Filter, ...], domain: isl.UnionSet, scop: Scop, machine: GpuMachine) -> Iterator[Filter]:
    """The nests, the longest chains of them first where several begin with the same one."""
    first = 0
    while first < len(filters):
        for last in range(min(len(filters), first + _MOST), first + 1, -1):
            chain = _chain(filters[first:last], domain, scop, machine)
            if chain is not None:
                yield chain
                first = last
                break
        else:
            yield filters[first]
            first += 1


def _chain(branches: tuple[Filter, ...], domain: isl.UnionSet, scop: Scop, machine: GpuMachine) -> Filter | None:
    """The nests as one, with their outermost loops as that over rows; None where that is wrong, or no gain.

    Small ones share a kernel as they are.
    """
    if all(is_small(branch, domain, machine.block_threads) for branch in branches):
        return None
    rows, inside = _rows(branches[0]), list[Filter]()
    every = branches[0].domain
    for branch in branches[1:]:
        own = _rows(branch)
        if rows is None or own is None:
            return None
        rows = replace(rows, function=rows.function.union_add(own.function))
        every = every.union(branch.domain)
    for branch in branches:
        assert isinstance(branch.child, Band)
        inside.append(replace(branch, child=replace(branch.child, members=branch.child.members[1:])))
    assert rows is not None
    nest = Band((rows,), permutable=True, child=Sequence(tuple(inside)))
    own_domain = domain.intersect(every)
    if not is_short_chain(nest, own_domain, len(branches), scop, machine):
        return None
    names = [statement_names(domain.intersect(branch.domain)) for branch in branches]
    if not all(_hands_over(names[:n], own, scop) for n, own in enumerate(names) if n):
        return None
    pairs = ((a, b) for early, late in combinations(names, 2) for a in early for b in late)
    return Filter(every, nest) if all(_meet_in_rows(a, b, rows, scop) for a, b in pairs) else None


def _rows(branch: Filter) -> Member | None:
    """The outermost of several parallel loops of a nest."""
    match branch.child:
        case Band((first, second, *_)) if first.coincident and second.coincident and not first.split:
            return first if first.kind is LoopKind.SEQUENTIAL else None
        case _:
            return None


def _hands_over(before: Items[Items[str]], after: Items[str], scop: Scop) -> bool:
    """Whether nests write what the next one reads."""
    written = {scop.statement(name).body.target for names in before for name in names}
    return any(read.tensor in written for name in after for read in value_reads(scop.statement(name).body))


def _meet_in_rows(first: str, second: str, rows: Member, scop: Scop) -> bool:
    """Whether all that two statements touch, one of them writing, they touch in the same row."""
    one, other = scop.statement(first), scop.statement(second)
    for before, after in ((one.writes, (*other.reads, *other.writes)), (one.reads, other.writes)):
        for begun in before:
            for ended in after:
                if begun.get_tuple_name(isl.dim_type.out) != ended.get_tuple_name(isl.dim_type.out):
                    continue
                at, to = (prefix_map(own.domain, (rows,)).reverse() for own in (one, other))
                meeting = at.apply_range(begun).apply_range(to.apply_range(ended).reverse())
                if not meeting.is_subset(isl.Map.identity(meeting.get_space())):
                    return False
    return True
