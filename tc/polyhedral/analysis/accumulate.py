"""Which reductions may keep partial results in local variables (accumulators) instead of in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import IteratorReference, Read, Reduction, walk
from tc.polyhedral.analysis.ranges import Ranges, always_runs, iterator_range
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
    StatementBody,
    variables,
)

_IN_ORDER = (LoopKind.REDUCTION, LoopKind.SEQUENTIAL, LoopKind.UNROLLED)
# Variables of partial results.
ACCUMULATOR: Final = "accumulator"
REACHED: Final = "reached"
# Lanes beyond so many would not stay in registers.
_MOST_LANES = 256


@frozen
class Partial:
    """One reducing statement: all its instances inside combine into one element.

    ``always_runs``: there is at least one.  Where that is not known, the element may not even exist, so it must not be
    touched before an instance has run.
    """

    instance: Scheduled
    body: StatementBody
    reduction: Reduction
    always_runs: bool


@frozen
class Accumulation:
    """Loops all of whose instances reduce into one element for each statement.

    ``lanes``: partial results for each lane of the innermost loops; None where the compiler keeps them.
    """

    partials: tuple[Partial, ...]
    lanes: int | None


# The loops and guards from the root of an accumulation to an instance.
_Path: TypeAlias = tuple[Loop | Guard, ...]


def accumulation(
    loop: Loop, bodies: Mapping[str, StatementBody], ranges: Ranges, *, several: bool, always: bool = False
) -> Accumulation | None:
    """The accumulation that a nest makes as a whole; None where a target moves or is read inside, or no lanes are.

    ``several``: without lanes, more than one statement may reduce, too.  ``always``: also where no
    iterations may run in lanes.
    """
    places = list(_places(loop, ()))
    if not places or any(path is None for _, path in places):
        return None
    found: dict[str, Partial] = {}
    for instance, path in places:
        assert path is not None
        if isinstance(instance, Barrier):
            return None
        body = bodies[instance.statement]
        if body.reduction is None or _moves(instance, body, path):
            return None
        known = found.get(body.name)
        if known is not None and _element(known.instance, body) != _element(instance, body):
            return None
        runs = _reaches_instance(path, ranges) or (known is not None and known.always_runs)
        found[body.name] = Partial(instance, body, body.reduction, runs)
    partials = tuple(found.values())
    targets = {partial.body.target for partial in partials}
    if len(targets) < len(partials) or any(_reads(partial.body, targets) for partial in partials):
        return None
    lanes = _lanes([path for _, path in places if path is not None])
    if lanes is not None:
        return Accumulation(partials, lanes)
    once = len(places) == (len(partials) if several else 1)
    return Accumulation(partials, None) if always or (loop.kind is LoopKind.REDUCTION and once) else None


def _lanes(paths: list[_Path]) -> int | None:
    """The number of lanes, if every instance is in one of them and the lanes are used again and again."""
    most = 0
    repeated = False
    for path in paths:
        loops = [node for node in path if isinstance(node, Loop)]
        if any(isinstance(node, Guard) for node in path):
            return None
        if not any(node.kind is LoopKind.REDUCTION for node in loops):
            continue  # a single iteration that was left over, in the first lane
        last = loops[-1]
        if last.step != 1 or any(node.kind is LoopKind.REDUCTION for node in loops[:-1]):
            return None
        match (last.lower, last.upper):
            case (IndexLiteral(lower), IndexLiteral(upper)):
                most = max(most, upper - lower + 1)
            case _:
                return None
        repeated = repeated or len(loops) > 1
    return most if repeated and 1 < most <= _MOST_LANES else None


def target_iterators(body: StatementBody) -> set[str]:
    """The iterators that choose the element that the statement writes."""
    return {e.name for s in body.subscripts for e in walk(s) if isinstance(e, IteratorReference)}


def _places(tree: LoopTree, path: _Path) -> Iterator[tuple[Scheduled, _Path | None]]:
    """Every instance with the way to it; None for the way through what no accumulation may contain."""
    match tree:
        case Scheduled():
            yield tree, path
        case Matrices(nest=nest):
            yield from ((instance, None) for instance, _ in _places(nest, ()))
        case Prefetch():
            pass
        case Loop():
            if tree.kind in _IN_ORDER:
                yield from _places(tree.body, (*path, tree))
            else:
                yield from ((instance, None) for instance, _ in _places(tree.body, ()))
        case Guard(_, then, None):
            yield from _places(then, (*path, tree))
        case Block(children):
            for child in children:
                yield from _places(child, path)
        case Guard(_, then, otherwise):
            for branch in (then, otherwise):
                assert branch is not None
                yield from ((instance, None) for instance, _ in _places(branch, ()))
        case Allocation(_, body):
            yield from ((instance, None) for instance, _ in _places(body, ()))
        case _:
            assert_never(tree)


def _element(instance: Scheduled, body: StatementBody) -> tuple[IndexExpression, ...]:
    """The arguments that choose the element."""
    located_by = target_iterators(body)
    pairs = zip(body.iterators, instance.arguments, strict=True)
    return tuple(argument for name, argument in pairs if name in located_by)


def _moves(instance: Scheduled, body: StatementBody, path: _Path) -> bool:
    inside = {node.iterator for node in path if isinstance(node, Loop)}
    return any(variables(argument) & inside for argument in _element(instance, body))


def _reads(body: StatementBody, targets: set[str]) -> bool:
    """Whether the value, or any subscript, reads one of the targets."""
    return any(
        isinstance(e, Read) and (e.tensor in targets or expression is not body.value)
        for expression in (body.value, *body.subscripts)
        for e in walk(expression)
    )


def _reaches_instance(path: _Path, ranges: Ranges) -> bool:
    around: Loop | None = None
    for node in path:
        if isinstance(node, Guard) or not (always_runs(node, ranges) or _is_run(node, around)):
            return False
        around = node
        ranges = {**ranges, node.iterator: iterator_range(node, ranges)}
    return True


def _is_run(loop: Loop, around: Loop | None) -> bool:
    """Whether the loop begins where an iteration of a loop that was cut into runs does, and so has one itself."""
    return around is not None and bool(around.folds) and loop.lower == IndexVariable(around.iterator)


def lane_of(loop: Loop) -> IndexExpression:
    """The lane in which an iteration of an innermost loop accumulates."""
    iterator = IndexVariable(loop.iterator)
    if loop.lower == IndexLiteral(0):
        return iterator
    return IndexOperation(IndexOperator.SUBTRACT, (iterator, loop.lower))


def halves(lanes: int) -> Iterator[tuple[int, int]]:
    """How lanes are combined: in each step the lanes from the first number on into the first ones, so many of them."""
    while lanes > 1:
        kept = (lanes + 1) // 2
        yield kept, lanes - kept
        lanes = kept


def accumulator_name(partial: Partial, found: Accumulation) -> str:
    """The variable of a partial result."""
    return _numbered(ACCUMULATOR, partial, found)


def reached_name(partial: Partial, found: Accumulation) -> str:
    """The variable that says whether an instance of the statement has run."""
    return _numbered(REACHED, partial, found)


def _numbered(name: str, partial: Partial, found: Accumulation) -> str:
    return name if len(found.partials) == 1 else f"{name}_{found.partials.index(partial)}"
