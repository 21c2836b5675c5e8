"""Asks, while a loop works on one block of an argument, for the block of its next iteration.

A processor follows a stream by itself, but not from the end of one block to the beginning of the next, and not well
along many streams at once.  Where a nest around register tiles goes from block to block of an argument, each read in
one iteration only, the block that comes next is asked for, a few lines with every tile (Mowry, Lam and Gupta, "Design
and evaluation of a compiler algorithm for prefetching", ASPLOS 1992: only what is not there yet, and one iteration
ahead).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from tc.codegen.offsets import Arguments, LinearForm, index_form, subscript_form
from tc.codegen.ranges import Ranges, iterator_range, range_of
from tc.codegen.vector_statement import reads_in
from tc.language.program import Expression
from tc.language.specialization import Layout
from tc.polyhedral.loops import (
    LINE_BYTES,
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Request,
    StatementBody,
    variables,
)

# Smaller arguments stay in the caches from call to call.
_LARGE_BYTES: Final = 1 << 20
# As many lines as a core of today waits for at one time; further ones would wait in front of what a tile reads.
_MOST_LINES: Final = 40


def ask_ahead(program: LoopProgram) -> LoopProgram:
    """The program whose loops around register tiles ask for blocks of at most ``program.ahead`` bytes."""
    large = {
        buffer.name: buffer.layout
        for buffer in program.buffers
        if not buffer.writable and buffer.layout.span * buffer.layout.type.itemsize >= _LARGE_BYTES
    }
    if program.ahead == 0 or not large:
        return program
    bodies = {body.name: body for body in program.bodies}
    return replace(program, root=_Walk(large, bodies, program.ahead).tree(program.root, ()))


@dataclass(frozen=True, slots=True)
class _Access:
    """A read of a large argument below some loops."""

    tensor: str
    subscripts: tuple[Expression, ...]
    arguments: Arguments
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Footprint:
    """What one iteration of a loop reads of an argument: ``span`` elements from the element ``first`` on."""

    first: LinearForm
    span: int


@dataclass(frozen=True, slots=True)
class _Walk:
    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    most_bytes: int

    def tree(self, tree: LoopTree, around: tuple[Loop, ...]) -> LoopTree:
        """The tree below these loops, the outermost first."""
        match tree:
            case Loop() if _holds_tile(tree.body):
                return replace(tree, requests=self.requests((*around, tree)))
            case Loop():
                return replace(tree, body=self.tree(tree.body, (*around, tree)))
            case Block(children):
                return Block(tuple(self.tree(child, around) for child in children))
            case Allocation(buffer, body):
                return Allocation(buffer, self.tree(body, around))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.tree(otherwise, around)
                return Guard(condition, self.tree(then, around), other)
            case Instance():
                return tree
            case _:
                assert_never(tree)

    def requests(self, nest: tuple[Loop, ...]) -> tuple[Request, ...]:
        """What the innermost loop of a nest, which holds a register tile, asks for in every iteration.

        Blocks are those of the innermost loop around it with blocks that nothing else reads.
        """
        for depth in range(len(nest) - 2, -1, -1):
            outer, inner = nest[: depth + 1], nest[depth + 1 :]
            trips = [_trips(loop) for loop in inner]
            steps = math.prod(count or 0 for count in trips)
            if steps == 0:
                return ()
            accesses = list(self.accesses(outer[-1].body, {}, _ranges(outer)))
            found: list[Request] = []
            for tensor, layout in self.large.items():
                footprint = _footprint([a for a in accesses if a.tensor == tensor], outer, layout)
                if footprint is not None and footprint.span * layout.type.itemsize <= self.most_bytes:
                    found.append(_request(tensor, layout, footprint, outer[-1], inner, steps))
            if found:
                return tuple(found) if sum(request.lines for request in found) <= _MOST_LINES else ()
        return ()

    def accesses(self, tree: LoopTree, inner: Ranges, outer: Ranges) -> Iterator[_Access]:
        """All reads of large arguments in a tree; ``inner``: of the loops inside it around the reads."""
        match tree:
            case Instance(statement, arguments):
                body = self.bodies[statement]
                values = dict(zip(body.iterators, arguments, strict=True))
                for read in reads_in(body.value):
                    if read.tensor in self.large:
                        yield _Access(read.tensor, read.subscripts, values, inner)
            case Loop():
                own = iterator_range(tree, {**outer, **inner})
                yield from self.accesses(tree.body, {**inner, tree.iterator: own}, outer)
            case Block(children):
                for child in children:
                    yield from self.accesses(child, inner, outer)
            case Allocation(_, body):
                yield from self.accesses(body, inner, outer)
            case Guard(_, then, otherwise):
                yield from self.accesses(then, inner, outer)
                if otherwise is not None:
                    yield from self.accesses(otherwise, inner, outer)
            case _:
                assert_never(tree)


def _footprint(accesses: Sequence[_Access], outer: Sequence[Loop], layout: Layout) -> _Footprint | None:
    """What an iteration of the last of the loops reads, if that is a dense block which no other iteration reads."""
    boxes = [_box(access, {loop.iterator for loop in outer}) for access in accesses]
    if not boxes or any(box is None or [d[0] for d in box] != [d[0] for d in boxes[0] or ()] for box in boxes):
        return None
    first, last = LinearForm(), 0
    elements = 1
    for dimension, stride in enumerate(layout.strides):
        own = [box[dimension] for box in boxes if box is not None]
        least, most = min(low for _, low, _ in own), max(high for *_, high in own)
        if not own[0][0].factors:  # ranges of ragged tiles are too wide; what is read is inside
            least, most = max(least, 0), min(most, layout.shape[dimension] - 1)
        first = first.plus(own[0][0], stride).plus(LinearForm(least), stride)
        last += (most - least) * stride
        elements *= most - least + 1
    span = last + 1
    dense = min(layout.strides, default=0) >= 0 and 2 * elements >= span
    return _Footprint(first, span) if dense and _is_fresh(first, span, outer) else None


def _box(access: _Access, outer: set[str]) -> list[tuple[LinearForm, int, int]] | None:
    """For every dimension a form of the outer iterators, and the least and the most that the inner ones add to it."""
    box: list[tuple[LinearForm, int, int]] = []
    for subscript in access.subscripts:
        form = subscript_form(subscript, access.arguments)
        if form is None:
            return None
        moving = {term: factor for term, factor in form.factors.items() if variables(term) <= outer}
        if not all(isinstance(term, IndexVariable) for term in moving):
            return None
        low: int | float = form.constant
        high: int | float = form.constant
        for term, factor in form.factors.items():
            if term not in moving:
                if variables(term) & outer:
                    return None
                values = range_of(term, access.ranges)
                low += min(factor * values.least, factor * values.most)
                high += max(factor * values.least, factor * values.most)
        if math.isinf(low) or math.isinf(high):
            return None
        box.append((LinearForm(0, moving), int(low), int(high)))
    return box


def _is_fresh(first: LinearForm, span: int, outer: Sequence[Loop]) -> bool:
    """Whether the blocks of neighbouring iterations lie apart, and every other loop goes to other blocks."""
    last = outer[-1]
    if abs(first.slope(last.iterator) or 0) * last.step < span:
        return False
    moved = {last.iterator}
    for loop in reversed(outer):
        if first.slope(loop.iterator) or loop.iterator in moved:
            moved |= {loop.iterator} | variables(loop.lower) | variables(loop.upper)
        elif _trips(loop) != 1:
            return False
    return True


def _request(tensor: str, layout: Layout, block: _Footprint, last: Loop, inner: Sequence[Loop], steps: int) -> Request:
    """A share of the next block, in proportion to what the inner loops have done of theirs."""
    lines = -(-block.span * layout.type.itemsize // (LINE_BYTES * steps))
    share = lines * LINE_BYTES // layout.type.itemsize
    offset = block.first.plus(LinearForm((block.first.slope(last.iterator) or 0) * last.step))
    for loop in inner:
        steps //= _trips(loop) or 1
        done: IndexExpression = index_form(IndexVariable(loop.iterator)).plus(index_form(loop.lower), -1).expression()
        if loop.step != 1:
            done = IndexOperation(IndexOperator.EXACT_DIVIDE, (done, IndexLiteral(loop.step)))
        offset = offset.plus(index_form(done), share * steps)
    return Request(tensor, offset.expression(), lines)


def _trips(loop: Loop) -> int | None:
    """How often a loop runs, if that is the same every time."""
    extent = index_form(loop.upper).plus(index_form(loop.lower), -1)
    return None if extent.factors else max(0, extent.constant // loop.step + 1)


def _ranges(loops: Sequence[Loop]) -> Ranges:
    ranges: Ranges = {}
    for loop in loops:
        ranges = {**ranges, loop.iterator: iterator_range(loop, ranges)}
    return ranges


def _holds_tile(tree: LoopTree, *, inside: bool = False) -> bool:
    """Whether a register tile is allocated here, with no loop around it; ``inside`` an allocation."""
    match tree:
        case Loop():
            return inside and tree.kind is LoopKind.REGISTER
        case Allocation(_, body):
            return _holds_tile(body, inside=True)
        case Block(children):
            return any(_holds_tile(child, inside=inside) for child in children)
        case Guard(_, then, otherwise):
            return any(part is not None and _holds_tile(part, inside=inside) for part in (then, otherwise))
        case Instance():
            return False
        case _:
            assert_never(tree)
