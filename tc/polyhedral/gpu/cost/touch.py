"""Which elements an instance of a statement accesses, for all threads, and what it takes to compute their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.language.program.program import Expression, IteratorReference, Read, children, walk
from tc.language.program.specialization import Layout
from tc.polyhedral.gpu.cost.accesses import Access, Way, widest_of
from tc.polyhedral.gpu.cost.banks import WIDEST
from tc.polyhedral.gpu.cost.lane_values import Array, Values, subscript_value, value_of
from tc.polyhedral.gpu.cost.scope import Scope
from tc.polyhedral.gpu.cost.tally import NOTHING, Tally, tally
from tc.polyhedral.ir.loops import (
    Copy,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Sharing,
    StatementBody,
    variables,
)
from tc.prediction.demand import SECTOR

# Of index expressions: to divide by a constant is to multiply, to shift and to correct.
_DIVIDE: Final = 4
_REMAINDER: Final = 2
_DIVISIONS: Final = (IndexOperator.FLOOR_DIVIDE, IndexOperator.NONNEGATIVE_DIVIDE, IndexOperator.EXACT_DIVIDE)
_REMAINDERS: Final = (IndexOperator.NONNEGATIVE_REMAINDER, IndexOperator.ZERO_REMAINDER)
# An address of 64 bits is made in two steps.
_ADDRESS: Final = 2
# What data choose is taken for a random element: the golden ratio spreads numbers evenly.
_SPREAD: Final = 2654435761
# So many iterations further, neighbours in memory are in other sectors.
_FAR: Final = 8

Arguments = Mapping[str, IndexExpression]


@frozen
class Touching:
    """``sharing``: of the buffers that allocations bring; other tensors are in global memory, where the kernel writes
    ``written``.
    """

    layouts: Mapping[str, Layout]
    sharing: Mapping[str, Sharing]
    written: frozenset[str]

    def accesses(
        self, leaf: Instance, body: StatementBody, arguments: Arguments, scope: Scope, *, asynchronous: bool
    ) -> tuple[tuple[Access, ...], Tally]:
        """Those of an instance, and the arithmetic of their addresses."""
        values = {**scope.values, **{name: value_of(own, scope.values) for name, own in arguments.items()}}
        reads = [read for value in (body.value, *body.subscripts) for read in _outer_reads(value)]
        found: list[Access] = []
        for number, read in enumerate(reads):
            way = Way.COPY if asynchronous else Way.READ
            found += self._read(read, way, values, arguments, scope, (id(leaf), number))
        if (sharing := self.sharing.get(body.target)) not in (Sharing.THREAD, Sharing.LANES):
            target = Read(body.target, body.subscripts, self.layouts[body.target].type)
            way = Way.ARRIVE if asynchronous else Way.WRITE
            if body.atomic:
                way = Way.ATOMIC
            elif body.reduction is not None:
                found += self._read(target, Way.READ, values, arguments, scope, (id(leaf), -1))
            access = self._access(target, way, values, arguments, scope, shared=sharing is Sharing.BLOCK)
            found.append(replace(access, widest=WIDEST) if self._stores_vectors(leaf, body, scope) else access)
        addresses = self._addresses(found, arguments, scope)
        return tuple(found), addresses

    def _stores_vectors(self, leaf: Instance, body: StatementBody, scope: Scope) -> bool:
        """Whether an unrolled loop stores what a thread keeps, a whole number of vectors, where they are neighbours."""
        value, count = body.value, WIDEST // self.layouts[body.target].type.itemsize
        kept = isinstance(value, Read) and self.sharing.get(value.tensor) is Sharing.THREAD
        return isinstance(leaf, Copy) and kept and bool(scope.axes) and scope.axes[0][1] % count == 0

    def _read(
        self, read: Read, way: Way, values: Values, arguments: Arguments, scope: Scope, place: tuple[int, int]
    ) -> Iterator[Access]:
        """A read, and those of the indices that choose what it reads."""
        sharing = self.sharing.get(read.tensor)
        inner = [own for subscript in read.subscripts for own in _outer_reads(subscript)]
        depth = 1
        for number, own in enumerate(inner):
            below = list(self._read(own, Way.READ, values, arguments, scope, (place[0], 100 * place[1] + number)))
            depth = max([depth, *(1 + access.depth for access in below)])
            yield from below
        if sharing in (Sharing.THREAD, Sharing.LANES):
            return
        shared = sharing is Sharing.BLOCK
        access = self._access(read, way, values, arguments, scope, shared=shared)
        access = replace(access, depth=depth, gathered=bool(inner), constant=read.tensor not in self.written)
        if way is Way.READ and not shared and scope.loops:
            growth, nearest = self._growth(read, access, arguments, scope, place)
            access = replace(access, growth=growth, nearest=nearest)
        yield access

    def _access(
        self, read: Read, way: Way, values: Values, arguments: Arguments, scope: Scope, *, shared: bool
    ) -> Access:
        itemsize = self.layouts[read.tensor].type.itemsize
        pieces = scope.pieces or (scope.stored and way is Way.WRITE and not shared)
        return Access(
            read.tensor,
            shared,
            way,
            np.asarray(self.offset(read, values)),
            scope.active,
            itemsize,
            self.mentioned(read.subscripts, arguments, scope),
            widest_of(shared=shared or way is Way.ARRIVE, pieces=pieces, itemsize=itemsize),
            pieces=pieces and len(scope.axes) > 0,
        )

    def offset(self, read: Read, values: Values) -> Array:
        """Of an element from the first one of its tensor, in elements."""
        layout = self.layouts[read.tensor]
        found: Array = np.zeros(1, dtype=np.int64)
        for subscript, stride, extent in zip(read.subscripts, layout.strides, layout.shape, strict=True):
            own = subscript_value(subscript, values, lambda inner: self._chosen(inner, values))
            if any(isinstance(part, Read) for part in walk(subscript)):
                own = own % max(extent, 1)
            found = found + own * stride
        return found

    def _chosen(self, read: Read, values: Values) -> Array:
        """What an element of a tensor of indices may be."""
        return (self.offset(read, values) * _SPREAD) & ((1 << 31) - 1)

    def mentioned(self, subscripts: Iterable[Expression], arguments: Arguments, scope: Scope) -> frozenset[str]:
        """The loops that subscripts depend on."""
        names = {part.name for value in subscripts for part in walk(value) if isinstance(part, IteratorReference)}
        return scope.depending(set().union(*(variables(arguments[name]) for name in names if name in arguments)))

    def _growth(
        self, read: Read, access: Access, arguments: Arguments, scope: Scope, place: tuple[int, int]
    ) -> tuple[float, float]:
        """``Access.growth`` and ``nearest``: from how many sectors are new in the next iteration of each loop."""
        if place in scope.known:
            return scope.known[place]
        running = access.active.any(axis=tuple(range(access.active.ndim - 1)))
        offsets, lanes = np.broadcast_arrays(access.offsets, running)
        own = np.unique(offsets[lanes] * access.itemsize)
        before = np.unique(own // SECTOR)
        growth = nearest = 1.0
        for around in scope.loops:
            part = 1 / around.trips
            if around.iterator in access.mentioned:
                moved = self._moved(read, arguments, scope, around.iterator, around.step) * access.itemsize
                further = (
                    (1 - float(np.isin((own + times * moved) // SECTOR, before).mean())) / times for times in (1, _FAR)
                )
                new = max(further)
                part = (1 + (around.trips - 1) * new) / around.trips
            growth *= part
            nearest = part
        scope.known[place] = growth, nearest
        return growth, nearest

    def _moved(self, read: Read, arguments: Arguments, scope: Scope, iterator: str, step: int) -> int:
        """By how many elements the first thread's element is further on in the next iteration."""
        offsets = []
        moves = {name for name, own in scope.within.items() if iterator in own}
        for values in (scope.first, {n: own + step if n in moves else own for n, own in scope.first.items()}):
            inside = {**values, **{name: value_of(own, values) for name, own in arguments.items()}}
            offsets.append(int(np.asarray(self.offset(read, inside)).reshape(-1)[0]))
        return offsets[1] - offsets[0]

    def _addresses(self, accesses: Sequence[Access], arguments: Arguments, scope: Scope) -> Tally:
        """What the innermost loops compute anew for addresses: sums of steps, and divisions for each copy."""
        repeated = {scope.loops[-1].iterator} if scope.loops else set()
        copied = {name for name, _ in scope.axes}
        count = float(_ADDRESS * sum(not own.shared and bool(own.mentioned & repeated) for own in accesses))
        for own in arguments.values() if accesses else ():
            divided = _divisions(own, copied)
            count += divided * scope.copies(variables(own)) if divided else _divisions(own, repeated)
        return tally(alu=count * scope.warps) if count else NOTHING


def _divisions(expression: IndexExpression, names: set[str]) -> int:
    """Operations for quotients and remainders that depend on some variables."""
    match expression:
        case IndexLiteral() | IndexVariable():
            return 0
        case IndexOperation(operator, operands):
            inside = sum(_divisions(operand, names) for operand in operands)
            if not variables(expression) & names:
                return 0
            return inside + (_DIVIDE if operator in _DIVISIONS else _REMAINDER if operator in _REMAINDERS else 0)
        case _:
            assert_never(expression)


def _outer_reads(expression: Expression) -> Iterator[Read]:
    """The reads in an expression that are in no subscript of another."""
    if isinstance(expression, Read):
        yield expression
        return
    for child in children(expression):
        yield from _outer_reads(child)
