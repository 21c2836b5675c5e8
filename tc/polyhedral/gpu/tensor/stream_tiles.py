"""Loops over tiles of products become streams, where boxes of the operands can be copied by descriptors of tensors.

PTX ISA, ``cp.async.bulk.tensor``; CUDA Driver API, ``cuTensorMapEncodeTiled``: the limits of its parameters.  That a
stream does what its loop does is ``tc.polyhedral.proof.tensor.verify_streams``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.base.grid import WARP
from tc.language.isl.affine import Frame
from tc.language.isl.pieces import pieces_of
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.analysis.index_functions import index_function
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.execution.shared_buffers import shared_buffers
from tc.polyhedral.ir.index_arithmetic import minus
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Copy,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    leaves,
    variables,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.streams import Await, BoxCopy, Channel, Drain, Expect, Filling, Leave, Stream, Sum, Use
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, SWIZZLED_ROWS

# Tiles whose matrix instructions are under way while a slot is left.
_PENDING: Final = 1
# Bytes of a channel; all of them lie before what is swizzled.
_CHANNEL: Final = 8
# Elements of a box along a dimension, dimensions of a tensor, and bytes that strides and addresses are multiples of.
_MOST_BOX: Final = 256
_MOST_DIMENSIONS: Final = 5
_UNIT: Final = 16
_MOST_EXTENT: Final = 1 << 32
_MOST_STRIDE: Final = 1 << 40


def stream_tiles(root: LoopTree, scop: Scop, room: int) -> LoopTree:
    """The loops, of which those over tiles that whole blocks run once may be streams.

    ``room``: bytes of shared memory that a block can have.
    """
    return _Streams(scop, room).visit(root, ())


@frozen
class _Streams:
    """``room``: bytes that a kernel has for its buffers and channels."""

    scop: Scop
    room: int

    def visit(self, tree: LoopTree, around: tuple[Loop, ...]) -> LoopTree:
        match tree:
            case Block(children):
                return Block(tuple(self.visit(child, around) for child in children))
            case Allocation():
                return replace(tree, body=self.visit(tree.body, around))
            case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
                # The outermost one is that of a kernel.
                own = self if around else replace(self, room=self.room - _bytes(tree))
                return replace(tree, body=own.visit(tree.body, (*around, tree)))
            case Loop(kind=LoopKind.SEQUENTIAL):
                stream = self.stream(tree, around)
                return tree if stream is None else replace(tree, stream=stream)
            case Loop() | Guard() | Leaf():
                return tree

    def stream(self, loop: Loop, around: tuple[Loop, ...]) -> Stream | None:
        """That of a loop; None where it copies otherwise, or does something else."""
        inside, threads = list(leaves(loop.body)), [own for own in around if own.kind is LoopKind.THREAD]
        copies = [own for own in inside if isinstance(own, Copy) and own.group is not None]
        products = [own for own in inside if isinstance(own, GroupMma)]
        match loop.lower, loop.upper:
            case IndexLiteral(first), IndexLiteral(last) if first < 0 <= last and loop.step == 1:
                ahead, tiles = -first, last + 1
            case _:
                return None
        alone = len(inside) == len(copies) + len(products) + 1 and isinstance(inside[-1], Barrier)
        counts = [own.upper.value + 1 for own in around if isinstance(own.upper, IndexLiteral)]
        if not alone or len(products) != 1 or products[0].awaited or len(counts) < len(around) or len(threads) != 3:
            return None
        boxes = [self.box(copy, loop, around, ahead, tiles) for copy in copies]
        found = tuple(own for own in boxes if own is not None)
        slots = {self.buffer(own.buffer).layout.shape[0] for own in found}
        if len(found) < len(boxes) or len({own.buffer for own in found}) < len(found) or slots != {ahead + 1}:
            return None
        if -(-len(Channel) * _CHANNEL * (ahead + 1) // SWIZZLED_ROWS) * SWIZZLED_ROWS > self.room:
            return None
        bytes = sum(self.bytes(own) for own in found)
        filler: tuple[Filling, ...] = (Await(Channel.EMPTIED, before=True), Expect(bytes), *found)
        users = (Await(Channel.FILLED), Use(), Drain(_PENDING), Leave(-_PENDING))
        warps = math.prod(counts[-len(threads) :]) // WARP
        return Stream(ahead + 1, tiles, ahead, filler, users, warps)

    def buffer(self, name: str) -> Buffer:
        """Of a promotion."""
        return next(own.buffer for own in self.scop.promotions if own.buffer.name == name)

    def bytes(self, box: BoxCopy) -> int:
        """Of a box."""
        return math.prod(box.box) * self.buffer(box.buffer).layout.type.itemsize

    def box(self, copy: Copy, loop: Loop, around: tuple[Loop, ...], ahead: int, tiles: int) -> BoxCopy | None:
        """What all threads copy for a tile; None where that is no box, or no descriptor has the tensor."""
        statement = self.scop.statement(copy.statement)
        access = next(own for own in statement.promoted if own.writes)
        buffer, tensor = self.buffer(access.buffer), str(access.element.get_tuple_name(isl.dim_type.out))
        source = next((own for own in self.scop.buffers if own.name == tensor), None)
        if source is None or buffer.swizzle is None or not describable(source):
            return None
        shape, itemsize = buffer.layout.shape[1:], buffer.layout.type.itemsize
        whole = len(shape) == len(source.layout.shape) and shape[-1] * itemsize % SWIZZLED_ROW == 0
        if not whole or any(extent > _MOST_BOX for extent in shape[:-1]):
            return None
        blocks = tuple(own.iterator for own in around if own.kind is LoopKind.BLOCK)
        kept = {*blocks, loop.iterator}
        values: dict[str, IndexExpression] = {
            name: IndexLiteral(0) for argument in copy.arguments for name in variables(argument) - kept
        }
        values[loop.iterator] = minus(IndexVariable(loop.iterator), IndexLiteral(ahead))
        count = statement.domain.dim(isl.dim_type.set)
        arguments = [substituted(argument, values) for argument in copy.arguments[:count]]
        frame = Frame(self.scop.context, "first", (*blocks, loop.iterator), sizes=self.scop.sizes)
        first = function_map([index_function(own, frame) for own in arguments], frame.space())
        first = first.set_tuple_name(isl.dim_type.out, copy.statement).reset_tuple_id(isl.dim_type.in_)
        first = first.apply_range(access.element).reset_tuple_id(isl.dim_type.out)
        ends = {own.iterator: own.upper for own in around} | {loop.iterator: IndexLiteral(tiles - 1)}
        origin = tuple(_sums(first, frame.iterators, ends))
        if len(origin) != len(shape):
            return None
        return BoxCopy(copy.statement, tensor, buffer.name, origin, tuple(shape), buffer.swizzle.panel)


def _bytes(kernel: LoopTree) -> int:
    """Of what threads of a block share in a kernel, each buffer from where swizzled ones may begin."""
    found = {own.name: own.layout.span * own.layout.type.itemsize for own in shared_buffers(kernel)}
    return sum(-(-size // SWIZZLED_ROWS) * SWIZZLED_ROWS for size in found.values())


def describable(buffer: Buffer) -> bool:
    """Whether a descriptor can have a tensor; where that begins is only known when it is given."""
    layout, size = buffer.layout, buffer.layout.type.itemsize
    if layout.extents or layout.packed or not 2 <= len(layout.shape) <= _MOST_DIMENSIONS or layout.strides[-1] != 1:
        return False
    strides = [stride * size for stride in layout.strides[:-1]]
    fits = all(0 < own < _MOST_STRIDE and own % _UNIT == 0 for own in strides)
    return fits and all(0 < own < _MOST_EXTENT for own in layout.shape)


def _sums(first: isl.Map, names: tuple[str, ...], ends: Mapping[str, IndexExpression]) -> Iterator[Sum]:
    """The subscripts of a first element as sums, as long as they are."""
    context = first.get_ctx()
    for position, name in enumerate(names):
        end = ends[name]
        assert isinstance(end, IndexLiteral), "it was asked for"
        first = first.lower_bound_val(isl.dim_type.in_, position, isl.Val.zero(context))
        first = first.upper_bound_val(isl.dim_type.in_, position, isl.Val.int_from_si(context, end.value))
    functions = first.coalesce().as_pw_multi_aff()
    for dimension in range(functions.dim(isl.dim_type.out)):
        pieces = pieces_of(functions.get_at(dimension).coalesce())
        if len(pieces) != 1 or pieces[0][1].dim(isl.dim_type.div):
            return
        own = pieces[0][1]
        factors = ((n, int(own.get_coefficient_val(isl.dim_type.in_, p).to_python())) for p, n in enumerate(names))
        constant = int(own.get_constant_val().to_python())
        yield Sum(constant, tuple((name, factor) for name, factor in factors if factor))
