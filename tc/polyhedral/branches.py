"""Ways through a tree to its statements, and the execution that they make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cache
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


# Of points: without pieces where it is the same one for all of them, of which isl makes relations in half the time.
Function: TypeAlias = isl.Aff | isl.PwAff

Time: TypeAlias = tuple[tuple[Concurrency, Function], ...]


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
    locals: tuple[isl.PwAff, ...] = ()
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

    @property
    def runs_once(self) -> bool:
        """Whether no instance is that of two points."""
        return self.is_identity or bool(self.instances.is_injective())


def defined(points: isl.Set, time: Time) -> tuple[isl.Set, Time]:
    """Those of the points at which the whole time is defined, and the time as plain functions where it is one."""
    plain: list[tuple[Concurrency, Function]] = []
    for sort, value in time:
        points, own = simplified(points, value)
        plain.append((sort, own))
    return points, tuple(plain)


def simplified(points: isl.Set, value: Function) -> tuple[isl.Set, Function]:
    """Those of the points at which the function is defined, and it without a domain of its own where that is possible.

    Whatever domains of pieces say again is said again in every proof.
    """
    if isinstance(value, isl.Aff):
        return points, value
    if value.isa_aff():
        return points, value.as_aff()
    if not points.is_subset(value.domain()):
        return points.intersect(value.domain()), value
    return points, _piece(value) if value.n_piece() == 1 else value


def _piece(value: isl.PwAff) -> isl.Aff:
    """The only one, wherever it is asked."""
    pieces: list[isl.Aff] = []
    value.foreach_piece(lambda _, piece: pieces.append(piece))
    (piece,) = pieces
    return piece


def assemble(branches: Items[Branch], context: isl.Context) -> Execution:
    """One union map from the time vectors of all branches."""
    levels = _levels([branch.time for branch in branches])
    names = [branch.instances.get_tuple_name(isl.dim_type.out) for branch in branches]
    every = [_times(branch, levels) for branch in branches]
    times = [own for own, _ in every]
    # With several places, the function of one is not that of the others.
    functions = [own if names.count(name) > 1 else function for name, (own, function) in zip(names, every, strict=True)]
    misuse = tuple(points for branch in branches for points in branch.misuse)
    dimensions = tuple(sort for level in levels for sort in level)
    places: tuple[ThreadLeaf, ...] = ()
    if Concurrency.THREADS in dimensions:
        places = tuple(
            _thread_leaf(branch, own, function, levels)
            for branch, own, function in zip(branches, times, functions, strict=True)
        )
    return Execution(
        _joined(times, context),
        _joined(functions, context),
        dimensions,
        len(branches),
        running=_union((branch.runs for branch in branches), context),
        once=len(set(names)) == len(names) and all(branch.runs_once for branch in branches),
        scopes=_scopes(branches, functions, levels),
        rounds=cache(lambda: _scopes(branches, functions, levels, Sharing.BLOCK)),
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


def _scopes(
    branches: Items[Branch], times: Items[isl.Map], levels: _Levels, sharing: Sharing | None = None
) -> Mapping[str, isl.UnionMap]:
    """For every buffer, the times of the allocations around the instances, taken out of their own ``times``.

    ``sharing``: as if all were shared so, and only for those that are not.
    """
    every = [[scope for scope in branch.scopes if scope.sharing is not sharing] for branch in branches]
    positions = [
        {scope: _allocation_levels(branch.time, scope.depth, sharing or scope.sharing) for scope in own}
        for branch, own in zip(branches, every, strict=True)
    ]
    common = _levels(
        [
            tuple(branch.time[level] for level in at)
            for branch, own in zip(branches, positions, strict=True)
            for at in own.values()
        ]
    )
    scopes: dict[str, isl.UnionMap] = {}
    for branch, own, whole in zip(branches, positions, times, strict=True):
        known: dict[tuple[int, ...], isl.UnionMap] = {}
        for scope, at in own.items():
            if at not in known:
                known[at] = isl.UnionMap.from_map(_along_levels(whole, branch.time, at, levels, common))
            others = scopes.get(scope.buffer)
            scopes[scope.buffer] = known[at] if others is None else others.union(known[at])
    return {buffer: times.coalesce() for buffer, times in scopes.items()}


def _along_levels(times: isl.Map, time: Time, at: tuple[int, ...], levels: _Levels, common: _Levels) -> isl.Map:
    """The times at these of the levels only, padded with zeros to what all that are compared have in ``common``."""
    kept: list[int] = []
    position = 0
    for level, sorts in enumerate(levels):
        if level in at:
            kept.append(position + sorts.index(time[level][0]))
        position += len(sorts)
    times = along(times, tuple(kept))
    for number, sorts in enumerate(common):
        own = time[at[number]][0] if number < len(at) else None
        for sort in sorts:
            if sort is not own:
                end = sum(len(before) for before in common[:number]) + sorts.index(sort)
                times = times.insert_dims(isl.dim_type.out, end, 1)
                times = times.fix_val(isl.dim_type.out, end, isl.Val.zero(times.get_ctx()))
    return times


def along(times: isl.Map, dimensions: tuple[int, ...]) -> isl.Map:
    """The times in these dimensions only, which are in order."""
    end = times.dim(isl.dim_type.out)
    for position in (*reversed(dimensions), -1):
        if end - position > 1:
            times = times.project_out(isl.dim_type.out, position + 1, end - position - 1)
        end = position
    return times


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


def _times(branch: Branch, levels: _Levels) -> tuple[isl.Map, isl.Map]:
    """``{ statement instance -> time }`` of a branch, padded with zeros to all levels; and the same in fewer words.

    Where it is said in fewer, it may be said of instances that do not run.
    """
    points = branch.instances.domain()
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(points.get_space()))
    values: list[Function] = []
    for level, sorts in enumerate(levels):
        own, value = branch.time[level] if level < len(branch.time) else (None, zero)
        values += [value if sort is own else zero for sort in sorts]
    anywhere = function_map(values, points.get_space())
    times = anywhere.intersect_domain(points)
    if branch.is_identity:
        plain = all(isinstance(value, isl.Aff) for value in values)
        return times, anywhere if plain else anywhere.gist_domain(points)
    times = branch.instances.reverse().apply_range(times)  # loops are simple enough
    return times, times


def vector_map(values: Items[Function], points: isl.Set) -> isl.Map:
    """``{ point -> [values] }``."""
    return function_map(values, points.get_space()).intersect_domain(points)


def function_map(values: Items[Function], space: isl.Space) -> isl.Map:
    """``{ point -> [values] }``, wherever in the space the values are defined."""
    function = _multi_function(values, space)
    if isinstance(function, isl.MultiAff):
        return isl.Map.from_multi_aff(function)
    return isl.Map.from_multi_pw_aff(function)


def points_with(values: Items[Function], found: isl.Set, space: isl.Space) -> isl.Set:
    """The points of the space at which the values are found in a set."""
    function = _multi_function(values, space)
    if isinstance(function, isl.MultiAff):
        return found.preimage_multi_aff(function)
    return found.preimage_multi_pw_aff(function)


def _multi_function(values: Items[Function], space: isl.Space) -> isl.MultiAff | isl.MultiPwAff:
    """The functions as one; isl takes a third of the time where it need not look for pieces."""
    space = space.from_domain().add_dims(isl.dim_type.out, len(values))
    every = [value.as_aff() if isinstance(value, isl.PwAff) and value.isa_aff() else value for value in values]
    plain = isl.AffList.alloc(space.get_ctx(), len(values))
    for value in every:
        if not isinstance(value, isl.Aff):
            break
        plain = plain.add(value)
    else:
        return isl.MultiAff.from_aff_list(space, plain)
    pieces = isl.PwAffList.alloc(space.get_ctx(), len(values))
    for value in every:
        pieces = pieces.add(isl.PwAff.from_aff(value) if isinstance(value, isl.Aff) else value)
    return isl.MultiPwAff.from_pw_aff_list(space, pieces)


def _allocation_levels(time: Time, depth: int, sharing: Sharing) -> tuple[int, ...]:
    """The levels of an allocation's own time: threads have one array each, or those along x, or all of a block one.

    Wherever the loops over them are: every block and every thread comes to the allocation.
    """
    on_grid = (Concurrency.BLOCKS, Concurrency.THREADS)
    around = [level for level, (sort, _) in enumerate(time) if level < depth or sort in on_grid]
    threads = [level for level in around if time[level][0] is Concurrency.THREADS]
    match sharing:
        case Sharing.THREAD:
            together = []
        case Sharing.LANES:
            together = threads[-1:]
        case Sharing.BLOCK:
            together = threads
        case _:
            assert_never(sharing)
    return tuple(level for level in around if level not in together)
