"""Counts what one block of a kernel does, from its loops: how often warps run each leaf, and at which addresses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.language.program.specialization import Layout
from tc.polyhedral.execution.streamed import is_stream, users_loop
from tc.polyhedral.execution.thread_registers import ThreadRegisters
from tc.polyhedral.gpu.cost.accesses import Access, price
from tc.polyhedral.gpu.cost.changes import Changes, changes
from tc.polyhedral.gpu.cost.lane_values import Array, value_of
from tc.polyhedral.gpu.cost.matrix import group_products, matrix_products
from tc.polyhedral.gpu.cost.operations import operations
from tc.polyhedral.gpu.cost.packed_stores import stores_at_once
from tc.polyhedral.gpu.cost.sample_loops import Signature, total
from tc.polyhedral.gpu.cost.scope import Around, Scope
from tc.polyhedral.gpu.cost.tally import NOTHING, Tally, tally
from tc.polyhedral.gpu.cost.touch import Arguments, Touching
from tc.polyhedral.gpu.cost.unrolling import copies_of, depth_of, holds_barrier
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Copy,
    GroupMma,
    Guard,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Mma,
    Prefetch,
    StatementBody,
    leaves,
    variables,
)
from tc.polyhedral.ir.streams import Expect
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW
from tc.polyhedral.ir.totals import Total
from tc.prediction.demand import SECTOR

# A loop counts, compares and branches.
_ITERATION: Final = tally(alu=2, control=1)
# What is decided again in each iteration.
_CONDITION: Final = tally(alu=1, control=0.5)
_BARRIER: Final = tally(control=2)
# What a thread does to wait for a channel, or to begin a copy: addresses, a number of a phase, a branch.
_AWAIT: Final = 2
# A shuffle takes as long as so many operations that wait for one another.
_SHUFFLE: Final = 6
# A butterfly over the lanes of a warp: a shuffle and an operation for each halving.
_HALVINGS: Final = 5

# What code asks for, and its accesses that may still be one with others.
Found: TypeAlias = tuple[Tally, tuple[Access, ...]]


@frozen
class BlockCounter:
    """``block``, ``thread``: the coordinates along the loops over them, outermost first: of the block, of all threads.

    ``stages``: whether copies are asynchronous anywhere in the kernel.
    """

    bodies: Mapping[str, StatementBody]
    layouts: Mapping[str, Layout]
    touching: Touching
    block: tuple[int, ...]
    thread: tuple[Array, ...]
    registers: ThreadRegisters
    changing: dict[Loop, Changes] = field(default_factory=dict, compare=False, repr=False)

    def demand(self, nest: LoopTree, scope: Scope) -> Tally:
        """What the block asks for."""
        found, left = self._tree(nest, scope)
        return found + price(left)

    def _tree(self, tree: LoopTree, scope: Scope) -> Found:
        if not scope.runs:
            return NOTHING, ()
        match tree:
            case Block(children):
                return self._sequence(children, scope)
            case Guard():
                return self._guard(tree, scope)
            case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
                return self._mapped(tree, scope)
            case Loop(kind=LoopKind.LANES):
                return _lanes(tree, scope)
            case Loop() if is_stream(tree):
                return self._stream(tree, scope)
            case Loop():
                return self._loop(tree, scope)
            case Allocation(_, body):
                return self._tree(body, scope)
            case Barrier():
                waits = 0.0 if tree.pending is None else 1 / (tree.pending + 1)
                return _BARRIER * (scope.warps) + tally(barriers=1, copy_waits=waits), ()
            case Instance():
                return self._instance(tree, scope)
            case Mma():
                return matrix_products(tree, scope), ()
            case GroupMma():
                return group_products(tree, scope), ()
            case Prefetch():
                return NOTHING, ()
            case _:
                assert_never(tree)

    def _guard(self, guard: Guard, scope: Scope) -> Found:
        """Both branches.  What copies of a loop do under conditions of their own is no straight-line code."""
        holds = np.asarray(value_of(guard.condition, scope.values)).astype(bool)
        copied = variables(guard.condition) & {name for name, _ in scope.axes}
        repeated = variables(guard.condition) & {own.iterator for own in scope.loops}
        found, left = self._tree(guard.then, scope.where(holds))
        if guard.otherwise is not None:
            other, more = self._tree(guard.otherwise, scope.where(np.logical_not(holds)))
            found, left = found + other, (*left, *more)
        if copied or repeated:
            found = found + _CONDITION * (scope.warps * scope.copies(copied))
        if copied and not holds.all():
            return found + price(left, apart=True), ()
        return found, left

    def _sequence(self, children: Sequence[LoopTree], scope: Scope) -> Found:
        """What stands between barriers is straight-line code.  Copies in loops are ahead; others are waited for."""
        found: Tally = NOTHING
        left: tuple[Access, ...] = ()
        begun = set[str | None]()
        for child in children:
            own, more = self._tree(child, scope)
            found = found + own
            if isinstance(child, Barrier) and child.statement in begun:
                found = found + tally(global_waits=1)
            if not (scope.loops or scope.axes):
                begun |= {leaf.group for leaf in leaves(child) if isinstance(leaf, Copy)}
            if holds_barrier(child):
                found = found + price([access for access in left if not access.constant])
                left = tuple(access for access in left if access.constant)
            left = (*left, *more)
        return found, left

    def _mapped(self, loop: Loop, scope: Scope) -> Found:
        """The body for the iterations that the hardware runs."""
        if loop.kind is LoopKind.BLOCK:
            own: Array = np.full(1, self.block[scope.blocks])
            inside = replace(scope, blocks=scope.blocks + 1)
        else:
            own = self.thread[scope.threads]
            inside = replace(scope, threads=scope.threads + 1)
        lower, upper = (value_of(bound, scope.values) for bound in (loop.lower, loop.upper))
        holds = (own >= lower) & (own <= upper) & ((own - lower) % loop.step == 0)
        inside = replace(inside, values={**inside.values, loop.iterator: own}).where(holds)
        return self._tree(loop.body, inside)

    def _loop(self, loop: Loop, scope: Scope) -> Found:
        lower, upper = (value_of(bound, scope.values) for bound in (loop.lower, loop.upper))
        counts = np.where(scope.active, (upper - lower) // loop.step + 1, 0)
        trips = int(counts.max())
        if trips <= 0:
            return NOTHING, ()
        scope = scope.begun(loop.iterator, variables(loop.lower))
        own = {total.statement for total in _in_floats(loop)}
        stored = stores_at_once(loop, self.bodies, self.layouts)
        scope = replace(scope, pieces=_is_of_pieces(loop), stored=stored, totals=scope.totals | own)
        copies = copies_of(loop, trips, scope.values, scope.active.size)
        numbers = scope.numbers(copies) if copies > 1 else np.int64(0)
        rounds = -(-trips // copies)

        def inside(number: int) -> Scope:
            value = lower + (numbers + number * copies) * loop.step
            around = Around(loop.iterator, loop.step * copies, rounds)
            own = scope if rounds == 1 else scope.repeated(around, value)
            if copies > 1:
                own = own.unrolled(loop.iterator, value, copies)
            elif rounds == 1:
                own = replace(own, values={**own.values, loop.iterator: value})
            return own.where(value <= upper)

        found, left = self._tree(loop.body, inside(0)) if rounds == 1 else self._rounds(loop, rounds, inside, scope)
        return found + self._sums(loop, trips, scope), left

    def _stream(self, loop: Loop, scope: Scope) -> Found:
        """What users of tiles ask for, and one thread that begins the copies of boxes: no instructions move these."""
        stream = loop.stream
        assert stream is not None, "it is one"
        found, left = self._loop(users_loop(loop), scope)
        bytes = sum(own.bytes for own in stream.filler if isinstance(own, Expect))
        boxes = sum(own.box[-1] * self.layouts[own.buffer].type.itemsize // SWIZZLED_ROW for own in stream.boxes)
        users = tally(alu=_AWAIT, control=_AWAIT, shared_reads=1, shared_wavefronts=1) * scope.warps
        filler = tally(alu=_AWAIT * (1 + boxes), control=_AWAIT, copies=1 + boxes)
        tile = users + filler + tally(copied=bytes / SECTOR, copy_waits=1 / (stream.slots - 1), shared_waits=1)
        return found + tile * stream.tiles, left

    def _sums(self, loop: Loop, trips: int, scope: Scope) -> Tally:
        """What adds the partial sums of arrays to totals in float32, in a loop and behind it."""
        times = [(fold.statement, trips / fold.every) for fold in loop.folds if fold.statement in scope.totals]
        times += [(total.statement, 1.0) for total in _in_floats(loop)]
        found: Tally = NOTHING
        for statement, often in times:
            span = self.layouts[self.bodies[statement].target].span
            each = span * often * scope.warps
            found = found + tally(fma=each)
            if self.registers.totals_in_memory(span):
                found = found + tally(local_reads=each, local_writes=each)
        return found

    def _rounds(self, loop: Loop, rounds: int, inside: Callable[[int], Scope], scope: Scope) -> Found:
        """A loop that stays one; what does not depend on it is read before, or written behind it."""
        waits = holds_barrier(loop.body)
        outside: list[Access] = []

        def evaluate(number: int) -> Tally:
            own, left = self._tree(loop.body, inside(number))
            moves = [_moves(access, loop, waits=waits) for access in left]
            if not outside:
                outside.extend(itertools.compress(left, moves))
            return own + price([access for access, moved in zip(left, moves, strict=True) if not moved])

        found = total(rounds, evaluate, self._signature(loop, inside), depth_of(loop.body))
        return found + _ITERATION * (rounds * scope.warps), tuple(outside)

    def _signature(self, loop: Loop, inside: Callable[[int], Scope]) -> Signature:
        """What tells the iterations apart: what is decided inside, and which threads run."""
        if loop not in self.changing:
            self.changing[loop] = changes(loop.body, frozenset({loop.iterator}))
        decided = self.changing[loop]

        def signature(number: int) -> object:
            own = inside(number)
            return decided.signature(own.values), own.active.tobytes()

        return signature

    def _instance(self, leaf: Instance, scope: Scope) -> Found:
        body = self.bodies[leaf.statement]
        arguments = dict(zip(body.iterators, leaf.arguments, strict=True))
        asynchronous = isinstance(leaf, Copy) and leaf.group is not None
        own = operations(body, self.layouts[body.target].type)
        accesses, addresses = self.touching.accesses(leaf, body, arguments, scope, asynchronous=asynchronous)
        found = own * (scope.instances) + addresses
        return found + tally(chain=self._chain(body, own, arguments, scope)), accesses

    def _chain(self, body: StatementBody, own: Tally, arguments: Arguments, scope: Scope) -> float:
        """Operations of one thread that wait for one another: all those that update one element."""
        if body.reduction is None:
            return float(own.sum())
        names = self.touching.mentioned(body.subscripts, arguments, scope)
        return math.prod(length for name, length in scope.axes if name not in names)


def _in_floats(loop: Loop) -> Iterator[Total]:
    """The totals of arrays that are in float32: those in float64 seldom grow, or are of few sums."""
    return (total for total in loop.totals if total.buffer is not None and (total.cascaded or not total.wide))


def _moves(access: Access, loop: Loop, *, waits: bool) -> bool:
    """Whether an access is done once, outside of the loop; what other threads write meanwhile is read again."""
    return loop.iterator not in access.mentioned and (access.constant or not waits)


def _lanes(loop: Loop, scope: Scope) -> Found:
    """All lanes of a warp combine what they have."""
    assert isinstance(loop.body, Instance), "lanes combine one thing at a time"
    shuffled = tally(shuffles=_HALVINGS, fma=_HALVINGS) * scope.instances
    return shuffled + tally(chain=_HALVINGS * _SHUFFLE), ()


def _is_of_pieces(loop: Loop) -> bool:
    """Whether neighbouring elements are moved at once where the hardware can."""
    parts = loop.body.children if isinstance(loop.body, Block) else (loop.body,)
    return loop.kind is LoopKind.VECTOR and all(isinstance(part, Instance) for part in parts)
