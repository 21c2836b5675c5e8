"""Places as few barriers as the order of the tree allows between conflicting instances of different threads.

A barrier is placed at one level of the tree, at equal values of the members (loops) above:

- in a sequence, before the first branch that conflicts with an earlier one, unless a barrier stands between them;
- in a loop that carries a conflict from one iteration to a later one, at the end of the body.

Every thread of a block has an instance of it at each value of the members above, so that no barrier is divergent.

Barriers inside of a branch count: where a branch has one whenever the sequence runs, it separates what comes before
from what comes behind.  Those of a loop's iterations count, too: what runs only in the second iteration or later is
behind the barrier of the first.  So a software-pipelined loop, whose prologue only copies, needs none before it.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final, assert_never

import islpy as isl

from tc.language.isl.pieces import functions_of, maps_of, sets_of
from tc.polyhedral.analysis.box import own_space
from tc.polyhedral.analysis.extents import later_in, outermost, with_all_values
from tc.polyhedral.gpu.barriers.pipelined_copies import (
    await_of,
    awaits_once,
    copies_before,
    pipelined_copies,
    without_gaps,
)
from tc.polyhedral.gpu.barriers.thread_conflicts import PLACES, ThreadConflicts, Where
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Await, Scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence

_BARRIER: Final = "barrier"


def place_barriers(tree: ScheduleTree, scop: Scop, *, ahead: bool = False) -> tuple[ScheduleTree, Scop]:
    """The tree with the barriers that its threads need, and the scop with their instances.

    ``ahead``: copies outside of loops are asynchronous, too, until the barrier behind them.
    """
    placer = _Placer(scop, ahead=ahead)
    pieces = sets_of(tree.domain)
    visited = placer.visit(tree.root, {piece.get_tuple_name(): isl.Map.from_domain(piece) for piece in pieces}, ())
    return (
        ScheduleTree(_with_barriers(tree.domain, visited.barriers, whole=True), visited.node),
        replace(scop, barriers=visited.barriers, awaits=placer.awaits),
    )


@dataclass(frozen=True)
class _Visited:
    """A subtree with its barriers.

    ``where``: of all statements in it, those of its extensions included.  ``unprepared``: of the instances that no
    barrier of the subtree precedes; ``unfinished``: of those that none follows.
    """

    node: Node
    where: Where
    unprepared: Where
    unfinished: Where
    barriers: tuple[isl.Set, ...] = ()


class _Placer:
    """Visits the tree, numbering barriers."""

    def __init__(self, scop: Scop, *, ahead: bool) -> None:
        self.scop = scop
        self.ahead = ahead
        self.count = 0
        self.awaits: dict[str, Await] = {}
        # The highest number of a thread in the kernel, by position of the member.
        self.most: dict[int, isl.Val] = {}
        self.conflicts = ThreadConflicts(scop)

    def visit(self, node: Node, where: Where, above: tuple[LoopKind, ...]) -> _Visited:
        """The subtree with barriers; ``above``: the kinds of the members around it."""
        match node:
            case Leaf():
                self.conflicts.add_leaf(where)
                return _Visited(node, where, where, where)
            case Extension(instances=instances, child=child):
                visited = self.visit(child, {**where, **_by_name(instances.reverse())}, above)
                return replace(visited, node=replace(node, child=visited.node))
            case Band():
                return self.band(node, where, above)
            case Sequence():
                return self.sequence(node, where, above)
            case _:
                assert_never(node)

    # --- loops

    def band(self, band: Band, where: Where, above: tuple[LoopKind, ...]) -> _Visited:
        inner = {name: _extended(values, band.members) for name, values in where.items()}
        kinds = (*above, *(member.kind for member in band.members))
        for position in range(len(above), len(kinds)):
            if kinds[position] is LoopKind.THREAD:
                launched = band.members[position - len(above)].launched
                most = isl.Val.int_from_si(self.scop.context, launched - 1)
                self.most[position] = most if launched else _most(inner, position)
        visited = self.visit(band.child, inner, kinds)
        members: tuple[Member, ...] = ()
        for position in reversed(range(len(band.members))):
            depth = len(above) + position + 1
            rotating = pipelined_copies(self.scop, visited.where, kinds[:depth])
            if rotating or self.carries(visited, kinds[:depth]):
                step = max((own.step for own in rotating.values()), default=None)
                visited = self.ended(self.around(members, band, visited, depth), kinds[:depth], step)
                members = ()
                for name, rotation in rotating.items():
                    self.awaits[name] = await_of(visited.barriers[-1], visited.where[name], kinds[:depth], rotation)
            visited = _over_iterations(visited, kinds[:depth])
            members = (band.members[position], *members)
        return self.around(members, band, visited, len(above))

    def around(self, members: tuple[Member, ...], band: Band, visited: _Visited, depth: int) -> _Visited:
        """The subtree inside the members, whose functions are extended to its barriers."""
        if not members:
            return visited
        changed = (self.at_barriers(member, visited.barriers, depth + n) for n, member in enumerate(members))
        return replace(visited, node=Band(tuple(changed), band.permutable, visited.node))

    def at_barriers(self, member: Member, barriers: tuple[isl.Set, ...], position: int) -> Member:
        """The member, extended to the barriers below it, which every thread runs.

        isl may let a loop over threads run beyond the last thread, so the bound is made explicit.
        """
        changed = replace(member, function=_at_barriers(member.function, barriers, position))
        if not barriers or member.kind is not LoopKind.THREAD:
            return changed
        most = self.most[position]
        return replace(changed, last=most.to_python() if most.is_int() else None)

    def ended(self, visited: _Visited, above: tuple[LoopKind, ...], step: int | None) -> _Visited:
        """The subtree, followed by a barrier; ``step``: between the iterations of the innermost member, if there must
        be a barrier in every iteration from the first to the last.
        """
        barrier = self.barrier(visited.where, above)
        if step is not None:
            barrier = without_gaps(barrier, step)
        inside = _with_barriers(_universe(visited.where), visited.barriers)
        node = Sequence((Filter(inside, visited.node), Filter(own_space(barrier), Leaf())))
        return replace(visited, node=node, barriers=(*visited.barriers, barrier), unfinished={})

    def carries(self, visited: _Visited, above: tuple[LoopKind, ...]) -> bool:
        """Whether the innermost member carries a conflict between threads."""
        if above[-1] in PLACES:
            return False
        return self.conflicts.need_barrier(visited.unfinished, visited.unprepared, above, later=True)

    # --- branches

    def sequence(self, sequence: Sequence, where: Where, above: tuple[LoopKind, ...]) -> _Visited:
        visited = [self.visit(f.child, _within(where, f.domain), above) for f in sequence.filters]
        everything = {name: values for found in visited for name, values in found.where.items()}
        filters: list[Filter] = []
        barriers: list[isl.Set] = []
        # A barrier stands before each of the branches from ``prepared`` on, and after each one before ``finished``.
        prepared, finished = len(visited), 0
        for position, (branch, found) in enumerate(zip(sequence.filters, visited, strict=True)):
            waiting = (visited[earlier].unfinished for earlier in range(finished, position))
            if any(self.conflicts.need_barrier(earlier, found.unprepared, above, later=False) for earlier in waiting):
                barrier = self.barrier(everything, above)
                barriers.append(barrier)
                filters.append(Filter(own_space(barrier), Leaf()))
                if self.ahead:
                    copies = copies_before(self.scop, [own.unfinished for own in visited[finished:position]], above)
                    self.awaits |= awaits_once(barrier, copies, above)
                prepared, finished = min(prepared, position), position
            if self.runs_barrier(found, everything, above):
                prepared, finished = min(prepared, position + 1), position
            barriers += found.barriers
            filters.append(Filter(_with_barriers(branch.domain, found.barriers), found.node))
        return _Visited(
            Sequence(tuple(filters)),
            everything,
            {name: values for found in visited[:prepared] for name, values in found.unprepared.items()},
            {name: values for found in visited[finished:] for name, values in found.unfinished.items()},
            tuple(barriers),
        )

    def runs_barrier(self, branch: _Visited, everything: Where, above: tuple[LoopKind, ...]) -> bool:
        """Whether a branch has a barrier whenever any part of the sequence runs."""
        if LoopKind.THREAD not in above or not branch.barriers:
            return False
        reached, depth = self.reached(everything, above), len(above)
        return any(reached.is_subset(outermost(barrier, depth)) for barrier in branch.barriers)

    def barrier(self, where: Where, above: tuple[LoopKind, ...]) -> isl.Set:
        """A new barrier at all values of the members above that some instance has."""
        self.count += 1
        return self.reached(where, above).set_tuple_name(f"{_BARRIER}{self.count - 1}")

    def reached(self, where: Where, above: tuple[LoopKind, ...]) -> isl.Set:
        """All threads of a block, at every value of the other members that some instance has."""
        reached: isl.Set | None = None
        for values in where.values():
            own = outermost(values.range(), len(above))
            reached = own if reached is None else reached.union(own)
        assert reached is not None
        for position, kind in enumerate(above):
            if kind is LoopKind.THREAD:
                reached = with_all_values(reached, position, self.most[position])
        return _as_one(reached)


def _by_name(union: isl.UnionMap) -> dict[str, isl.Map]:
    maps = maps_of(union)
    return {relation.get_tuple_name(isl.dim_type.in_): relation for relation in maps}


def _within(where: Where, domain: isl.UnionSet) -> Where:
    """The statements of a branch; filters choose whole statements."""
    kept = sets_of(domain)
    names = {piece.get_tuple_name() for piece in kept}
    return {name: values for name, values in where.items() if name in names}


def _extended(values: isl.Map, members: Items[Member]) -> isl.Map:
    """``{ instance -> [values of the members above, values of these] }``."""
    own = own_space(values.domain())
    for member in members:
        found = functions_of(member.function.intersect_domain(own))
        values = values.flat_range_product(isl.Map.from_pw_aff(found[0]))
    return values


def _over_iterations(visited: _Visited, above: tuple[LoopKind, ...]) -> _Visited:
    """The subtree without the instances that barriers in other iterations of the innermost member already separate."""
    if above[-1] in PLACES or not visited.barriers or not (visited.unprepared or visited.unfinished):
        return visited
    depth = len(above)
    met = outermost(visited.barriers[0], depth)
    for barrier in visited.barriers[1:]:
        met = met.union(outermost(barrier, depth))
    further = later_in(met.get_space(), depth - 1)
    return replace(
        visited,
        unprepared=_without(visited.unprepared, met.apply(further)),
        unfinished=_without(visited.unfinished, met.apply(further.reverse())),
    )


def _without(where: Where, outermost: isl.Set) -> Where:
    """The instances whose outermost members have values outside of the set."""
    left: dict[str, isl.Map] = {}
    for name, values in where.items():
        depth = outermost.dim(isl.dim_type.set)
        there = outermost.add_dims(isl.dim_type.set, values.dim(isl.dim_type.out) - depth)
        rest = values.subtract_range(there)
        if not rest.is_empty():
            left[name] = values if rest.is_equal(values) else rest.coalesce()
    return left


def _universe(where: Where) -> isl.UnionSet:
    spaces = [own_space(values.domain()) for values in where.values()]
    union = spaces[0]
    for space in spaces[1:]:
        union = union.union(space)
    return union


def _as_one(points: isl.Set) -> isl.Set:
    """The points with as few conditions as possible, since all proofs about barriers use them.

    Where only some points of a tile are copied, say, isl keeps that as conditions.
    """
    hull = isl.Set.from_basic_set(points.remove_divs().simple_hull())
    return hull if hull.is_subset(points) else points.coalesce()


def _most(where: Where, position: int) -> isl.Val:
    """The greatest value of a member."""
    most: isl.Val | None = None
    for values in where.values():
        own = values.range().dim_max_val(position)
        most = own if most is None else most.max(own)
    assert most is not None
    return most


def _with_barriers(domain: isl.UnionSet, barriers: Items[isl.Set], *, whole: bool = False) -> isl.UnionSet:
    """The domain and the barriers; ``whole``: with their instances, else with their spaces only, as in filters."""
    for barrier in barriers:
        domain = domain.union(isl.UnionSet.from_set(barrier) if whole else own_space(barrier))
    return domain


def _at_barriers(function: isl.UnionPwAff, barriers: Items[isl.Set], position: int) -> isl.UnionPwAff:
    """The function of the member at ``position``, extended to barriers."""
    for barrier in barriers:
        local = isl.LocalSpace.from_space(barrier.get_space())
        value = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))
        function = function.union_add(isl.UnionPwAff.from_pw_aff(value))
    return function
