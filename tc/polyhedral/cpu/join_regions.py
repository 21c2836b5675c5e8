"""Fuses consecutive parallel regions, where what one nest hands to the next stays in one iteration.

Every parallel loop wakes the threads and waits for them.  Nests that share no loops, because each has tiles of its own,
can still share the chunks that are distributed to the threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Member, Sequence, statement_names
from tc.polyhedral.schedule.dependences import union_of_accesses
from tc.polyhedral.transform.tile import step_of

# Iterations that keep the cores of most machines busy.
_ENOUGH_CHUNKS: Final = 16
# How much longer a core may have to work where tiles of several sizes share its chunk, than where each nest is alone.
_MOST_IDLE: Final = 1.25


@frozen
class Chosen:
    """The loop of a nest by which it would be cut into chunks.

    ``apart``: no two of its iterations read the same elements of an operand that is packed, so each may be a chunk.
    """

    member: Member
    apart: bool


# None where a nest must not be cut.
Choose: TypeAlias = Callable[[Band, isl.UnionSet], Chosen | None]


def join_regions(sequence: Sequence, domain: isl.UnionSet, scop: Scop, cores: int, choose: Choose) -> Sequence:
    """The sequence with neighbours that exchange data below one parallel loop over a chunk for every core."""
    done: list[Filter] = []
    group: list[Filter] = []
    region: Filter | None = None  # the group, where it is more than one
    for branch in sequence.filters:
        grown = _region([*group, branch], domain, scop, cores, choose) if group else None
        if grown is None:
            done += group if region is None else [region]
            group = []
        group.append(branch)
        region = grown
    return Sequence((*done, *(group if region is None else [region])))


def _region(branches: list[Filter], domain: isl.UnionSet, scop: Scop, cores: int, choose: Choose) -> Filter | None:
    """The branches below one loop over chunks; None where data would pass from one chunk to another, or none passes.

    Where iterations have nothing in common, each is a chunk, and finds in the cache what the nests hand on.
    """
    found = [_chosen(branch, domain, choose) for branch in branches]
    chosen = [own for own in found if own is not None]
    if len(chosen) < len(branches):
        return None
    members = [own.member for own in chosen]
    steps = [step_of(member) for member in members]
    inside = [domain.intersect(branch.domain) for branch in branches]
    extents = [extent_of(m.function, part) * step for m, part, step in zip(members, inside, steps, strict=True)]
    extent = max(extents)
    unit = math.lcm(*steps)
    size = -(-extent // (cores * unit)) * unit
    if all(own.apart for own in chosen) and -(-extent // unit) >= _ENOUGH_CHUNKS:
        size = unit
    alone = max(_longest(own, step, cores) for own, step in zip(extents, steps, strict=True))
    if 2 * -(-extent // size) <= cores or _longest(extent, size, cores) > _MOST_IDLE * alone:
        return None
    chunks = [_chunk(member, size // step) for member, step in zip(members, steps, strict=True)]
    for position, later in enumerate(branches[1:], start=1):
        pairs = exchanged(branches[:position], later, scop)
        if pairs.is_empty() or not stay(pairs, chunks):
            return None
    together = branches[0].domain
    for branch in branches[1:]:
        together = together.union(branch.domain)
    function = chunks[0]
    for chunk in chunks[1:]:
        function = function.union_add(chunk)
    loop = Member(function, coincident=True, kind=LoopKind.PARALLEL)
    return Filter(together, Band((loop,), permutable=True, child=Sequence(tuple(branches))))


def _longest(extent: int, size: int, cores: int) -> int:
    """The iterations of the core that has the most, where they are dealt in chunks of a size."""
    return -(-extent // (size * cores)) * size


def _chosen(branch: Filter, domain: isl.UnionSet, choose: Choose) -> Chosen | None:
    child = branch.child
    return choose(child, domain.intersect(branch.domain)) if isinstance(child, Band) and child.permutable else None


def _chunk(member: Member, iterations: int) -> isl.UnionPwAff:
    size = isl.Val.int_from_si(member.function.get_ctx(), iterations)
    return member.function.scale_down_val(size).floor()


def exchanged(earlier: list[Filter], later: Filter, scop: Scop) -> isl.UnionMap:
    """Pairs of instances that touch one element, at least one of them writing."""
    first = [scop.statement(name) for branch in earlier for name in statement_names(branch.domain)]
    second = [scop.statement(name) for name in statement_names(later.domain)]
    writes, reads = (union_of_accesses(first, scop.context, writes=kind) for kind in (True, False))
    written, read = (union_of_accesses(second, scop.context, writes=kind) for kind in (True, False))
    return writes.apply_range(read.union(written).reverse()).union(reads.apply_range(written.reverse()))


def stay(pairs: isl.UnionMap, chunks: list[isl.UnionPwAff]) -> bool:
    """Whether both ends of all pairs are in one chunk."""
    where = isl.UnionMap.empty(pairs.get_space())
    for chunk in chunks:
        where = where.union(isl.UnionMap.from_union_pw_aff(chunk))
    moved = pairs.apply_domain(where).apply_range(where)
    return bool(moved.is_subset(moved.domain().identity()))
