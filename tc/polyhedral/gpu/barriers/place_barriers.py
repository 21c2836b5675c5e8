"""Places barriers between conflicting instances on different threads of a block, as few as the order allows.

Two instances conflict if they run on different threads of a block, access one place, and one of them writes.  One
barrier serves all conflicts at one level of the tree, at equal values of the members above:

- between branches of a sequence: it stands before the first branch that conflicts with one since the last barrier;
- between iterations of a loop: it stands at the end of the body.

A barrier has an instance for every thread, at every value of the members above it that any instance below has, so that
barriers are never divergent.

Barriers inside of a branch count, too: if it has one whenever the sequence runs, they separate the branches before it
from those after it.  If a loop has a barrier in each iteration, these separate what comes before the loop from
instances that run only in its later iterations; that is so in pipelined loops, whose first iteration only copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.analysis.box import own_space
from tc.polyhedral.analysis.distances import distances_of, equal, first_earlier, first_later
from tc.polyhedral.analysis.extents import later_in, outermost, with_all_values
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Await, Rotation, Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence

_BARRIER: Final = "barrier"

# For every statement below a node, ``{ instance -> [values of the members above] }``.
_Where: TypeAlias = Mapping[str, isl.Map]


def place_barriers(tree: ScheduleTree, scop: Scop) -> tuple[ScheduleTree, Scop]:
    """The tree with the barriers that its threads need, and the scop with their instances."""
    placer = _Placer(scop)
    pieces: list[isl.Set] = []
    tree.domain.foreach_set(pieces.append)
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
    where: _Where
    unprepared: _Where
    unfinished: _Where
    barriers: tuple[isl.Set, ...] = ()


class _Placer:
    """Visits the tree, numbering barriers."""

    def __init__(self, scop: Scop) -> None:
        self.scop = scop
        self.count = 0
        self.awaits: dict[str, Await] = {}
        # The highest number of a thread in the kernel, by position of the member.
        self.most: dict[int, isl.Val] = {}
        self._accesses = {s.name: _accesses(scop, s) for s in scop.statements}
        self._conflicts: dict[tuple[str, str], list[isl.Map]] = {}
        # Of every statement, the values of all members around it, wherever it stands.
        self._whole: dict[str, isl.Map] = {}
        self._together: dict[tuple[str, str, tuple[LoopKind, ...]], bool] = {}

    def visit(self, node: Node, where: _Where, above: tuple[LoopKind, ...]) -> _Visited:
        """The subtree with barriers; ``above``: the kinds of the members around it."""
        match node:
            case Leaf():
                for name, values in where.items():
                    self._whole[name] = values.union(self._whole[name]) if name in self._whole else values
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

    def band(self, band: Band, where: _Where, above: tuple[LoopKind, ...]) -> _Visited:
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
            rotating = self.rotating(visited, kinds[:depth])
            if rotating or self.carries(visited, kinds[:depth]):
                step = max((own.step for own in rotating.values()), default=None)
                visited = self.ended(self.around(members, band, visited, depth), kinds[:depth], step)
                members = ()
                for name, rotation in rotating.items():
                    self.awaits[name] = _await(visited.barriers[-1], visited.where[name], kinds[:depth], rotation)
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
            barrier = _without_gaps(barrier, step)
        inside = _with_barriers(_universe(visited.where), visited.barriers)
        node = Sequence((Filter(inside, visited.node), Filter(own_space(barrier), Leaf())))
        return replace(visited, node=node, barriers=(*visited.barriers, barrier), unfinished={})

    def rotating(self, visited: _Visited, above: tuple[LoopKind, ...]) -> dict[str, Rotation]:
        """Pipelined copies below, into slots for iterations of the innermost member."""
        depth = 0 if above[-1] in _PLACES else sum(kind is not LoopKind.THREAD for kind in above)
        return {
            statement.name: access.rotation
            for statement in self.scop.statements
            for access in statement.promoted
            if access.rotation is not None and access.writes and access.depth == depth
            if statement.name in visited.where
        }

    def carries(self, visited: _Visited, above: tuple[LoopKind, ...]) -> bool:
        """Whether the innermost member carries a conflict between threads."""
        if above[-1] in _PLACES:
            return False
        return self.waits(visited.unfinished, visited.unprepared, above, later=True)

    # --- branches

    def sequence(self, sequence: Sequence, where: _Where, above: tuple[LoopKind, ...]) -> _Visited:
        visited = [self.visit(f.child, _within(where, f.domain), above) for f in sequence.filters]
        everything = {name: values for found in visited for name, values in found.where.items()}
        filters: list[Filter] = []
        barriers: list[isl.Set] = []
        # A barrier stands before each of the branches from ``prepared`` on, and after each one before ``finished``.
        prepared, finished = len(visited), 0
        for position, (branch, found) in enumerate(zip(sequence.filters, visited, strict=True)):
            waiting = (visited[earlier].unfinished for earlier in range(finished, position))
            if any(self.waits(earlier, found.unprepared, above, later=False) for earlier in waiting):
                barrier = self.barrier(everything, above)
                barriers.append(barrier)
                filters.append(Filter(own_space(barrier), Leaf()))
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

    def runs_barrier(self, branch: _Visited, everything: _Where, above: tuple[LoopKind, ...]) -> bool:
        """Whether a branch has a barrier whenever any part of the sequence runs."""
        if LoopKind.THREAD not in above or not branch.barriers:
            return False
        reached, depth = self.reached(everything, above), len(above)
        return any(reached.is_subset(outermost(barrier, depth)) for barrier in branch.barriers)

    # --- pairs

    def waits(self, first: _Where, second: _Where, above: tuple[LoopKind, ...], *, later: bool) -> bool:
        """Whether an instance of ``first`` conflicts with one of ``second``, at equal values of the members above that
        are no threads.

        ``above``: the kinds of these members.  ``later``: the second one in a later iteration of the last of them.
        """
        if LoopKind.THREAD not in above:
            return False
        return any(
            self.pair_waits(self.conflicts(one, other), first[one], second[other], above, later=later)
            for one in first
            for other in second
            if not self.are_together(one, other, above)
        )

    def are_together(self, first: str, second: str, above: tuple[LoopKind, ...]) -> bool:
        """Whether all conflicting instances of a block are on one thread, so that no level needs a barrier."""
        places = tuple(kind if kind in _PLACES else LoopKind.SEQUENTIAL for kind in above)
        while places[-1] is LoopKind.SEQUENTIAL:
            places = places[:-1]
        key = first, second, places
        if key not in self._together:
            begun, ended = (_of_places(self._whole[name], places) for name in (first, second))
            kinds = tuple(kind for kind in places if kind in _PLACES)
            self._together[key] = not self.pair_waits(self.conflicts(first, second), begun, ended, kinds, later=False)
        return self._together[key]

    def pair_waits(
        self, conflicts: Items[isl.Map], first: isl.Map, second: isl.Map, above: tuple[LoopKind, ...], *, later: bool
    ) -> bool:
        """``waits`` for two statements, given their conflicts."""
        begun, ended = (_of_outermost(values, len(above)) for values in (first, second))
        for pairs in conflicts:
            apart = distances_of(pairs.apply_domain(begun).apply_range(ended))
            for position, kind in enumerate(above[:-1] if later else above):
                if kind is not LoopKind.THREAD:
                    apart = equal(apart, position)
            if later:
                apart = first_earlier(apart, len(above) - 1)
            for position, kind in enumerate(above):
                if kind is LoopKind.THREAD:
                    if not (first_earlier(apart, position).is_empty() and first_later(apart, position).is_empty()):
                        return True
                    apart = equal(apart, position)
        return False

    def conflicts(self, first: str, second: str) -> list[isl.Map]:
        """Pairs of instances that access one place, one of them writing."""
        found = self._conflicts.get((first, second))
        if found is None:
            found = self._conflicts[first, second] = []
            for a in self._accesses.get(first, ()):
                for b in self._accesses.get(second, ()):
                    if (a.writes or b.writes) and a.memory == b.memory:
                        pairs = a.place.apply_range(b.place.reverse())
                        if not any(pairs.plain_is_equal(other) for other in found):  # a reduction reads what it writes
                            found.append(pairs)
        return found

    def barrier(self, where: _Where, above: tuple[LoopKind, ...]) -> isl.Set:
        """A new barrier at all values of the members above that some instance has."""
        self.count += 1
        return self.reached(where, above).set_tuple_name(f"{_BARRIER}{self.count - 1}")

    def reached(self, where: _Where, above: tuple[LoopKind, ...]) -> isl.Set:
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


# Members that say where instances run, and not when.
_PLACES: Final = (LoopKind.BLOCK, LoopKind.THREAD)


@dataclass(frozen=True)
class _MemoryAccess:
    """``place``: ``{ instance -> place }`` in a memory that several threads access."""

    memory: str
    place: isl.Map
    writes: bool


def _accesses(scop: Scop, statement: ScopStatement) -> tuple[_MemoryAccess, ...]:
    """The accesses of a statement to tensors, except for promoted ones, and to shared buffers."""
    found = [
        _MemoryAccess(relation.get_tuple_name(isl.dim_type.out), relation, writes)
        for relations, writes in ((statement.reads, False), (statement.writes, True))
        for relation in relations
        if not any((a.writes if writes else a.reads) and relation.is_equal(a.element) for a in statement.promoted)
    ]
    copies = {name for promotion in scop.promotions for name in (promotion.loads, promotion.stores)}
    shared = {promotion.buffer.name for promotion in scop.promotions if promotion.buffer.shared}
    for access in statement.promoted:
        if statement.name in copies and len(statement.promoted) == 1:  # others copy from one buffer to another
            tensor = access.element.get_tuple_name(isl.dim_type.out)
            found.append(_MemoryAccess(tensor, access.element, writes=access.reads))
        if access.buffer in shared:
            found.append(_MemoryAccess(f"{access.buffer} itself", access.place, access.writes))
    return tuple(found)


def _by_name(union: isl.UnionMap) -> dict[str, isl.Map]:
    maps: list[isl.Map] = []
    union.foreach_map(maps.append)
    return {relation.get_tuple_name(isl.dim_type.in_): relation for relation in maps}


def _within(where: _Where, domain: isl.UnionSet) -> _Where:
    """The statements of a branch; filters choose whole statements."""
    kept: list[isl.Set] = []
    domain.foreach_set(kept.append)
    names = {piece.get_tuple_name() for piece in kept}
    return {name: values for name, values in where.items() if name in names}


def _extended(values: isl.Map, members: Items[Member]) -> isl.Map:
    """``{ instance -> [values of the members above, values of these] }``."""
    own = own_space(values.domain())
    for member in members:
        found: list[isl.PwAff] = []
        member.function.intersect_domain(own).foreach_pw_aff(found.append)
        values = values.flat_range_product(isl.Map.from_pw_aff(found[0]))
    return values


def _of_outermost(values: isl.Map, depth: int) -> isl.Map:
    """The values of the ``depth`` outermost members only."""
    return values.project_out(isl.dim_type.out, depth, values.dim(isl.dim_type.out) - depth)


def _of_places(values: isl.Map, kinds: tuple[LoopKind, ...]) -> isl.Map:
    """The values of the block and thread members among the outermost ones."""
    values = _of_outermost(values, len(kinds))
    for position in reversed(range(len(kinds))):
        if kinds[position] not in _PLACES:
            values = values.project_out(isl.dim_type.out, position, 1)
    return values


def _as_one(points: isl.Set) -> isl.Set:
    """The points with as few conditions as possible, since all proofs about barriers use them.

    Where only some points of a tile are copied, say, isl keeps that as conditions.
    """
    hull = isl.Set.from_basic_set(points.remove_divs().simple_hull())
    return hull if hull.is_subset(points) else points.coalesce()


def _over_iterations(visited: _Visited, above: tuple[LoopKind, ...]) -> _Visited:
    """The subtree without the instances that barriers in other iterations of the innermost member already separate."""
    if above[-1] in _PLACES or not visited.barriers or not (visited.unprepared or visited.unfinished):
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


def _without(where: _Where, outermost: isl.Set) -> _Where:
    """The instances whose outermost members have values outside of the set."""
    left: dict[str, isl.Map] = {}
    for name, values in where.items():
        depth = outermost.dim(isl.dim_type.set)
        there = outermost.add_dims(isl.dim_type.set, values.dim(isl.dim_type.out) - depth)
        rest = values.subtract_range(there)
        if not rest.is_empty():
            left[name] = values if rest.is_equal(values) else rest.coalesce()
    return left


def _most(where: _Where, position: int) -> isl.Val:
    """The greatest value of a member."""
    most: isl.Val | None = None
    for values in where.values():
        own = values.range().dim_max_val(position)
        most = own if most is None else most.max(own)
    assert most is not None
    return most


def _universe(where: _Where) -> isl.UnionSet:
    spaces = [own_space(values.domain()) for values in where.values()]
    union = spaces[0]
    for space in spaces[1:]:
        union = union.union(space)
    return union


def _without_gaps(barrier: isl.Set, step: int) -> isl.Set:
    """The barrier at every ``step``-th value between the first and the last value of its last subscript."""
    names = [f"v{n}" for n in range(barrier.dim(isl.dim_type.set) - 1)]
    ends = [", ".join([*names, end]) for end in "ab"]
    text = f"{{ [{ends[0]}] -> [{ends[1]}] : exists n : n >= 0 and b = a + {step} n }}"
    later = isl.Map.read_from_str(barrier.get_ctx(), text)
    bare = barrier.reset_tuple_id()
    filled = bare.apply(later).intersect(bare.apply(later.reverse()))
    return filled.coalesce().set_tuple_name(barrier.get_tuple_name())


def _await(barrier: isl.Set, values: isl.Map, above: tuple[LoopKind, ...], rotation: Rotation) -> Await:
    """When a pipelined copy must be complete; ``values``: of the members above the copy, and further ones."""
    name, depth = barrier.get_tuple_name(), len(above)
    first = _of_outermost(values, depth)
    for position, kind in enumerate(above):
        if kind is LoopKind.THREAD:
            first = first.project_out(isl.dim_type.out, position, 1).insert_dims(isl.dim_type.out, position, 1)
    names = [f"v{n}" for n in range(depth)]
    further = (
        f"{{ {name}[{', '.join(names)}] -> {name}[{', '.join([*names[:-1], f'{names[-1]} + {rotation.step}'])}] }}"
    )
    return Await(
        name,
        first.set_tuple_name(isl.dim_type.out, name).intersect_range(barrier),
        isl.Map.read_from_str(barrier.get_ctx(), further),
        rotation.slots - 2,
    )


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
