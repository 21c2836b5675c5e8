"""Proof of streams of tiles: two sorts of threads that wait for channels do what the loop with barriers does.

The loop is proven as a loop: each tile is copied some iterations before the one that uses it, and a barrier ends every
iteration.  The threads of a stream run the same copies, as boxes, and the same uses, each in the order of the tiles.
What the barriers ordered between the two is ordered by channels:

- A slot holds the tiles whose numbers leave the same remainder.  A channel of it has ended as many phases as tiles have
  arrived there, or were left; a wait for the phase of a tile therefore comes after all arrivals for it, provided that
  the thread has waited for the one before: then it is enough to know whether the number of the phase is even.
- So a tile is used after all bytes of its boxes are there: as many as the filler said before it began the copies.
- A slot is filled after the matrix instructions that read the tile before have ended, in all warps, each of which
  arrives only then.  The first tiles of slots wait for nothing: the phase before the first one counts as ended.

A box is compared with the instances of its copy: the place of each is the one where the box has the same element, in
panels and before pieces change places, which they do at addresses as at offsets (``tc.polyhedral.ir.swizzle``).  It may
bring more, inside of its slot: whatever is used of a tile was copied for it.

Nothing else of the kernel needs the barriers: the buffers of a stream are not touched by others, what is shared
besides is touched behind the loop alone, and each tensor that it writes is touched by one statement.  Behind the loop,
there may be other barriers: they wait for threads that have not ended (*CUDA C++ Programming Guide*, independent thread
scheduling), and those that fill slots end by themselves, for all slots have been left.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import islpy as isl

from tc.base.grid import WARP
from tc.language.program.program import Expression, Read, reads_in
from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.execution.streams import StreamLeaf, StreamPlace
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import Allocation, Barrier, Buffer, Copy, IndexLiteral, Loop, LoopKind, Sharing
from tc.polyhedral.ir.scop import PromotedAccess, Scop
from tc.polyhedral.ir.streams import Await, BoxCopy, Channel, Drain, Expect, Leave, Stream, Sum, Use
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, SWIZZLED_ROWS

# Elements of a box along a dimension, and the threads of a group (PTX ISA).
_MOST_BOX: Final = 256
_GROUP: Final = 4 * WARP


def check_streams(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first stream that may do something else than its loop."""
    return next(filter(None, (_Check(scop, place).find() for place in execution.streams)), None)


class _Check:
    """Of one stream.

    ``names``: of the loops around, and of the loop itself, in relations.
    """

    def __init__(self, scop: Scop, place: StreamPlace) -> None:
        assert place.loop.stream is not None, "it is a stream"
        self.scop: Final = scop
        self.place: Final = place
        self.stream: Final[Stream] = place.loop.stream
        self.copies: Final = [own for own in place.leaves if own.inside and isinstance(own.node, Copy)]
        self.uses: Final = [own for own in place.leaves if own.inside and own.matrices is not None]
        around = tuple(step for step in place.above if isinstance(step, Loop))
        self.loops: Final = (*around, place.loop)
        self.blocks: Final = [n for n, loop in enumerate(self.loops) if loop.kind is not LoopKind.THREAD]

    def find(self) -> Counterexample | None:
        """The first failure."""
        if not self.is_run_once() or not self.has_channels() or not self.is_alone():
            return Counterexample(Violation.UNORDERED_STREAM, self.place.loop.iterator)
        boxes = {own.statement: own for own in self.stream.boxes}
        if len(boxes) < len(self.stream.boxes) or len(boxes) != len(self.copies):
            return Counterexample(Violation.WRONG_BOX, self.place.loop.iterator)
        for copy in self.copies:
            box = boxes.get(copy.node.statement)
            if box is None or not self.is_box(copy, box):
                return Counterexample(Violation.WRONG_BOX, copy.node.statement)
        return self.wrong_use()

    # --- the loop, and what its threads do

    def is_run_once(self) -> bool:
        """Whether all threads of a block run the loop once, with matrix instructions and copies only."""
        loop, stream = self.place.loop, self.stream
        bounds = (loop.lower, loop.upper) == (IndexLiteral(-stream.ahead), IndexLiteral(stream.tiles - 1))
        plain = loop.kind is LoopKind.SEQUENTIAL and loop.step == 1 and not (loop.totals or loop.folds or loop.ranges)
        for step in self.place.above:
            match step:
                case int() | Allocation():
                    pass
                case Loop(lower=IndexLiteral(0), upper=IndexLiteral(), kind=LoopKind.BLOCK | LoopKind.THREAD):
                    pass
                case _:
                    return False
        inside = [own for own in self.place.leaves if own.inside]
        known = len(self.copies) + sum(isinstance(own.node, Barrier) for own in inside) + len(self.uses)
        if not (bounds and plain) or known != len(inside) or len(self.uses) != 1:
            return False
        matrices = self.uses[0].matrices
        return matrices is not None and not matrices.awaited and self.has_tiles()

    def has_tiles(self) -> bool:
        """Whether all is copied for some tile, and used of one."""
        position = len(self.loops) - 1
        for leaf, ahead in (*((own, self.stream.ahead) for own in self.copies), *((own, 0) for own in self.uses)):
            points = leaf.instances.domain().reset_tuple_id()
            first, last = (isl.Val.int_from_si(self.scop.context, n - ahead) for n in (0, self.stream.tiles - 1))
            within = points.lower_bound_val(isl.dim_type.set, position, first)
            if not points.is_subset(within.upper_bound_val(isl.dim_type.set, position, last)):
                return False
        return True

    def has_channels(self) -> bool:
        """Whether both sorts of threads wait and arrive as they must."""
        stream, threads = self.stream, math.prod(self.place.block)
        if threads % _GROUP or stream.warps != threads // WARP or not (stream.fenced and stream.drained):
            return False
        match stream.filler:
            case (Await(Channel.EMPTIED, 0, True), Expect(bytes, 0), *boxes):
                arriving = sum(self.bytes(own) for own in stream.boxes)
                alike = all(isinstance(own, BoxCopy) and own.ahead == own.arrives == 0 for own in boxes)
                filled = alike and bytes == arriving
            case _:
                return False
        match stream.users:
            case (Await(Channel.FILLED, 0, False), Use(), Drain(pending), Leave(ahead)):
                return filled and 0 <= pending <= -ahead < stream.slots
            case _:
                return False

    def is_alone(self) -> bool:
        """Whether nothing else in the kernel needs the barriers of the loop."""
        buffers = {own.buffer for own in self.stream.boxes}
        own = {leaf.node.statement for leaf in (*self.copies, *self.uses)}
        for statement in self.scop.statements:
            if statement.name not in own and any(access.buffer in buffers for access in statement.promoted):
                return False
        others = [leaf for leaf in self.place.leaves if not leaf.inside]
        if any(leaf.matrices is not None or leaf.node.statement in own for leaf in others):
            return False
        inside = [leaf.inside for leaf in self.place.leaves]
        before = self.place.leaves[: inside.index(True)]
        # Leaves are in the order of the text, and nothing but blocks and threads is around the loop.
        behind = self.place.leaves[len(inside) - inside[::-1].index(True) :]
        if len(before) + len(behind) < len(others) or any(isinstance(leaf.node, Barrier) for leaf in before):
            return False
        if self.share(before) or self.share(self.uses, besides=buffers):
            return False
        touched, written = list[str](), set[str]()
        for name in {leaf.node.statement for leaf in self.place.leaves if not isinstance(leaf.node, Barrier)}:
            statement = self.scop.statement(name)
            promoted = {access.buffer for access in statement.promoted}
            names = set(_tensors(statement.body.value, promoted)) | ({statement.body.target} - promoted)
            touched += names
            written |= {statement.body.target} - promoted
        return all(touched.count(tensor) == 1 for tensor in written)

    def share(self, others: Sequence[StreamLeaf], besides: Collection[str] = ()) -> bool:
        """Whether they touch what threads see of each other, besides these buffers."""
        sharing = {own.buffer.name: own.buffer.sharing for own in self.scop.promotions}
        return any(
            sharing[access.buffer] is not Sharing.THREAD and access.buffer not in besides
            for leaf in others
            for access in self.scop.statement(leaf.node.statement).promoted
        )

    # --- boxes

    def buffer(self, name: str) -> Buffer:
        """That of a promotion."""
        return next(own.buffer for own in self.scop.promotions if own.buffer.name == name)

    def bytes(self, box: BoxCopy) -> int:
        """Of a box, with what is outside of the tensor."""
        return math.prod(box.box) * self.buffer(box.buffer).layout.type.itemsize

    def is_box(self, copy: StreamLeaf, box: BoxCopy) -> bool:
        """Whether the box brings what all instances of a copy bring, for every tile, and stays in its slot."""
        statement = self.scop.statement(box.statement)
        access = next((own for own in statement.promoted if own.writes), None)
        value, buffer = statement.body.value, self.buffer(box.buffer)
        if access is None or access.buffer != box.buffer or statement.body.reduction is not None:
            return False
        source = next((own for own in self.scop.buffers if own.name == box.tensor), None)
        plain = isinstance(value, Read) and value.tensor == box.tensor and statement.body.target == box.buffer
        if not plain or source is None or source.layout.type is not buffer.layout.type:
            return False
        if not self.fits(box, buffer) or len(source.layout.shape) != len(box.box) or source.layout.strides[-1] != 1:
            return False
        places = self.after(copy, access.place).apply_range(self.bytes_in(buffer))
        elements = self.after(copy, access.element).reset_tuple_id(isl.dim_type.out)
        found = elements.domain_map().reverse().apply_range(self.brought(copy, box, buffer))
        return bool(places.is_subset(found))

    def fits(self, box: BoxCopy, buffer: Buffer) -> bool:
        """Whether its panels are apart, and in the slot."""
        swizzle, itemsize = buffer.swizzle, buffer.layout.type.itemsize
        row, rows = box.box[-1] * itemsize, math.prod(box.box[:-1])
        if (
            swizzle is None
            or row % SWIZZLED_ROW
            or box.panel % SWIZZLED_ROWS
            or any(n > _MOST_BOX for n in box.box[:-1])
        ):
            return False
        slot = swizzle.row * swizzle.rows
        if (
            buffer.layout.strides[0] * itemsize != slot
            or slot % SWIZZLED_ROWS
            or buffer.layout.shape[0] < self.stream.slots
        ):
            return False
        last = box.panel * (row // SWIZZLED_ROW - 1) + SWIZZLED_ROW * rows
        return box.panel >= SWIZZLED_ROW * rows and last <= slot

    def brought(self, copy: StreamLeaf, box: BoxCopy, buffer: Buffer) -> isl.Map:
        """``{ [iterations -> element] -> [byte] }``: where a box has an element, before pieces change places."""
        assert buffer.swizzle is not None, "it fits"
        names, itemsize = self.names_of(copy), buffer.layout.type.itemsize
        tile = f"{names[len(self.loops) - 1]} + {self.stream.ahead}"
        values = {loop.iterator: name for loop, name in zip(self.loops, names, strict=False)}
        values[self.place.loop.iterator] = f"({tile})"
        elements = [f"e{n}" for n in range(len(box.box))]
        inside = [f"({name} - ({_text(own, values)}))" for name, own in zip(elements, box.origin, strict=True)]
        rows = " + ".join(f"{math.prod(box.box[n + 1 : -1])} * {own}" for n, own in enumerate(inside[:-1])) or "0"
        column = f"({itemsize} * {inside[-1]})"
        slot = f"{buffer.swizzle.row * buffer.swizzle.rows} * (({tile}) mod {self.stream.slots})"
        byte = f"{slot} + {SWIZZLED_ROW} * ({rows}) + {box.panel} * floor({column}/{SWIZZLED_ROW})"
        byte += f" + ({column} mod {SWIZZLED_ROW})"
        within = " and ".join(f"0 <= {own} < {extent}" for own, extent in zip(inside, box.box, strict=True))
        return self.read(f"{{ [[{', '.join(names)}] -> [{', '.join(elements)}]] -> [{byte}] : {within} }}")

    def bytes_in(self, buffer: Buffer) -> isl.Map:
        """``{ [subscripts] -> [byte] }`` of an array, before pieces change places."""
        assert buffer.swizzle is not None, "it fits"
        names = [f"a{n}" for n in range(len(buffer.layout.strides))]
        size = buffer.layout.type.itemsize
        offset = " + ".join(
            f"{stride * size} * {name}" for stride, name in zip(buffer.layout.strides, names, strict=True)
        )
        found = self.read(f"{{ [{', '.join(names)}] -> [{offset}] }}")
        return found.apply_range(buffer.swizzle.panels(self.scop.context))

    # --- uses

    def wrong_use(self) -> Counterexample | None:
        """What is used of a tile and was not copied for it."""
        (use,) = self.uses
        for copy in self.copies:
            access = next(own for own in self.scop.statement(copy.node.statement).promoted if own.writes)
            copied = self.by_tile(copy, access, self.stream.ahead)
            promoted = self.scop.statement(use.node.statement).promoted
            reads = [own for own in promoted if own.buffer == access.buffer]
            if any(own.writes or not self.by_tile(use, own, 0).is_subset(copied) for own in reads):
                return Counterexample(Violation.UNORDERED_STREAM, f"{access.buffer} in {use.node.statement}")
        return None

    def by_tile(self, leaf: StreamLeaf, access: PromotedAccess, ahead: int) -> isl.Map:
        """``{ [blocks, tile] -> [subscripts] }`` that a leaf touches for a tile."""
        found, names = self.after(leaf, access.place), self.names_of(leaf)
        kept = [names[n] for n in self.blocks]
        tile = [*kept[:-1], f"{kept[-1]} + {ahead}"]
        return found.apply_domain(self.read(f"{{ [{', '.join(names)}] -> [{', '.join(tile)}] }}"))

    def after(self, leaf: StreamLeaf, relation: isl.Map) -> isl.Map:
        """``{ [iterations] -> ... }`` of a relation of instances."""
        return leaf.instances.reset_tuple_id(isl.dim_type.in_).apply_range(relation)

    def names_of(self, leaf: StreamLeaf) -> list[str]:
        """Of the loops around a leaf, in relations."""
        return [f"v{n}" for n in range(len(leaf.loops))]

    def read(self, text: str) -> isl.Map:
        """A relation."""
        return isl.Map.read_from_str(self.scop.context, text)


def _text(sum: Sum, values: dict[str, str]) -> str:
    return " + ".join((str(sum.constant), *(f"{factor} * {values[name]}" for name, factor in sum.factors)))


def _tensors(value: Expression, promoted: set[str]) -> Iterator[str]:
    """What an expression reads that is in no buffer."""
    return (own.tensor for own in reads_in(value) if own.tensor not in promoted)
