"""Proof that points which are computed beyond the program change nothing.

Loops are proven with guards that keep threads from points which are not there; those that are printed have fewer guards
(``tc.polyhedral.separate.complete_tiles``).  Both are compared node by node; the ends of loops may differ, too.  What
the proven loops run, the others run at the same place and time.  Whatever else a leaf runs, at *surplus* points,

- is no barrier, asks for nothing that may be reported as a fault, and is computed in C as it is here;
- writes to an array of the thread's own only, at places that no other instance touches but surplus ones, as long as the
  array lives;
- reads buffers that allocations bring only, and stays inside of them.

What a surplus point reads may be anything, also what another thread is about to write; operations have a value for all
operands.  So nothing that the program computes depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from typing import TypeAlias

import islpy as isl

from tc.base.errors import VerificationError
from tc.language.isl.affine import Frame
from tc.language.program.program import Expression, InRange, IteratorReference, Read, walk
from tc.polyhedral.analysis.functions import vector_map
from tc.polyhedral.analysis.index_functions import fit_for_c, index_function
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
    Instance,
    Leaf,
    Loop,
    LoopTree,
    Scheduled,
    Sharing,
    StatementBody,
)
from tc.polyhedral.ir.scop import Scop


def prove_surplus(proven: LoopTree, printed: LoopTree, scop: Scop) -> None:
    """VerificationError where what ``printed`` runs beyond the ``proven`` loops may change something."""
    found = find_seen_surplus(proven, printed, scop)
    if found is not None:
        raise VerificationError(f"the points beyond the program are not proven harmless: {found}")


def find_seen_surplus(proven: LoopTree, printed: LoopTree, scop: Scop) -> Counterexample | None:
    """The first difference that is no surplus, or a surplus instance that something depends on; None if all is well."""
    if printed is proven:
        return None
    try:
        pairs = list(_pairs(proven, printed, (), ()))
    except _OtherLoopsError as error:
        return Counterexample(Violation.CHANGED, str(error))
    ways: dict[_Key, list[_Pair]] = {}
    for pair in pairs:
        ways.setdefault(_key(pair[2]), []).append(pair)
    places = [_place(own, scop) for own in ways.values()]
    bodies = scop.bodies
    buffers = {promotion.buffer.name: promotion.buffer for promotion in scop.promotions}
    found = next(filter(None, (_seen(place, bodies, buffers) for place in places)), None)
    return found or _touched_twice(places, bodies, buffers)


class _OtherLoopsError(Exception):
    """The loops differ in more than guards."""


_Pair: TypeAlias = tuple[Scheduled, tuple[Step, ...], tuple[Step, ...]]


def _pairs(old: LoopTree, new: LoopTree, before: tuple[Step, ...], after: tuple[Step, ...]) -> Iterator[_Pair]:
    """Every leaf of the new loops, with the paths to it in both; with several in the old ones, where a branch chooses
    between loops that differ in guards only.
    """
    match old, new:
        case Guard(condition, then, otherwise), Guard(same, new_then, new_otherwise) if condition == same:
            yield from _pairs(then, new_then, (*before, (condition, True)), (*after, (condition, True)))
            if (otherwise is None) != (new_otherwise is None):
                raise _OtherLoopsError(str(condition))
            if otherwise is not None and new_otherwise is not None:
                yield from _pairs(otherwise, new_otherwise, (*before, (condition, False)), (*after, (condition, False)))
        case Guard(condition, then, otherwise), _:
            yield from _pairs(then, new, (*before, (condition, True)), after)
            if otherwise is not None:
                yield from _pairs(otherwise, new, (*before, (condition, False)), after)
        case _, Guard(condition, then, otherwise) if otherwise is not None:
            for branch, holds in ((then, True), (otherwise, False)):
                yield from _pairs(old, branch, (*before, (condition, holds)), (*after, (condition, holds)))
        case Block(children), Block(others):
            for position, (child, other) in enumerate(zip_longest(children, others, fillvalue=Block(()))):
                yield from _pairs(child, other, (*before, position), (*after, position))
        case Loop(), Loop() if _is_same_loop(old, new):
            yield from _pairs(old.body, new.body, (*before, old), (*after, new))
        case Allocation(buffer, body), Allocation(same_buffer, new_body) if buffer == same_buffer:
            yield from _pairs(body, new_body, (*before, old), (*after, new))
        case Leaf(), Leaf() if old == new:
            if isinstance(new, Scheduled):
                yield new, before, after
        case _:
            raise _OtherLoopsError(f"{_name(new)} instead of {_name(old)}")


def _is_same_loop(old: Loop, new: Loop) -> bool:
    """Whether loops differ in their ends at most, which say where leaves run, and not when."""
    about, others = (
        (loop.iterator, loop.step, loop.kind, loop.totals, loop.folds, loop.ranges, loop.stream) for loop in (old, new)
    )
    if old.kind.is_mapped or old.ranges or old.stream:
        return (*about, old.lower, old.upper) == (*others, new.lower, new.upper)
    return about == others and (old.step == 1 or old.lower == new.lower)


def _name(tree: LoopTree) -> str:
    return tree.statement if isinstance(tree, Scheduled) else type(tree).__name__


# What tells the places of a tree apart: positions in blocks, and the branches of guards.
_Key: TypeAlias = tuple[int, ...]


def _key(path: tuple[Step, ...]) -> _Key:
    return tuple(step if isinstance(step, int) else int(step[1]) for step in path if isinstance(step, int | tuple))


@dataclass(frozen=True)
class _Place:
    """A leaf of the printed loops.

    ``real``: where it runs in the loops that are proven; ``surplus``: where it runs in addition.  ``misuse``: where
    something on the way to it means something else in C.
    """

    leaf: Scheduled
    path: tuple[Step, ...]
    frame: Frame
    real: isl.Set
    surplus: isl.Set
    missing: isl.Set
    misuse: tuple[isl.Set, ...]


def _place(ways: Items[_Pair], scop: Scop) -> _Place:
    """That of one leaf; ``ways``: all that lead to it in the loops that are proven."""
    leaf, _, path = ways[0]
    frame = frame_of_path(path, scop.context, scop.sizes)
    reached = follow_path(path, frame)
    real = reduce(isl.Set.union, (follow_path(old, frame).points for _, old, _ in ways)).coalesce()
    surplus, missing = reached.points.subtract(real).coalesce(), real.subtract(reached.points)
    return _Place(leaf, path, frame, real, surplus, missing, reached.misuse)


def _seen(place: _Place, bodies: Mapping[str, StatementBody], buffers: Mapping[str, Buffer]) -> Counterexample | None:
    """Unless the surplus points of a leaf, if there are any, stay among the buffers."""
    if not place.missing.is_empty():
        return _witness(Violation.MISSING, place, place.missing)
    surplus = place.surplus
    if surplus.is_empty():
        return None
    if not isinstance(place.leaf, Instance):
        return _witness(Violation.SURPLUS, place, surplus)
    body = bodies[place.leaf.statement]
    target = buffers.get(body.target)
    if target is None or target.sharing is not Sharing.THREAD or not _asks_nothing(body):
        return _witness(Violation.SURPLUS, place, surplus)
    for misused in (*place.misuse, *(fit_for_c(own, place.frame).complement() for own in place.leaf.arguments)):
        if not misused.is_disjoint(surplus):
            return _witness(Violation.MISUSED_DIVISION, place, misused.intersect(surplus))
    for tensor, subscripts in _accesses(body):
        places = _subscripts(place.leaf, body, subscripts)
        buffer = buffers.get(tensor)
        if buffer is None or buffer.sharing is Sharing.LANES or places is None:
            return _witness(Violation.SURPLUS, place, surplus)
        inside = _inside(places, buffer, place.frame)
        if not surplus.is_subset(inside):
            return _witness(Violation.OUT_OF_BOUNDS, place, surplus.subtract(inside))
    return None


def _asks_nothing(body: StatementBody) -> bool:
    """Whether it runs wherever it is asked to, checks nothing, and shares its target with no other thread."""
    asks = any(isinstance(part, InRange) for part in walk(body.value))
    return body.owned is None and not body.counts and not body.atomic and not asks


def _accesses(body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
    yield body.target, body.subscripts
    for value in (*body.subscripts, body.value):
        for part in walk(value):
            if isinstance(part, Read):
                yield part.tensor, part.subscripts


def _subscripts(
    leaf: Scheduled, body: StatementBody, subscripts: Items[Expression]
) -> tuple[IndexExpression, ...] | None:
    """Subscripts in terms of the loops; None unless they are iterators of the statement."""
    values = dict(zip(body.iterators, leaf.arguments, strict=True))
    found = [values.get(own.name) for own in subscripts if isinstance(own, IteratorReference)]
    return (
        tuple(own for own in found if own is not None) if len(found) == len(subscripts) and None not in found else None
    )


def _inside(subscripts: Items[IndexExpression], buffer: Buffer, frame: Frame) -> isl.Set:
    """Where all subscripts are in the buffer."""
    inside = frame.universe()
    for subscript, extent in zip(subscripts, buffer.layout.shape, strict=True):
        value = index_function(subscript, frame)
        inside = inside.intersect(value.ge_set(frame.constant(0))).intersect(value.lt_set(frame.constant(extent)))
    return inside


def _touched_twice(
    places: Items[_Place], bodies: Mapping[str, StatementBody], buffers: Mapping[str, Buffer]
) -> Counterexample | None:
    """An element of an array that a surplus instance writes, and one of the program touches in the same array."""
    written: dict[tuple[str, _Key], isl.Map] = {}
    touched: dict[tuple[str, _Key], list[tuple[_Place, isl.Map]]] = {}
    for place in places:
        if not isinstance(place.leaf, Instance):
            continue
        body = bodies[place.leaf.statement]
        for number, (tensor, subscripts) in enumerate(_accesses(body)):
            path = _array(place.path, tensor)
            if path is None or buffers[tensor].sharing is not Sharing.THREAD:
                continue
            values = _subscripts(place.leaf, body, subscripts)
            if values is None:
                return _witness(Violation.SURPLUS, place, place.real)
            array = tensor, _key(path)
            if number == 0 and not place.surplus.is_empty():
                own = _elements(values, place.surplus, path, place.frame)
                written[array] = written[array].union(own) if array in written else own
            touched.setdefault(array, []).append((place, _elements(values, place.real, path, place.frame)))
    for array, elements in written.items():
        for place, own in touched[array]:
            both = own.intersect(elements)
            if not both.is_empty():
                return Counterexample(Violation.SURPLUS, f"{place.leaf.statement}: {both.sample()}")
    return None


def _array(path: tuple[Step, ...], name: str) -> tuple[Step, ...] | None:
    """The path to the allocation that brings an array; None if none does."""
    for length, step in enumerate(path, 1):
        if isinstance(step, Allocation) and step.buffer.name == name:
            return path[:length]
    return None


def _elements(subscripts: Items[IndexExpression], points: isl.Set, array: tuple[Step, ...], frame: Frame) -> isl.Map:
    """``{ [iterators of the loops around the array] -> [subscripts] }``."""
    depth = sum(isinstance(step, Loop) for step in array)
    inside = vector_map([index_function(own, frame) for own in subscripts], points)
    inside = inside.project_out(isl.dim_type.in_, depth, inside.dim(isl.dim_type.in_) - depth)
    return inside.reset_tuple_id(isl.dim_type.in_)


def _witness(violation: Violation, place: _Place, points: isl.Set) -> Counterexample:
    return Counterexample(violation, f"{place.leaf.statement} at {point_text(isl.UnionSet.from_set(points))}")
