"""Prints streams of tiles: the thread that fills slots, and the loop of the warps that use them.

A group of four warps beside those of the loops has the filler.  Where tensors are not aligned as descriptors need it,
the loop is printed as it is, and these warps do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.base.grid import WARP, Argument, Place, TensorMap
from tc.codegen.printer.context import Context, Scope, TreePrinter
from tc.codegen.printer.printed import ALIGNED, ELSE, Printed, line, together
from tc.codegen.printer.routines import Parameter
from tc.codegen.text.fragment import Fragment, filled, infix, listed, named, prefix
from tc.codegen.text.streams import StreamWords
from tc.polyhedral.execution.streamed import Found, users_loop
from tc.polyhedral.ir.index_arithmetic import modulo, plus, quotient, times
from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
)
from tc.polyhedral.ir.streams import FILLING_WARPS, Await, BoxCopy, Channel, Drain, Expect, Leave, Stream, Sum, Use
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW

# Registers of a multiprocessor for each of a group's threads, what they are given by, and the fewest (PTX: setmaxnreg).
_REGISTERS: Final = (64 << 10) // (FILLING_WARPS * WARP)
_UNIT: Final = 8
_FEWEST: Final = 24
_MOST: Final = 240


def maps_of(context: Context, stream: Stream) -> tuple[TensorMap, ...]:
    """How the tensors lie whose boxes are copied."""
    return tuple(_map(context, own) for own in stream.boxes)


def _map(context: Context, box: BoxCopy) -> TensorMap:
    layout = context.layouts[box.tensor]
    number = [own.name for own in context.program.buffers].index(box.tensor)
    strides = tuple(stride * layout.type.itemsize for stride in layout.strides[:-1])
    panel = (*box.box[:-1], SWIZZLED_ROW // layout.type.itemsize)
    return TensorMap(number, layout.type, layout.shape, strides, panel)


def map_parameters(stream: Stream) -> tuple[Parameter, ...]:
    """The parameters of a kernel that say so."""
    type = filled("const __grid_constant__ {}", named("tc_tensor_map"))
    return tuple(
        Parameter(type, "", _map_name(stream, own), "", Argument(Place.MAP, n)) for n, own in enumerate(stream.boxes)
    )


def _map_name(stream: Stream, box: BoxCopy) -> str:
    return f"map{stream.boxes.index(box)}"


def registers(threads: int) -> tuple[int, int] | None:
    """Of the threads of the filler's group, and of so many others; None where all have as many as there can be."""
    groups = threads // (FILLING_WARPS * WARP)
    every = _REGISTERS // (groups + 1) // _UNIT * _UNIT
    others = min(_MOST, (every * (groups + 1) - _FEWEST) // groups // _UNIT * _UNIT)
    return None if every >= others else (_FEWEST, others)


@frozen
class StreamPrinter:
    """Prints both sorts of threads; ``scope``: around the loop."""

    printer: TreePrinter
    stream: Stream
    loop: Loop
    scope: Scope

    @property
    def context(self) -> Context:
        """That of the kernel."""
        return self.printer.context

    @property
    def words(self) -> StreamWords:
        """Of the language."""
        assert self.context.dialect.matrices is not None, "only languages with matrix instructions have streams"
        return self.context.dialect.matrices.groups.streams

    @property
    def tiles(self) -> Loop:
        """The loop over tiles."""
        return replace(self.loop, lower=IndexLiteral(0), stream=None)

    def filler(self) -> Printed:
        """What the thread does that fills slots."""
        inside = self.scope.inside(self.tiles)
        body = together(self.filling(own, inside) for own in self.stream.filler)
        return self.printer.loop(self.tiles, self.scope, body)

    def users(self) -> Printed:
        """The loop of the others."""
        tiles = users_loop(self.loop)
        inside = self.scope.inside(tiles)
        body = together(self.using(own, inside, tiles) for own in self.stream.users)
        printed = self.printer.loop(tiles, self.scope, body)
        assert self.context.dialect.matrices is not None, "there are some"
        return printed + line(self.context.dialect.matrices.groups.end) if self.stream.drained else printed

    def filling(self, step: Await | Expect | BoxCopy, scope: Scope) -> Printed:
        """One step of the filler."""
        match step:
            case Await():
                return self.awaiting(step, scope)
            case Expect(bytes, ahead):
                return line(self.words.expect, slot=self.slot(ahead, scope), bytes=bytes)
            case BoxCopy():
                return together(self.panels(step, scope))
            case _:
                assert_never(step)

    def using(self, step: Await | Use | Drain | Leave, scope: Scope, tiles: Loop) -> Printed:
        """One step of a user."""
        match step:
            case Await():
                return self.awaiting(step, scope)
            case Use():
                return self.printer.tree(tiles.body, scope)
            case Drain(pending):
                return line(self.words.drain, pending=pending)
            case Leave(ahead):
                left = line(self.words.leave, slot=self.slot(ahead, scope))
                if ahead >= 0:
                    return left
                first = IndexOperation(IndexOperator.GREATER_EQUAL, (self.tile, IndexLiteral(-ahead)))
                return left.braced(filled("if ({})", self.context.index(first, scope)))
            case _:
                assert_never(step)

    @property
    def tile(self) -> IndexExpression:
        """The number of the tile."""
        return IndexVariable(self.loop.iterator)

    def later(self, ahead: int) -> IndexExpression:
        """That of another one, among those with the same slot and an even or an odd phase."""
        shift = ahead % (2 * self.stream.slots)
        return plus(self.tile, IndexLiteral(shift)) if shift else self.tile

    def slot(self, ahead: int, scope: Scope) -> Fragment:
        """Of a tile."""
        shift = ahead % self.stream.slots
        later = plus(self.tile, IndexLiteral(shift)) if shift else self.tile
        return self.context.index(modulo(later, self.stream.slots), scope)

    def awaiting(self, step: Await, scope: Scope) -> Printed:
        """What waits for a channel."""
        phase = quotient(self.later(step.ahead + (self.stream.slots if step.before else 0)), self.stream.slots)
        parity = self.context.index(modulo(phase, 2), scope)
        own = step.channel.value
        kind = named(own) if self.words.channels is not None else Fragment(f"TC_{own.upper()}")
        return line(self.words.wait, kind=kind, slot=self.slot(step.ahead, scope), parity=parity)

    def panels(self, box: BoxCopy, scope: Scope) -> Iterator[Printed]:
        """The copies of a box, one for each panel."""
        context = self.context
        layout, tensor = context.layouts[box.buffer], context.layouts[box.tensor]
        size, columns = layout.type.itemsize, SWIZZLED_ROW // layout.type.itemsize
        place = times(layout.strides[0], modulo(self.later(box.ahead), self.stream.slots))
        for number in range(box.box[-1] // columns):
            to = plus(place, IndexLiteral(number * box.panel // size)) if number else place
            last = replace(box.origin[-1], constant=box.origin[-1].constant + number * columns)
            origin = [context.index(_expression(own), scope) for own in (*box.origin[:-1], last)]
            yield line(
                self.words.copy,
                function=named(f"tc_copy_box_{len(origin)}"),
                slot=self.slot(box.arrives, scope),
                to=prefix("&", filled("{}[{}]", context.pointer(box.buffer), context.index(to, scope))),
                source=context.pointer(box.tensor),
                size=size,
                rank=len(origin),
                shape=_numbers(tensor.shape),
                strides=_numbers(tensor.strides),
                box=_numbers((*box.box[:-1], columns)),
                origin=listed(origin),
                inner=listed(reversed(origin)),
                map=named(_map_name(self.stream, box)),
            )


def printed_users(printer: TreePrinter, loop: Loop, scope: Scope, plain: Printed | None) -> Printed:
    """The loop of the users; ``plain``: the loop as it is, for tensors that are not aligned."""
    assert loop.stream is not None, "it is one"
    users = StreamPrinter(printer, loop.stream, loop, scope).users()
    if plain is None:
        return users
    return users.braced(filled("if constexpr ({})", named(ALIGNED))) + plain.braced(ELSE)


def begin(printer: TreePrinter, found: Found, scope: Scope, threads: int) -> Printed:
    """What all threads do before the loops: channels begin, and the filler's group leaves.

    ``threads``: of the loops; ``scope``: around the loop of the stream.
    """
    own = StreamPrinter(printer, found.stream, found.loop, scope)
    words, stream, context = own.words, found.stream, printer.context
    z, y, x = (scope.variables[loop.iterator] for loop in found.above if loop.kind is LoopKind.THREAD)
    warps = threads // WARP
    first = filled("{} == {} && {} == 0 && {} == 0", z, warps, y, x)
    aligned = None if context.dialect.grids is None else named(ALIGNED)
    begun = line(words.begin, slots=stream.slots, warps=stream.warps, fenced=int(stream.fenced))
    if words.fence is not None and stream.fenced:
        begun += line(words.fence)
    begun = begun.braced(filled("if ({})", first)) + line(words.meet, number=len(context.barriers))
    begun = begun if aligned is None else begun.braced(filled("if ({})", aligned))
    filling = own.filler().braced(filled("if ({})", first if aligned is None else infix("&&", aligned, first)))
    counts = registers(threads)
    if words.retire is not None:
        filling = line(words.retire) + filling
    if words.give is not None and counts is not None:
        filling = line(words.give, count=counts[0]) + filling
    filling = (filling + line("return;")).braced(filled("if ({} >= {})", z, warps))
    if words.take is not None and counts is not None:
        filling += line(words.take, count=counts[1])
    return begun + filling


def channels(words: StreamWords, stream: Stream) -> Printed:
    """The declaration of the channels, where they are variables."""
    return Printed(()) if words.channels is None else line(words.channels, slots=stream.slots)


def channel_parameters(words: StreamWords) -> tuple[Parameter, ...]:
    """The channels as parameters of a function inside of a kernel."""
    if words.channels is None:
        return ()
    type = filled("{} *", named("uint64_t"))
    return tuple(Parameter(type, "", own.value, own.value) for own in Channel)


def _expression(sum: Sum) -> IndexExpression:
    found: IndexExpression | None = None
    for name, factor in sum.factors:
        term = times(factor, IndexVariable(name))
        found = term if found is None else plus(found, term)
    constant = IndexLiteral(sum.constant)
    return constant if found is None else plus(found, constant) if sum.constant else found


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))
