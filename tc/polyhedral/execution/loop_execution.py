"""The execution of loops as they will be printed, and where a path through them leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.language.isl.affine import Frame, parameter_name
from tc.language.program.specialization import Sizes
from tc.polyhedral.analysis.functions import Function, vector_map
from tc.polyhedral.analysis.index_functions import fit_for_c, index_condition, index_function
from tc.polyhedral.analysis.iterations import Inverse, find_inverse
from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range
from tc.polyhedral.execution.barriers import Place, Step, barriers_along, is_met_by_all, warp_place
from tc.polyhedral.execution.branches import (
    Branch,
    assemble,
    concurrency_of,
    defined,
)
from tc.polyhedral.execution.execution import Concurrency, Execution, LocalSubscripts, MatrixPlace
from tc.polyhedral.execution.launched import is_run_as_launched
from tc.polyhedral.execution.launches import Launches, steps_above_nest
from tc.polyhedral.execution.scopes import Scope, Time
from tc.polyhedral.execution.streams import stream_places
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    GroupMma,
    Guard,
    IndexExpression,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Mma,
    Prefetch,
    Scheduled,
)


def loop_execution(
    root: LoopTree,
    dimensions: Mapping[str, int],
    context: isl.Context,
    sizes: Sizes = (),
    values: Callable[[str], Items[Function]] = lambda _: (),
) -> Execution:
    """The execution of the loops as they will be printed, read off the loop tree alone.

    ``dimensions``: of the domain of every statement; further arguments of an instance are local subscripts.
    ``sizes``: those that the loops are run for.  ``values``: of a statement, a guess of what the iterators c0, c1, ...
    are for each instance, which costs less to prove than to find.
    """
    paths = list(loop_paths(root, ()))
    known = {parameter_name(name): Range(1, most) for name, most in sizes}
    launches = Launches(root, known)
    leaves = _Leaves(context, sizes, known, cache(values))
    branches = [leaves.branch(instance, path, dimensions[instance.statement]) for instance, path in paths]
    places = [Place(path, branch.instances.domain()) for branch, (_, path) in zip(branches, paths, strict=True)]
    met = [place for place, (leaf, _) in zip(places, paths, strict=True) if isinstance(leaf, Barrier)]
    branches = [
        replace(branch, barriers=barriers_along(place, met)) for branch, place in zip(branches, places, strict=True)
    ]
    allocated = tuple(step.buffer for _, path in paths for step in path if isinstance(step, Allocation))
    return replace(
        assemble(branches, context),
        locals=tuple(
            LocalSubscripts(branch.instances, branch.locals, warp_place(path, launches.sizes(path).block))
            for branch, (_, path) in zip(branches, paths, strict=True)
        ),
        allocated=allocated,
        nodes=tuple(leaf for leaf, _ in paths),
        matrices=tuple(
            leaves.matrix_place(path, branch, launches.sizes(path).block)
            for branch, (_, path) in zip(branches, paths, strict=True)
            if branch.by_warp
        ),
        streams=tuple(
            stream_places(
                paths,
                [branch.instances for branch in branches],
                [launches.sizes(path).block for _, path in paths],
            )
        ),
        divergent=tuple(
            instance.statement
            for (instance, _), place in zip(paths, places, strict=True)
            if isinstance(instance, Barrier) and not is_met_by_all(place, launches.sizes(place.path).block)
        ),
        unlaunched=tuple(
            instance.statement
            for (instance, _), place in zip(paths, places, strict=True)
            if not is_run_as_launched(place, launches.sizes(place.path))
        ),
    )


def loop_paths(tree: LoopTree, path: tuple[Step, ...]) -> Iterator[tuple[Scheduled, tuple[Step, ...]]]:
    """Every instance below ``path``, those of barriers too, with all steps that lead to it."""
    match tree:
        case Scheduled():
            yield tree, path
        case Prefetch():
            pass
        case Matrices(nest=nest):
            yield from loop_paths(nest, (*path, tree))
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
    """What is known at the end of a path: the points of its loops, and where what it asks means something else in C."""

    points: isl.Set
    misuse: tuple[isl.Set, ...]


def follow_path(path: tuple[Step, ...], frame: Frame) -> Reached:
    """Walk from the root to a statement."""
    points = frame.possible()
    misuse: list[isl.Set] = []
    for step in path:
        match step:
            case int() | Allocation() | Matrices():
                pass
            case Loop():
                for bound in (step.lower, step.upper):
                    misuse += _misuse(bound, points, frame)
                variable = IndexVariable(step.iterator)
                for bounds in ((step.lower, variable), (variable, step.upper)):
                    points = points.intersect(index_condition(IndexOperation(IndexOperator.LESS_EQUAL, bounds), frame))
                if step.step != 1:
                    lower, iterator = index_function(step.lower, frame), index_function(variable, frame)
                    stride = isl.Val.int_from_si(frame.context, step.step)
                    points = points.intersect(iterator.sub(lower).mod_val(stride).eq_set(frame.constant(0)))
            case (condition, taken):
                misuse += _misuse(condition, points, frame)
                holds = index_condition(condition, frame)
                points = points.intersect(holds if taken else holds.complement())
            case _:
                assert_never(step)
    return Reached(points, tuple(misuse))


def _time_along(path: tuple[Step, ...], frame: Frame) -> tuple[Time, tuple[Scope, ...]]:
    """The time of what a path leads to, and the allocations around it."""
    time: list[tuple[Concurrency, Function]] = []
    scopes: list[Scope] = []
    for step in path:
        match step:
            case int():
                time.append((Concurrency.ORDERED, frame.constant(step)))
            case Allocation():
                scopes.append(Scope(step.buffer.name, len(time), step.buffer.sharing))
            case Loop():
                time.append((concurrency_of(step.kind), index_function(IndexVariable(step.iterator), frame)))
            case _:  # guards take no time
                pass
    return tuple(time), tuple(scopes)


# What of a path says which points it leads to: not its places in blocks, nor its allocations.
Steps: TypeAlias = tuple[tuple[object, ...], ...]


def steps_of(path: tuple[Step, ...]) -> Steps:
    """The loops and conditions on a path: those that have the same ones lead to the same points."""
    loops = (step for step in path if not isinstance(step, int | Allocation | Matrices))
    return tuple(
        (step.iterator, step.lower, step.upper, step.step) if isinstance(step, Loop) else step for step in loops
    )


class _Leaves:
    """The places in loops where statements stand.

    What they have in common is found once: most statements of a block stand in loops like those of others.
    ``values``: see ``loop_execution``.
    """

    def __init__(
        self,
        context: isl.Context,
        sizes: Sizes,
        ranges: Ranges,
        values: Callable[[str], Items[Function]],
    ) -> None:
        self._context: Final = context
        self._sizes: Final = sizes
        self._ranges: Final = ranges
        self._values: Final = values
        self._reached: Final[dict[Steps, tuple[Frame, Reached]]] = {}
        self._inverses: Final[dict[tuple[Steps, tuple[IndexExpression, ...]], Inverse]] = {}

    def branch(self, instance: Scheduled, path: tuple[Step, ...], dimensions: int) -> Branch:
        """The way to an instance; ``dimensions``: of its statement's domain."""
        steps = steps_of(path)
        if steps not in self._reached:
            frame = frame_of_path(path, self._context, self._sizes)
            self._reached[steps] = frame, follow_path(path, frame)
        frame, reached = self._reached[steps]
        misuse = [*reached.misuse]
        for argument in instance.arguments:
            misuse += _misuse(argument, reached.points, frame)
        time, scopes = _time_along(path, frame)
        points, time = defined(reached.points, time)
        own = replace(instance, arguments=instance.arguments[:dimensions])
        local = tuple(index_function(subscript, frame) for subscript in instance.arguments[dimensions:])
        broken = tuple(where for where in misuse if not where.is_empty())
        inverse = self.inverse(own, path, steps, points, frame)
        kernel = steps_above_nest(path)
        by_warp = any(isinstance(step, Matrices) for step in path)
        instances = instance_map(own, points, frame)
        return Branch(instances, time, broken, local, scopes, inverse=inverse, kernel=kernel, by_warp=by_warp)

    def matrix_place(self, path: tuple[Step, ...], branch: Branch, block: tuple[int, ...]) -> MatrixPlace:
        """What the proof of matrix instructions asks of a place below them."""
        loops = tuple(step for step in path if isinstance(step, Loop))
        position, node = next((n, step) for n, step in enumerate(path) if isinstance(step, Mma | GroupMma))
        outside, arrays = path[:position], dict[str, int]()
        for length, step in enumerate(outside):
            if isinstance(step, Allocation):
                arrays[step.buffer.name] = sum(isinstance(own, Loop) for own in outside[:length])
        return MatrixPlace(
            node,
            tuple(loop.iterator for loop in loops),
            sum(isinstance(step, Loop) for step in outside),
            branch.instances.domain(),
            follow_path(outside, frame_of_path(outside, self._context, self._sizes)).points,
            branch.instances,
            branch.locals,
            tuple(n for n, loop in enumerate(loops) if loop.kind is LoopKind.THREAD),
            block,
            arrays,
        )

    def inverse(
        self, instance: Scheduled, path: tuple[Step, ...], steps: Steps, points: isl.Set, frame: Frame
    ) -> Inverse | None:
        """``inverse_of``, which the names of statements do not matter for."""
        known = self._inverses.get((steps, instance.arguments))
        if known is not None:
            name = instance.statement
            return Inverse(known.iteration.set_tuple_name(isl.dim_type.in_, name), known.runs.set_tuple_name(name))
        found = inverse_of(instance, path, points, frame, self._ranges, lambda: self._values(instance.statement))
        if found is not None:
            self._inverses[steps, instance.arguments] = found
        return found


def inverse_of(
    instance: Scheduled,
    path: tuple[Step, ...],
    points: isl.Set,
    frame: Frame,
    ranges: Ranges,
    values: Callable[[], Items[Function]] = tuple,
) -> Inverse | None:
    """The iteration of the loops on the path that each instance belongs to; None where its arguments do not tell.

    ``ranges``: of the sizes that the loops are run for.  ``values``: what the iterators may be, see ``loop_execution``.
    """
    known = dict(ranges)
    for step in path:
        if isinstance(step, Loop):
            known[step.iterator] = iterator_range(step, known)
    arguments = [index_function(argument, frame) for argument in instance.arguments]
    instances = instance_map(instance, points, frame).get_space().range()

    def guess() -> list[isl.Aff] | None:
        by_name = {f"c{number}": value for number, value in enumerate(values()) if isinstance(value, isl.Aff)}
        own = [by_name[name] for name in frame.iterators if name in by_name]
        return own if len(own) == len(frame.iterators) else None

    return find_inverse(arguments, points, [known[name] for name in frame.iterators], instances, guess)


def _misuse(expression: IndexExpression, points: isl.Set, frame: Frame) -> Iterator[isl.Set]:
    """The points at which it does not mean in C what it means here."""
    fit = fit_for_c(expression, frame)
    if not fit.plain_is_universe():
        yield points.subtract(fit)


def instance_map(instance: Scheduled, points: isl.Set, frame: Frame) -> isl.Map:
    """``{ loop iterators -> statement instance }`` on the points."""
    subscripts = [index_function(argument, frame) for argument in instance.arguments]
    return vector_map(subscripts, points).set_tuple_name(isl.dim_type.out, instance.statement)
