"""Ways through a tree to its statements, and the execution that they make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from itertools import combinations
from typing import Final, assert_never

import islpy as isl

from tc.language.isl.pieces import pieces_of
from tc.polyhedral.analysis.functions import Function
from tc.polyhedral.analysis.iterations import Inverse
from tc.polyhedral.analysis.times import Times
from tc.polyhedral.execution.execution import Concurrency, Execution, ThreadLeaf
from tc.polyhedral.execution.scopes import Levels, Scope, Scopes, Time, Way, levels_of
from tc.polyhedral.ir.loops import LoopKind, Sharing


def concurrency_of(kind: LoopKind) -> Concurrency:
    """What two different iterations of a loop of this kind are to each other."""
    match kind:
        case LoopKind.SEQUENTIAL | LoopKind.REGISTER | LoopKind.UNROLLED | LoopKind.FULLY_UNROLLED | LoopKind.LANES:
            return Concurrency.ORDERED
        case LoopKind.LAUNCH:  # a kernel begins when all blocks of those before it have ended
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


@dataclass(frozen=True)
class Branch:
    """The way to one leaf: ``points`` of some space, the statement instance of each, and its time.

    ``is_identity``: the points are the instances.  ``barriers``: for every level of time that numbers a sequence, the
    own position and those of barriers.  ``scopes``: the allocations around it.  ``inverse``: the point of each
    instance, where that is known.  ``kernel``: the levels of time outside of its kernel, in which kernels differ.
    ``by_warp``: other lanes of the warp read what it reads.
    """

    instances: isl.Map
    time: Time
    misuse: tuple[isl.Set, ...] = ()
    locals: tuple[isl.PwAff, ...] = ()
    scopes: tuple[Scope, ...] = ()
    barriers: tuple[tuple[int, frozenset[int]] | None, ...] = ()
    is_identity: bool = False
    inverse: Inverse | None = None
    kernel: int = 0
    by_warp: bool = False

    @property
    def statement(self) -> str:
        """Its name."""
        return str(self.instances.get_tuple_name(isl.dim_type.out))

    @property
    def runs(self) -> isl.Set:
        """The instances, which all have a time.

        They are not read off the times: to say what has a time, isl would solve an integer problem for every
        division in it.
        """
        if self.inverse is not None:
            return self.inverse.runs
        return self.instances.domain() if self.is_identity else self.instances.range()

    @property
    def runs_once(self) -> bool:
        """Whether no instance is that of two points."""
        return self.is_identity or self.inverse is not None or bool(self.instances.is_injective())


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
    pieces = [piece for _, piece in pieces_of(value)]
    (piece,) = pieces
    return piece


def assemble(branches: Items[Branch], context: isl.Context) -> Execution:
    """The execution that all branches make up: times of one length."""
    levels = levels_of([branch.time for branch in branches])
    names = [branch.statement for branch in branches]
    times = [_times(branch, levels, alone=names.count(name) == 1) for branch, name in zip(branches, names, strict=True)]
    ways = [
        Way(name, branch.time, branch.scopes, own) for branch, name, own in zip(branches, names, times, strict=True)
    ]
    misuse = tuple(points for branch in branches for points in branch.misuse)
    dimensions = tuple(sort for level in levels for sort in level)
    places: tuple[ThreadLeaf, ...] = ()
    if Concurrency.THREADS in dimensions:
        places = tuple(_thread_leaf(branch, own, levels) for branch, own in zip(branches, times, strict=True))
    return Execution(
        {name: tuple(own for other, own in zip(names, times, strict=True) if other == name) for name in names},
        dimensions,
        len(branches),
        running=_union((branch.runs for branch in branches), context),
        once=_run_once(branches),
        scopes=Scopes(ways, levels).arrays,
        rounds=Scopes(ways, levels, Sharing.BLOCK).arrays,
        scoped=_scoped(branches, context),
        misuse=misuse,
        places=places,
    )


# Places of one statement of which it is asked, two by two, whether they have an instance in common.
_FEW: Final = 8


def _run_once(branches: Items[Branch]) -> bool:
    """Whether no instance is that of two points, or of two branches; False also where that would take long to see."""
    runs: dict[str, list[isl.Set]] = {}
    for branch in branches:
        runs.setdefault(branch.statement, []).append(branch.runs)
    if any(len(places) > _FEW for places in runs.values()) or not all(branch.runs_once for branch in branches):
        return False
    return all(one.is_disjoint(other) for places in runs.values() for one, other in combinations(places, 2))


def _union(sets: Iterable[isl.Set], context: isl.Context) -> isl.UnionSet:
    union = isl.UnionSet.empty(isl.Space.params_alloc(context, 0))
    for own in sets:
        union = union.union(isl.UnionSet.from_set(own))
    # Unrolled tiles leave one set for every remainder; subtracting them one by one takes exponential time.
    return union.coalesce()


def _thread_leaf(branch: Branch, times: Times, levels: Levels) -> ThreadLeaf:
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
    threads = tuple(level for level, (sort, _) in enumerate(branch.time) if sort is Concurrency.THREADS)
    kernel = sum(map(len, levels[: branch.kernel]))
    around = (tuple(barriers), tuple(after), tuple(before))
    return ThreadLeaf(branch.statement, times, threads, kernel, *around, by_warp=branch.by_warp)


def _scoped(branches: Items[Branch], context: isl.Context) -> Mapping[str, isl.UnionSet]:
    """For every buffer, the instances inside of its allocations."""
    inside: dict[str, list[isl.Set]] = {}
    for branch in branches:
        for scope in branch.scopes:
            inside.setdefault(scope.buffer, []).append(branch.runs)
    return {buffer: _union(sets, context) for buffer, sets in inside.items()}


def _times(branch: Branch, levels: Levels, *, alone: bool) -> Times:
    """The times of a branch, padded with zeros to all levels."""
    points = branch.instances.domain()
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(points.get_space()))
    values: list[Function] = []
    for level, sorts in enumerate(levels):
        own, value = branch.time[level] if level < len(branch.time) else (None, zero)
        values += [value if sort is own else zero for sort in sorts]
    if branch.inverse is not None:
        iteration = branch.inverse.iteration
        return Times(branch.runs, [value.pullback_multi_aff(iteration) for value in values], None, alone=alone)
    return Times(points, values, None if branch.is_identity else branch.instances, alone=alone)
