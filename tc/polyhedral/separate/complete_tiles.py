"""Tiles at the border of a result are computed as if they were whole; only what is stored is cut.

Where the size of a tile does not divide a loop, a guard keeps threads from the points that are not there
(``tc.polyhedral.generate.constant_trip_counts``): one for each row and column of what a thread computes, in every step
of a reduction.  Such points cost less than the guards if nothing sees them: their results are in elements of arrays of
the thread's own that no other point uses, and they read nothing but such arrays and shared memory.

``tc.polyhedral.proof.printed.verify_surplus`` proves that they change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Expression, InRange, IteratorReference, Read, walk
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, range_of, ranges_where
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Sharing,
    StatementBody,
    variables,
)

# Where the loop that moves along a dimension of an array is cut: the guards at its beginning and its end.
_Cuts: TypeAlias = frozenset[IndexExpression]


def complete_tiles(
    root: LoopTree, bodies: Mapping[str, StatementBody], buffers: tuple[Buffer, ...], sizes: Ranges
) -> LoopTree:
    """The loops without the guards that only keep threads from points of their own that are never stored.

    ``buffers``: those that allocations bring.  ``sizes``: the values of the open ones.
    """
    layouts = {buffer.name: buffer for buffer in buffers}
    return _Completing(bodies, layouts, _evenly_cut(root, bodies, layouts)).visit(root, sizes, None)


@frozen
class _Access:
    """One to an array: the subscripts, as the loops have them."""

    buffer: str
    subscripts: tuple[IndexExpression, ...]


def _accesses(instance: Instance, body: StatementBody) -> Iterator[_Access | None]:
    """All of them, the target first; None for one whose subscripts are no iterators."""
    values = dict(zip(body.iterators, instance.arguments, strict=True))
    places: list[tuple[str, tuple[Expression, ...]]] = [(body.target, body.subscripts)]
    for value in (body.value, *body.subscripts, *body.counts):
        places += ((part.tensor, part.subscripts) for part in walk(value) if isinstance(part, Read))
    for tensor, subscripts in places:
        names = [own.name for own in subscripts if isinstance(own, IteratorReference)]
        whole = len(names) == len(subscripts) and all(name in values for name in names)
        yield _Access(tensor, tuple(values[name] for name in names)) if whole else None


def _evenly_cut(root: LoopTree, bodies: Mapping[str, StatementBody], buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """The arrays of threads along each of whose dimensions all accesses are cut alike.

    Points that are not there have elements of their own then.
    """
    found: dict[str, tuple[_Cuts, ...]] = {}
    uneven: set[str] = set()
    for leaf, path in loop_paths(root, ()):
        if not isinstance(leaf, Instance):
            continue
        body = bodies[leaf.statement]
        if _in_matrices(path):
            uneven.add(body.target)
            continue
        touched = [body.target, *(part.tensor for part in walk(body.value) if isinstance(part, Read))]
        for name, access in zip(touched, _accesses(leaf, body), strict=False):
            if name not in buffers or buffers[name].sharing is not Sharing.THREAD:
                continue
            cuts = None if access is None else _cuts_of(access, path)
            if cuts is None or found.setdefault(name, cuts) != cuts:
                uneven.add(name)
    return frozenset(found.keys() - uneven)


def _in_matrices(path: tuple[Step, ...]) -> bool:
    """Whether matrix instructions run it, which compute points that are not there as it is."""
    return any(isinstance(step, Matrices) for step in path)


def _cuts_of(access: _Access, path: tuple[Step, ...]) -> tuple[_Cuts, ...] | None:
    """Where the loop of every subscript is cut, in terms of nothing but loops around the array; None if it may not be.

    A subscript is the iterator of an unrolled loop, each value of which is another element, or a number.
    """
    begin = next(n for n, step in enumerate(path) if isinstance(step, Allocation) and step.buffer.name == access.buffer)
    around = {step.iterator for step in path[:begin] if isinstance(step, Loop)}
    found: list[_Cuts] = []
    for subscript in access.subscripts:
        match subscript:
            case IndexLiteral():
                found.append(frozenset())
            case IndexVariable(name):
                place = next((n for n, step in enumerate(path) if isinstance(step, Loop) and step.iterator == name), -1)
                loop = path[place] if place > begin else None
                if not isinstance(loop, Loop) or loop.kind is not LoopKind.UNROLLED:
                    return None
                cuts = frozenset(_in_terms_of_subscript(cut, name) for cut in _guards(path[place + 1 :], name))
                if any(variables(cut) - around - {_SUBSCRIPT} for cut in cuts):
                    return None
                found.append(cuts)
            case _:
                return None
    return tuple(found)


_SUBSCRIPT = "subscript"


def _in_terms_of_subscript(cut: IndexExpression, name: str) -> IndexExpression:
    """A guard of a loop, whatever the iterator is called."""
    match cut:
        case IndexOperation(operator, (IndexVariable(own), bound)) if own == name:
            return IndexOperation(operator, (IndexVariable(_SUBSCRIPT), bound))
        case _:
            return cut


def _guards(path: tuple[Step, ...], name: str) -> Iterator[IndexExpression]:
    """Those that cut a loop, at the beginning of its body."""
    for step in path:
        if not (isinstance(step, tuple) and step[1] and _cuts(step[0], name)):
            return
        yield step[0]


def _cuts(condition: IndexExpression, name: str) -> bool:
    """Whether it says where the loop with this iterator begins or ends."""
    match condition:
        case IndexOperation(IndexOperator.LESS_EQUAL | IndexOperator.GREATER_EQUAL, (IndexVariable(own), bound)):
            return own == name and name not in variables(bound)
        case _:
            return False


@frozen
class _Completing:
    """``own``: the arrays of threads in which points that are not there have elements of their own."""

    bodies: Mapping[str, StatementBody]
    buffers: Mapping[str, Buffer]
    own: frozenset[str]

    def visit(self, tree: LoopTree, ranges: Ranges, unrolled: str | None) -> LoopTree:
        """``unrolled``: the iterator of the loop of which the tree is the body, if it is unrolled."""
        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, ranges, None) for child in children))
            case Guard(condition, then, None) if unrolled is not None and _cuts(condition, unrolled):
                inside = self.visit(then, ranges, unrolled)
                return inside if self.may_run(then, ranges, unrolled) else replace(tree, then=inside)
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, ranges, None)
                return Guard(condition, self.visit(then, ranges_where(condition, ranges), None), other)
            case Loop():
                inner = {**ranges, tree.iterator: iterator_range(tree, ranges)}
                unrolled = tree.iterator if tree.kind is LoopKind.UNROLLED else None
                return replace(tree, body=self.visit(tree.body, inner, unrolled))
            case Allocation():
                return replace(tree, body=self.visit(tree.body, ranges, None))
            case _:
                assert_never(tree)

    def may_run(self, tree: LoopTree, ranges: Ranges, iterator: str) -> bool:
        """Whether nothing sees what further iterations of a loop do."""
        for leaf, path in loop_paths(tree, ()):
            inner = dict(ranges)
            for step in path:
                if isinstance(step, Loop):
                    inner[step.iterator] = iterator_range(step, inner)
            if _in_matrices(path) or not (isinstance(leaf, Instance) and self.is_own(leaf, inner, iterator)):
                return False
        return True

    def is_own(self, instance: Instance, ranges: Ranges, iterator: str) -> bool:
        """Whether each iteration writes what only it uses, and reads nothing but buffers, in which it stays."""
        body = self.bodies[instance.statement]
        asks = body.owned is not None or body.counts or any(isinstance(part, InRange) for part in walk(body.value))
        if asks or body.atomic or body.target not in self.own:
            return False
        target, *reads = _accesses(instance, body)
        if target is None or IndexVariable(iterator) not in target.subscripts:
            return False
        return all(access is not None and self.stays_inside(access, ranges) for access in (target, *reads))

    def stays_inside(self, access: _Access, ranges: Ranges) -> bool:
        buffer = self.buffers.get(access.buffer)
        if buffer is None or buffer.sharing is Sharing.LANES:
            return False
        values = (range_of(subscript, ranges) for subscript in access.subscripts)
        return all(
            own.least >= 0 and own.most < extent for own, extent in zip(values, buffer.layout.shape, strict=True)
        )
