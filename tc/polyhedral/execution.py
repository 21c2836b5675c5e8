"""When and where every instance runs: what a schedule tree or a loop tree comes down to, for the proofs.

Time is a vector.  Its dimensions alternate between ordered ones and unordered ones: positions in sequences and
iterations of sequential loops are ordered; iterations of parallel and vector loops are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.affine import Frame
from tc.language.specialization import Sizes
from tc.polyhedral.barriers import Step, WarpPlace, barriers_along, is_met_by_all, warp_place
from tc.polyhedral.index_functions import fit_for_c, index_condition, index_function
from tc.polyhedral.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Sharing,
)
from tc.polyhedral.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence, statement_names


class Concurrency(Enum):
    """What two different values of a time dimension say about two instances that agree on all outer ones."""

    ORDERED = "ordered"  # the smaller one runs first
    LANES = "lanes"  # partial results of one reduction may be kept apart
    BLOCKS = "blocks"  # they run in different blocks, and may do so at the same time
    THREADS = "threads"  # they run in different threads of a block, which only barriers order
    UNORDERED = "unordered"  # they may run at the same time


@dataclass(frozen=True)
class ThreadLeaf:
    """A place where a statement stands, as the check of barriers sees it.

    ``times``: ``{ statement instance -> time }`` of the instances there.  For every dimension of time, ``barriers``
    are the positions of barriers in the sequence that it numbers; ``after`` and ``before`` say whether, deeper inside,
    one iteration runs a barrier after the statement, or before it.
    """

    statement: str
    times: isl.Map
    barriers: tuple[frozenset[int], ...]
    after: tuple[bool, ...]
    before: tuple[bool, ...]


@dataclass(frozen=True)
class LocalSubscripts:
    """What a place in loops says of buffers: ``{ loop iterators -> statement instance }``, and ``-> [subscripts] }``.

    ``subscripts`` is None where the statement has none there.  ``warp``: where the loops over threads and lanes are.
    """

    instances: isl.Map
    subscripts: isl.Map | None
    warp: WarpPlace


@dataclass(frozen=True)
class Execution:
    """``{ statement instance -> time }``, padded with zeros to one length, and what each dimension means.

    ``leaves``: the number of places where a statement stands.  ``running``: the instances that have a time; ``once``:
    none can have two, as it is made.  ``scopes``: for every buffer, ``{ instance -> time of the allocation around it
    }``: instances with one value see one array; ``scoped``: these instances.  ``misuse``: loop iterations that divide
    by a form that C gets wrong there (see ``IndexOperator``).  ``locals``: of every place in loops where a statement
    stands; None for a schedule tree, which does not say.  ``allocated``: the buffers as the loops bring them.
    ``places``: of programs that run on threads.  ``divergent``: barriers that some thread of a block may miss.
    """

    times: isl.UnionMap
    dimensions: tuple[Concurrency, ...]
    leaves: int
    running: isl.UnionSet
    once: bool
    scopes: Mapping[str, isl.UnionMap]
    scoped: Mapping[str, isl.UnionSet]
    misuse: tuple[isl.Set, ...] = ()
    locals: tuple[LocalSubscripts, ...] | None = None
    allocated: tuple[Buffer, ...] = ()
    places: tuple[ThreadLeaf, ...] = ()
    divergent: tuple[str, ...] = ()

    def times_of(self, statement: str) -> isl.Map | None:
        """``{ instance of the statement -> time }``; None where it never runs."""
        found: list[isl.Map] = []
        self.times.foreach_map(found.append)
        return next((times for times in found if times.get_tuple_name(isl.dim_type.in_) == statement), None)


# The sorts of dimensions that each level of nesting takes: one for every sort that some branch has there, so that
# branches need not agree.
_Levels: TypeAlias = tuple[tuple[Concurrency, ...], ...]


def _concurrency(kind: LoopKind) -> Concurrency:
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


_Time: TypeAlias = tuple[tuple[Concurrency, isl.PwAff], ...]


@dataclass(frozen=True)
class _Branch:
    """The way to one leaf: ``points`` of some space, the statement instance of each, and its time.

    ``is_identity``: the points are the instances.  ``barriers``: for every level of time that numbers a sequence, the
    own position and those of barriers.
    """

    instances: isl.Map
    time: _Time
    misuse: tuple[isl.Set, ...] = ()
    locals: isl.Map | None = None
    scopes: tuple[tuple[str, _Time], ...] = ()
    barriers: tuple[tuple[int, frozenset[int]] | None, ...] = ()
    is_identity: bool = False

    @property
    def runs(self) -> isl.Set:
        """The instances, which all have a time.

        They are not read off the times: to say what has a time, isl would solve an integer problem for every
        division in it.
        """
        return self.instances.domain() if self.is_identity else self.instances.range()


def _defined(points: isl.Set, time: Iterable[tuple[Concurrency, isl.PwAff]]) -> tuple[isl.Set, _Time]:
    """Those of the points at which the whole time is defined, and the time as plain functions where it is one."""
    plain: list[tuple[Concurrency, isl.PwAff]] = []
    for sort, value in time:
        total = points.is_subset(value.domain())
        if not total:
            points = points.intersect(value.domain())
        # Whatever domains of pieces say again is said again in every proof.
        plain.append((sort, _whole(value) if total and value.n_piece() == 1 else value))
    return points, tuple(plain)


def _whole(value: isl.PwAff) -> isl.PwAff:
    """The function of the one piece, wherever it is asked."""
    pieces: list[isl.Aff] = []
    value.foreach_piece(lambda _, piece: pieces.append(piece))
    (piece,) = pieces
    return isl.PwAff.from_aff(piece)


def _assemble(branches: Items[_Branch], context: isl.Context) -> Execution:
    """One union map from the time vectors of all branches."""
    levels = _levels([branch.time for branch in branches])
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    times = [_times(branch, branch.time, levels) for branch in branches]
    for own in times:
        union = union.union(isl.UnionMap.from_map(own))
    misuse = tuple(points for branch in branches for points in branch.misuse)
    dimensions = tuple(sort for level in levels for sort in level)
    places: tuple[ThreadLeaf, ...] = ()
    if Concurrency.THREADS in dimensions:
        places = tuple(_thread_leaf(branch, own, levels) for branch, own in zip(branches, times, strict=True))
    names = [branch.instances.get_tuple_name(isl.dim_type.out) for branch in branches]
    return Execution(
        union,
        dimensions,
        len(branches),
        running=_union((branch.runs for branch in branches), context),
        # Every instance stands for itself at the one place of its statement.
        once=all(branch.is_identity for branch in branches) and len(set(names)) == len(names),
        scopes=_scopes(branches),
        scoped=_scoped(branches, context),
        misuse=misuse,
        places=places,
    )


def _union(sets: Iterable[isl.Set], context: isl.Context) -> isl.UnionSet:
    union = isl.UnionSet.empty(isl.Space.params_alloc(context, 0))
    for own in sets:
        union = union.union(isl.UnionSet.from_set(own))
    # Unrolled tiles leave one set for every remainder; subtracting them one by one takes exponential time.
    return union.coalesce()


def _thread_leaf(branch: _Branch, times: isl.Map, levels: _Levels) -> ThreadLeaf:
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
    return ThreadLeaf(name, times, tuple(barriers), tuple(after), tuple(before))


def _scopes(branches: Items[_Branch]) -> Mapping[str, isl.UnionMap]:
    """For every buffer, the times of the allocations around the instances."""
    levels = _levels([time for branch in branches for _, time in branch.scopes])
    scopes: dict[str, isl.UnionMap] = {}
    for branch in branches:
        for buffer, time in branch.scopes:
            times = isl.UnionMap.from_map(_times(branch, time, levels))
            scopes[buffer] = times if buffer not in scopes else scopes[buffer].union(times)
    return {buffer: times.coalesce() for buffer, times in scopes.items()}


def _scoped(branches: Items[_Branch], context: isl.Context) -> Mapping[str, isl.UnionSet]:
    """For every buffer, the instances inside of its allocations."""
    inside: dict[str, list[isl.Set]] = {}
    for branch in branches:
        for buffer, _ in branch.scopes:
            inside.setdefault(buffer, []).append(branch.runs)
    return {buffer: _union(sets, context) for buffer, sets in inside.items()}


def _levels(times: Items[_Time]) -> _Levels:
    depth = max((len(time) for time in times), default=0)
    present = [{time[level][0] for time in times if level < len(time)} for level in range(depth)]
    return tuple(tuple(sort for sort in Concurrency if sort in sorts) for sorts in present)


def _times(branch: _Branch, time: _Time, levels: _Levels) -> isl.Map:
    """``{ statement instance -> time }`` of a branch, padded with zeros to all levels."""
    points = branch.instances.domain()
    zero = isl.PwAff.from_aff(isl.Aff.zero_on_domain(isl.LocalSpace.from_space(points.get_space())))
    values: list[isl.PwAff] = []
    for level, sorts in enumerate(levels):
        own, value = time[level] if level < len(time) else (None, zero)
        values += [value if sort is own else zero for sort in sorts]
    return branch.instances.reverse().apply_range(_vector(values, points))


def _vector(values: Items[isl.PwAff], points: isl.Set) -> isl.Map:
    """``{ point -> [values] }``."""
    every = isl.PwAffList.alloc(points.get_ctx(), len(values))
    for value in values:
        every = every.add(value)
    space = points.get_space().from_domain().add_dims(isl.dim_type.out, len(values))
    return isl.Map.from_multi_pw_aff(isl.MultiPwAff.from_pw_aff_list(space, every)).intersect_domain(points)


# --- of a schedule tree --------------------------------------------------------------------------------------


def tree_execution(tree: ScheduleTree, context: isl.Context, barriers: frozenset[str] = frozenset()) -> Execution:
    """The execution that the tree asks for; ``barriers``: the statements that are."""
    branches: list[_Branch] = []
    for reached, path, scopes in _tree_paths(tree.root, tree.domain, (), (), barriers):
        pieces: list[isl.Set] = []
        reached.foreach_set(pieces.append)
        branches += [_tree_branch(instances, path, scopes) for instances in pieces]
    return _assemble(branches, context)


@dataclass(frozen=True)
class _Position:
    """A place in a sequence, and the places of barriers in it."""

    number: int
    barriers: frozenset[int]


_TreePath: TypeAlias = tuple[tuple[Concurrency, isl.UnionPwAff | _Position], ...]
# Buffers around a node, how much of the path stands above each, and which threads share it.
_TreeScopes: TypeAlias = tuple[tuple[str, int, Sharing], ...]


def _tree_paths(
    node: Node, domain: isl.UnionSet, above: _TreePath, scopes: _TreeScopes, barriers: frozenset[str]
) -> Iterator[tuple[isl.UnionSet, _TreePath, _TreeScopes]]:
    """For every leaf: the instances that reach it, and the time dimensions and buffers on the way."""
    match node:
        case Leaf():
            yield domain, above, scopes
        case Band(members, _, child):
            own = tuple((_concurrency(m.kind), m.function) for m in members)
            yield from _tree_paths(child, domain, (*above, *own), scopes, barriers)
        case Sequence(filters):
            waiting = frozenset(n for n, f in enumerate(filters) if set(statement_names(f.domain)) <= barriers)
            for position, branch in enumerate(filters):
                inside = domain.intersect(branch.domain)
                step = (Concurrency.ORDERED, _Position(position, waiting))
                yield from _tree_paths(branch.child, inside, (*above, step), scopes, barriers)
        case Extension(buffer, instances, child, sharing, functions):
            extended = above if instances.is_empty() else _extended(above, instances, functions)
            inner = (*scopes, (buffer, len(above), sharing))
            yield from _tree_paths(child, domain.union(instances.range()), extended, inner, barriers)
        case _:
            assert_never(node)


def _extended(above: _TreePath, instances: isl.UnionMap, functions: Items[isl.PwAff]) -> _TreePath:
    """The path with the times of the added instances: the values of the members above that they belong to."""
    values = _values_of(instances, functions)
    assert len(values) == sum(not isinstance(function, _Position) for _, function in above)
    path: list[tuple[Concurrency, isl.UnionPwAff | _Position]] = []
    for sort, function in above:
        own = function if isinstance(function, _Position) else function.union_add(values.pop(0))
        path.append((sort, own))
    return tuple(path)


def _values_of(instances: isl.UnionMap, functions: Items[isl.PwAff]) -> list[isl.UnionPwAff]:
    if functions:
        return list(map(isl.UnionPwAff.from_pw_aff, functions))
    belongs = isl.MultiUnionPwAff.from_union_map(instances.reverse())
    return [belongs.get_union_pw_aff(n) for n in range(belongs.dim(isl.dim_type.out))]


def _tree_branch(instances: isl.Set, path: _TreePath, scopes: _TreeScopes) -> _Branch:
    own = isl.UnionSet.from_set(isl.Set.universe(instances.get_space()))
    local = isl.LocalSpace.from_space(instances.get_space())
    time: list[tuple[Concurrency, isl.PwAff]] = []
    positions: list[tuple[int, frozenset[int]] | None] = []
    for sort, function in path:
        if isinstance(function, _Position):
            value = isl.Val.int_from_si(instances.get_ctx(), function.number)
            time.append((sort, isl.PwAff.from_aff(isl.Aff.val_on_domain(local, value))))
            positions.append((function.number, function.barriers))
        else:
            found: list[isl.PwAff] = []
            function.intersect_domain(own).foreach_pw_aff(found.append)
            time.append((sort, found[0]))
            positions.append(None)
    points, plain = _defined(instances, time)
    identity = isl.Map.identity(instances.get_space().map_from_set()).intersect_domain(points)
    around = tuple((buffer, _scope(plain[:length], sharing)) for buffer, length, sharing in scopes)
    return _Branch(identity, plain, scopes=around, barriers=tuple(positions), is_identity=True)


def _scope(time: _Time, sharing: Sharing) -> _Time:
    """The time of an allocation: threads have one array each, or those along x, or all of a block one together."""
    threads = [position for position, (sort, _) in enumerate(time) if sort is Concurrency.THREADS]
    match sharing:
        case Sharing.THREAD:
            together = []
        case Sharing.LANES:
            together = threads[-1:]
        case Sharing.BLOCK:
            together = threads
        case _:
            assert_never(sharing)
    return tuple(step for position, step in enumerate(time) if position not in together)


# --- of a loop tree ------------------------------------------------------------------------------------------


def loop_execution(
    root: LoopTree,
    dimensions: Mapping[str, int],
    context: isl.Context,
    barriers: frozenset[str] = frozenset(),
    sizes: Sizes = (),
) -> Execution:
    """The execution of the loops as they will be printed, read off the loop tree alone.

    ``dimensions``: of the domain of every statement; further arguments of an instance are local subscripts.
    ``barriers``: the statements that are.  ``sizes``: those that the loops are run for.
    """
    paths = list(loop_paths(root, ()))
    branches = [
        replace(
            _loop_branch(instance, path, dimensions[instance.statement], frame_of_path(path, context, sizes)),
            barriers=barriers_along(root, path, barriers),
        )
        for instance, path in paths
    ]
    allocated = tuple(step.buffer for _, path in paths for step in path if isinstance(step, Allocation))
    return replace(
        _assemble(branches, context),
        locals=tuple(
            LocalSubscripts(branch.instances, branch.locals, warp_place(root, path))
            for branch, (_, path) in zip(branches, paths, strict=True)
        ),
        allocated=allocated,
        divergent=tuple(
            instance.statement
            for (instance, path), branch in zip(paths, branches, strict=True)
            if instance.statement in barriers and not is_met_by_all(root, path, branch.instances.domain())
        ),
    )


def loop_paths(tree: LoopTree, path: tuple[Step, ...]) -> Iterator[tuple[Instance, tuple[Step, ...]]]:
    match tree:
        case Instance():
            yield tree, path
        case Block(children):
            for position, child in enumerate(children):
                yield from loop_paths(child, (*path, position))
        case Guard(condition, then, otherwise):
            yield from loop_paths(then, (*path, (condition, True)))
            if otherwise is not None:
                yield from loop_paths(otherwise, (*path, (condition, False)))
        case Loop() | Allocation():
            yield from loop_paths(tree.body, (*path, tree))
        case _:
            assert_never(tree)


def frame_of_path(path: tuple[Step, ...], context: isl.Context, sizes: Sizes) -> Frame:
    """The frame whose iterators are those of the loops on the path."""
    return Frame(context, "loops", tuple(step.iterator for step in path if isinstance(step, Loop)), sizes=sizes)


@dataclass(frozen=True)
class Reached:
    """What is known at the end of a path: the points of its loops, their time, and what went on before."""

    points: isl.Set
    time: _Time
    misuse: tuple[isl.Set, ...]
    scopes: tuple[tuple[str, _Time], ...]


def follow_path(path: tuple[Step, ...], frame: Frame) -> Reached:
    """Walk from the root to a statement."""
    points = frame.possible()
    time: list[tuple[Concurrency, isl.PwAff]] = []
    misuse: list[isl.Set] = []
    scopes: list[tuple[str, _Time]] = []
    for step in path:
        match step:
            case int():
                time.append((Concurrency.ORDERED, frame.constant(step)))
            case Allocation():
                scopes.append((step.buffer.name, _scope(tuple(time), step.buffer.sharing)))
            case Loop():
                misuse += [points.subtract(fit_for_c(bound, frame)) for bound in (step.lower, step.upper)]
                iterator = index_function(IndexVariable(step.iterator), frame)
                lower, upper = index_function(step.lower, frame), index_function(step.upper, frame)
                points = points.intersect(lower.le_set(iterator)).intersect(iterator.le_set(upper))
                if step.step != 1:
                    stride = isl.Val.int_from_si(frame.context, step.step)
                    points = points.intersect(iterator.sub(lower).mod_val(stride).eq_set(frame.constant(0)))
                time.append((_concurrency(step.kind), iterator))
            case (condition, taken):
                misuse.append(points.subtract(fit_for_c(condition, frame)))
                holds = index_condition(condition, frame)
                points = points.intersect(holds if taken else holds.complement())
            case _:
                assert_never(step)
    return Reached(points, tuple(time), tuple(misuse), tuple(scopes))


def _loop_branch(instance: Instance, path: tuple[Step, ...], dimensions: int, frame: Frame) -> _Branch:
    reached = follow_path(path, frame)
    misuse = [*reached.misuse, *(reached.points.subtract(fit_for_c(a, frame)) for a in instance.arguments)]
    points, time = _defined(reached.points, reached.time)
    instances = instance_map(replace(instance, arguments=instance.arguments[:dimensions]), points, frame)
    further = instance.arguments[dimensions:]
    local = _functions(further, points, frame) if further else None
    broken = tuple(where for where in misuse if not where.is_empty())
    return _Branch(instances, time, broken, local, reached.scopes)


def instance_map(instance: Instance, points: isl.Set, frame: Frame) -> isl.Map:
    """``{ loop iterators -> statement instance }`` on the points."""
    return _functions(instance.arguments, points, frame).set_tuple_name(isl.dim_type.out, instance.statement)


def _functions(expressions: Items[IndexExpression], points: isl.Set, frame: Frame) -> isl.Map:
    """``{ loop iterators -> [values of the expressions] }`` on the points."""
    return _vector([index_function(expression, frame) for expression in expressions], points)
