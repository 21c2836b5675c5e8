"""Ways through a tree to its statements, and the execution that they make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.execution import Concurrency, Execution, ThreadLeaf
from tc.polyhedral.loops import (
    LoopKind,
    Sharing,
)

# The sorts of dimensions that each level of nesting takes: one for every sort that some branch has there, so that
# branches need not agree.
_Levels: TypeAlias = tuple[tuple[Concurrency, ...], ...]


def concurrency_of(kind: LoopKind) -> Concurrency:
    """What two different iterations of a loop of this kind are to each other."""
    match kind:
        case LoopKind.SEQUENTIAL | LoopKind.REGISTER | LoopKind.UNROLLED | LoopKind.LANES:
            return Concurrency.ORDERED
        case LoopKind.REDUCTION:
            return Concurrency.LANES
        case LoopKind.PARALLEL | LoopKind.VECTOR:
            return Concurrency.UNORDERED
        case LoopKind.BLOCK:
            return Concurrency.BLOCKS
        case LoopKind.THREAD:
            return Concurrency.THREADS
        case _:
            assert_never(kind)


Time: TypeAlias = tuple[tuple[Concurrency, isl.PwAff], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """An allocation of a buffer on the way to a leaf, below so many levels of time."""

    buffer: str
    depth: int
    sharing: Sharing


@dataclass(frozen=True)
class Branch:
    """The way to one leaf: ``points`` of some space, the statement instance of each, and its time.

    ``is_identity``: the points are the instances.  ``barriers``: for every level of time that numbers a sequence, the
    own position and those of barriers.  ``scopes``: the allocations around it.
    """

    instances: isl.Map
    time: Time
    misuse: tuple[isl.Set, ...] = ()
    locals: tuple[isl.Map, ...] = ()
    scopes: tuple[Scope, ...] = ()
    barriers: tuple[tuple[int, frozenset[int]] | None, ...] = ()
    is_identity: bool = False

    @property
    def runs(self) -> isl.Set:
        """The instances, which all have a time.

        They are not read off the times: to say what has a time, isl would solve an integer problem for every
        division in it.
        """
        return self.instances.domain() if self.is_identity else self.instances.range()


def defined(points: isl.Set, time: Iterable[tuple[Concurrency, isl.PwAff]]) -> tuple[isl.Set, Time]:
    """Those of the points at which the whole time is defined, and the time as plain functions where it is one."""
    plain: list[tuple[Concurrency, isl.PwAff]] = []
    for sort, value in time:
        points, own = simplified(points, value)
        plain.append((sort, own))
    return points, tuple(plain)


def simplified(points: isl.Set, value: isl.PwAff) -> tuple[isl.Set, isl.PwAff]:
    """Those of the points at which the function is defined, and it without a domain of its own where that is possible.

    Whatever domains of pieces say again is said again in every proof.
    """
    if not points.is_subset(value.domain()):
        return points.intersect(value.domain()), value
    return points, _whole(value) if value.n_piece() == 1 else value


def _whole(value: isl.PwAff) -> isl.PwAff:
    """The function of the one piece, wherever it is asked."""
    return isl.PwAff.from_aff(_piece(value))


def _piece(value: isl.PwAff) -> isl.Aff:
    """The only one."""
    pieces: list[isl.Aff] = []
    value.foreach_piece(lambda _, piece: pieces.append(piece))
    (piece,) = pieces
    return piece


def assemble(branches: Items[Branch], context: isl.Context) -> Execution:
    """One union map from the time vectors of all branches."""
    levels = _levels([branch.time for branch in branches])
    names = [branch.instances.get_tuple_name(isl.dim_type.out) for branch in branches]
    times = [_times(branch, branch.time, levels) for branch in branches]
    functions = [
        # With several places, the function of one is not that of the others.  Loops are simple enough.
        own.gist_domain(branch.runs) if branch.is_identity and names.count(name) == 1 else own
        for branch, name, own in zip(branches, names, times, strict=True)
    ]
    misuse = tuple(points for branch in branches for points in branch.misuse)
    dimensions = tuple(sort for level in levels for sort in level)
    places: tuple[ThreadLeaf, ...] = ()
    if Concurrency.THREADS in dimensions:
        every = zip(branches, times, functions, strict=True)
        places = tuple(_thread_leaf(branch, own, function, levels) for branch, own, function in every)
    return Execution(
        _joined(times, context),
        _joined(functions, context),
        dimensions,
        len(branches),
        running=_union((branch.runs for branch in branches), context),
        # Every instance stands for itself at the one place of its statement.
        once=all(branch.is_identity for branch in branches) and len(set(names)) == len(names),
        scopes=_scopes(branches),
        rounds=_scopes(branches, Sharing.BLOCK) if places else {},
        scoped=_scoped(branches, context),
        misuse=misuse,
        places=places,
    )


def _joined(maps: Iterable[isl.Map], context: isl.Context) -> isl.UnionMap:
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    for own in maps:
        union = union.union(isl.UnionMap.from_map(own))
    return union


def _union(sets: Iterable[isl.Set], context: isl.Context) -> isl.UnionSet:
    union = isl.UnionSet.empty(isl.Space.params_alloc(context, 0))
    for own in sets:
        union = union.union(isl.UnionSet.from_set(own))
    # Unrolled tiles leave one set for every remainder; subtracting them one by one takes exponential time.
    return union.coalesce()


def _thread_leaf(branch: Branch, times: isl.Map, functions: isl.Map, levels: _Levels) -> ThreadLeaf:
    own = (*branch.barriers, *(None for _ in range(len(levels) - len(branch.barriers))))
    barriers: list[frozenset[int]] = []
    after: list[bool] = []
    before: list[bool] = []
    for level, sorts in enumerate(levels):
        here, deeper = own[level], [step for step in own[level + 1 :] if step is not None]
        for _ in sorts:
            barriers.append(frozenset() if here is None else here[1])
            after.append(any(number > position for position, numbers in deeper for number in numbers))
            before.append(any(number < position for position, numbers in deeper for number in numbers))
    name = branch.instances.get_tuple_name(isl.dim_type.out)
    threads = tuple(level for level, (sort, _) in enumerate(branch.time) if sort is Concurrency.THREADS)
    return ThreadLeaf(name, times, functions, threads, tuple(barriers), tuple(after), tuple(before))


def _scopes(branches: Items[Branch], sharing: Sharing | None = None) -> Mapping[str, isl.UnionMap]:
    """For every buffer, the times of the allocations around the instances.

    ``sharing``: as if all were shared so, and only for those that are not.
    """
    scopes: dict[str, isl.UnionMap] = {}
    every = [[scope for scope in branch.scopes if scope.sharing is not sharing] for branch in branches]
    levels = _levels(
        [
            _allocation_time(branch.time, scope.depth, sharing or scope.sharing)
            for branch, own in zip(branches, every, strict=True)
            for scope in own
        ]
    )
    for branch, own in zip(branches, every, strict=True):
        known: dict[tuple[int, Sharing], isl.UnionMap] = {}
        for scope in own:
            place = (scope.depth, sharing or scope.sharing)
            if place not in known:
                times = _times(branch, _allocation_time(branch.time, *place), levels)
                known[place] = isl.UnionMap.from_map(times)
            others = scopes.get(scope.buffer)
            scopes[scope.buffer] = known[place] if others is None else others.union(known[place])
    return {buffer: times.coalesce() for buffer, times in scopes.items()}


def _scoped(branches: Items[Branch], context: isl.Context) -> Mapping[str, isl.UnionSet]:
    """For every buffer, the instances inside of its allocations."""
    inside: dict[str, list[isl.Set]] = {}
    for branch in branches:
        for scope in branch.scopes:
            inside.setdefault(scope.buffer, []).append(branch.runs)
    return {buffer: _union(sets, context) for buffer, sets in inside.items()}


def _levels(times: Items[Time]) -> _Levels:
    depth = max((len(time) for time in times), default=0)
    present = [{time[level][0] for time in times if level < len(time)} for level in range(depth)]
    return tuple(tuple(sort for sort in Concurrency if sort in sorts) for sorts in present)


def _times(branch: Branch, time: Time, levels: _Levels) -> isl.Map:
    """``{ statement instance -> time }`` of a branch, padded with zeros to all levels."""
    points = branch.instances.domain()
    zero = isl.PwAff.from_aff(isl.Aff.zero_on_domain(isl.LocalSpace.from_space(points.get_space())))
    values: list[isl.PwAff] = []
    for level, sorts in enumerate(levels):
        own, value = time[level] if level < len(time) else (None, zero)
        values += [value if sort is own else zero for sort in sorts]
    times = vector_map(values, points)
    return times if branch.is_identity else branch.instances.reverse().apply_range(times)


def vector_map(values: Items[isl.PwAff], points: isl.Set) -> isl.Map:
    """``{ point -> [values] }``."""
    function = _multi_function(values, points.get_space())
    if isinstance(function, isl.MultiAff):
        return isl.Map.from_multi_aff(function).intersect_domain(points)
    return isl.Map.from_multi_pw_aff(function).intersect_domain(points)


def points_with(values: Items[isl.PwAff], found: isl.Set, space: isl.Space) -> isl.Set:
    """The points of the space at which the values are found in a set."""
    function = _multi_function(values, space)
    if isinstance(function, isl.MultiAff):
        return found.preimage_multi_aff(function)
    return found.preimage_multi_pw_aff(function)


def _multi_function(values: Items[isl.PwAff], space: isl.Space) -> isl.MultiAff | isl.MultiPwAff:
    """The functions as one; isl takes a third of the time where it need not look for pieces."""
    space = space.from_domain().add_dims(isl.dim_type.out, len(values))
    if all(_is_plain(value) for value in values):
        plain = isl.AffList.alloc(space.get_ctx(), len(values))
        for value in values:
            plain = plain.add(_piece(value))
        return isl.MultiAff.from_aff_list(space, plain)
    every = isl.PwAffList.alloc(space.get_ctx(), len(values))
    for value in values:
        every = every.add(value)
    return isl.MultiPwAff.from_pw_aff_list(space, every)


def _is_plain(value: isl.PwAff) -> bool:
    """Whether it is one piece without a domain of its own."""
    return value.n_piece() == 1 and bool(value.domain().plain_is_universe())


def _allocation_time(time: Time, depth: int, sharing: Sharing) -> Time:
    """The time of an allocation: threads have one array each, or those along x, or all of a block one together.

    Wherever the loops over them are: every block and every thread comes to the allocation.
    """
    inside = (step for step in time[depth:] if step[0] in (Concurrency.BLOCKS, Concurrency.THREADS))
    above = (*time[:depth], *inside)
    threads = [position for position, (sort, _) in enumerate(above) if sort is Concurrency.THREADS]
    match sharing:
        case Sharing.THREAD:
            together = []
        case Sharing.LANES:
            together = threads[-1:]
        case Sharing.BLOCK:
            together = threads
        case _:
            assert_never(sharing)
    return tuple(step for position, step in enumerate(above) if position not in together)
