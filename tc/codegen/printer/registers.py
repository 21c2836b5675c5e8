"""Prints a register tile: its rows as vector variables, its loops unrolled, its lanes as vector operations.

The loops of a tile say which instances run, and are proven; printing only chooses a form that keeps every row in
registers.  The last vector of a row may have more lanes than the row: these compute unused values, and memory accesses
are masked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import product
from typing import Final, TypeGuard, assert_never

from tc.codegen.index.row_orders import chooses_rows, nested, operands_of, row_order
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.codegen.index.shared_vectors import ENOUGH_REGISTERS, WRITTEN_OUT, SharedVectors
from tc.codegen.index.transpose import transposed_nest
from tc.codegen.printer.context import Scope, TreePrinter, one_after_another
from tc.codegen.printer.copies import transposing_call
from tc.codegen.printer.printed import ELSE, Printed, line, together
from tc.codegen.printer.tile import NotVectorsError, Tile, Vector
from tc.codegen.printer.vector_statement import VectorStatement, iterations, lanes_in_use, spelled
from tc.codegen.printer.vector_totals import VectorTotals
from tc.codegen.text.fragment import call, filled, named
from tc.language.program.program import Read, reads_in
from tc.polyhedral.analysis.element_counts import most_trips
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Guard,
    IndexLiteral,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
    StatementBody,
    leaves,
)

_READ_ANEW: Final = line("{};", call("tc_read_anew"))


class Repeated(IntEnum):
    """What repeats a part of a tile's body."""

    ONCE = 0  # nothing does
    MANY = 1  # a printed loop
    FEW = 2  # a printed loop that compilers write out, or several taps of a window


class RegisterPrinter:
    """Prints the body of one allocation whose buffer is a register tile; NotVectorsError where it is none.

    ``outer``: prints the one around it, of another tile, which what touches only that is left to.
    """

    def __init__(self, trees: TreePrinter, buffer: Buffer, outer: RegisterPrinter | None = None) -> None:
        self._trees: Final = trees
        self._outer: Final = outer
        self._context: Final = trees.context
        self._tile: Final = Tile(buffer, str(trees.context.pointer(buffer.name)), trees.context.vector_bytes)
        self._uses_array = False
        self._changed: Final[set[int]] = set()  # how many lanes statements change
        self._totals: VectorTotals | None = None
        self._shared: Final[list[SharedVectors]] = []  # of the loops over rows around, outermost first
        self._numbers: Final = itertools.count()
        self._vectors: Final = itertools.count()

    def print(self, body: LoopTree, scope: Scope) -> Printed:
        """The body with its declarations; NotVectorsError where it must be printed as loops over an array."""
        printed = self._sharing(body, scope, {}, repeated=Repeated.ONCE)
        tile = self._tile
        if not self._uses_array:
            return tile.declarations() + printed
        type, name = self._context.storage(tile.type), named(tile.name)
        array = line("{} {}[{}] __attribute__((aligned(64)));", type, name, tile.span)
        return array + tile.declarations() + printed

    # --- loops

    def _sharing(self, body: LoopTree, scope: Scope, known: Mapping[str, int], *, repeated: Repeated) -> Printed:
        """All that one printed loop holds: prefetches, the offsets that its statements share, and these."""
        offsets = SharedOffsets(self._numbers)
        first, rest = _prefetches_first(body)
        printed = self._tree(rest, replace(scope, offsets=offsets), known, repeated=repeated)
        declared = together(
            line("const {} {} = {};", self._context.dialect.index, named(name), self._context.index(moving, scope))
            for name, moving in offsets.computed()
        )
        return self._trees.tree(first, spelled(scope, known)) + declared + printed

    def _tree(self, tree: LoopTree, scope: Scope, known: Mapping[str, int], *, repeated: Repeated) -> Printed:
        """A part of the body; ``known``: iterators of unrolled loops; ``repeated``: by the printed loop around."""
        if self._outer is None or not self._outer.touches(tree):
            return self._own_tree(tree, scope, known, repeated=repeated)
        if not self.touches(tree):
            return self._outer._tree(tree, scope, known, repeated=repeated)
        if isinstance(tree, Loop) and tree.kind not in (LoopKind.REGISTER, LoopKind.VECTOR):
            raise NotVectorsError("a loop over the terms of two tiles")
        return self._own_tree(tree, scope, known, repeated=repeated)

    def _own_tree(self, tree: LoopTree, scope: Scope, known: Mapping[str, int], *, repeated: Repeated) -> Printed:
        """A part that is not left to what prints another tile."""
        match tree:
            case Block(children) if repeated and len(children) > 1 and all(map(_is_rows, children)):
                return self._taps(children, scope, known)
            case Block(children):
                return one_after_another(
                    children, scope, lambda child, here: self._tree(child, here, known, repeated=repeated)
                )
            case Loop(kind=LoopKind.REGISTER) if (turned := self._turned_rows(tree, scope, known)) is not None:
                return turned
            case Loop(kind=LoopKind.REGISTER) if not known and not repeated and self._needs_array(tree, scope):
                return self._rows_through_array(tree, scope)
            case Loop(kind=LoopKind.REGISTER):
                return self._rows(tree, scope, known, repeated=repeated)
            case Loop(kind=LoopKind.VECTOR):
                return self._lane_loop(tree, scope, known, repeated=repeated)
            case Loop():
                if self.touches(tree.body):
                    return self._repeating_loop(tree, scope, known)
                return self._trees.tree(tree, spelled(scope, known))
            case Guard(condition, then, otherwise):
                test = self._context.index(condition, spelled(scope, known))
                printed = self._tree(then, scope, known, repeated=repeated).braced(filled("if ({})", test))
                if otherwise is not None:
                    other = self._tree(otherwise, scope.behind(printed.facts), known, repeated=repeated)
                    printed += other.braced(ELSE)
                return printed
            case Allocation(buffer, body) if self.touches(tree) and not known and not repeated and self._outer is None:
                return RegisterPrinter(self._trees, buffer, self).print(body, scope).braced()
            case Allocation() | Leaf():
                if self.touches(tree):
                    raise NotVectorsError(f"{self._tile.buffer.name} is used outside of its lanes")
                return self._trees.tree(tree, spelled(scope, known))
            case _:
                assert_never(tree)

    def _rows(self, loop: Loop, scope: Scope, known: Mapping[str, int], *, repeated: Repeated) -> Printed:
        """The body of a loop over rows for each of its iterations, behind the vectors that these share."""
        loop = self._ordered(loop)
        shared = SharedVectors(loop.iterator, self._room, self._vectors)
        shares = repeated is Repeated.FEW and self._shares(loop, known)
        self._shared.extend([shared] if shares else [])
        printed = one_after_another(
            iterations(loop, known),
            scope,
            lambda value, here: self._tree(loop.body, here, {**known, loop.iterator: value}, repeated=repeated),
        )
        if shares:
            self._shared.pop()
        return _declared(shared) + printed

    def _taps(self, taps: Sequence[LoopTree], scope: Scope, known: Mapping[str, int]) -> Printed:
        """Rows for each tap of a window: the next one reads again what both do.

        Registers that held it would be missing for the tile.
        """
        return one_after_another(
            enumerate(taps),
            scope,
            lambda tap, here: (
                (_READ_ANEW if tap[0] and self._shares(tap[1], known) else Printed(()))
                + self._tree(tap[1], here, known, repeated=Repeated.FEW)
            ),
        )

    def _ordered(self, loop: Loop) -> Loop:
        """The loops over rows of a statement that changes each by itself, in an order for which registers suffice."""
        match _rows_and_lanes(loop):
            case (_, _, *_, Loop(body=Instance() as instance) as lanes) as nest:
                body, tile = self._context.bodies[instance.statement], self._tile
                if body.target != tile.buffer.name or not chooses_rows(nest[:-1], instance, body):
                    return loop
                operands = operands_of(instance, body, lanes.iterator, len(tile.vectors))
                order = row_order(nest[:-1], operands, self._context.vector_registers - tile.size())
                return loop if order == nest[:-1] else nested(order, lanes)
            case _:
                return loop

    @property
    def _room(self) -> int:
        """For how many vectors of operands there are registers, beside the tile and one number for all lanes."""
        return self._context.vector_registers - self._tile.size() - 1

    def _shares(self, loop: LoopTree, known: Mapping[str, int]) -> bool:
        """Whether these are rows that share vectors: few registers are left, and nothing but the tile is written."""
        registers = self._context.vector_registers
        if registers >= ENOUGH_REGISTERS or 2 * self._tile.size() <= registers or self._room < 1:
            return False
        if any(vector.used < vector.width for vector in self._tile.vectors):
            return False  # masks of lanes take registers, too
        if not _is_rows(loop) or len(iterations(loop, known)) < 2:
            return False
        bodies = [self._context.bodies[leaf.statement] for leaf in leaves(loop.body) if isinstance(leaf, Scheduled)]
        return all(own.target == self._tile.buffer.name and own.reduction is not None for own in bodies)

    def _repeating_loop(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> Printed:
        """A loop in which the tile is used again and again, with the totals that the loop keeps of it."""
        if any(total.buffer != self._tile.buffer.name for total in loop.totals):
            raise NotVectorsError("totals of something else than the tile")
        for total in loop.totals:
            self._totals = VectorTotals(self._tile, self._context.dialect, loop, total)
        inner = scope.inside(loop)
        few = most_trips(loop, scope.ranges) <= WRITTEN_OUT
        printed = self._sharing(loop.body, inner, known, repeated=Repeated.FEW if few else Repeated.MANY)
        totals = self._totals
        for fold in loop.folds:
            if totals is None or fold.statement != totals.total.statement:
                raise NotVectorsError("partial sums of something else than the tile")
            printed += totals.fold(fold, inner.variables[loop.iterator])
        printed = self._trees.loop(loop, spelled(scope, known), printed)
        if totals is not None and loop.totals:
            self._totals = None
            return totals.around(printed)
        return printed

    def _lane_loop(self, loop: Loop, scope: Scope, known: Mapping[str, int], *, repeated: Repeated) -> Printed:
        if not self.touches(loop.body):
            return self._trees.tree(loop, spelled(scope, known))
        instance, inside = lanes_in_use(loop)
        if loop.step != 1:
            raise NotVectorsError("a loop over lanes with another step")
        vectors = self._used(loop, known)
        if self._context.bodies[instance.statement].target == self._tile.buffer.name:
            self._require_lanes(len(iterations(loop, known)))
        ragged = repeated and len({vector.width for vector in vectors}) > 1
        widest = vectors[0] if ragged else None
        statement = VectorStatement(
            self._context, self._tile, loop, instance, scope, known, widest, inside, tuple(self._shared)
        )
        try:
            if self._outer is not None and self._outer.touches(loop):
                raise NotVectorsError("rows of two tiles")
            printed = one_after_another(vectors, scope, lambda vector, _: statement.print(vector))
            return (statement.spread() + printed).braced() if ragged else printed
        except NotVectorsError:
            if repeated or inside is not None:
                raise
        return self._through_array(loop, statement, scope, known)

    def _require_lanes(self, lanes: int) -> None:
        """NotVectorsError where some statements change fewer lanes than others: vectors change all of theirs."""
        self._changed.add(lanes)
        if len(self._changed) > 1:
            raise NotVectorsError("fewer lanes than a row has in use")

    def _used(self, loop: Loop, known: Mapping[str, int]) -> list[Vector]:
        return self._tile.used(len(iterations(loop, known)))

    def _through_array(self, loop: Loop, statement: VectorStatement, scope: Scope, known: Mapping[str, int]) -> Printed:
        """What vectors cannot express runs on the rows in memory, once for a tile."""
        self._uses_array = True
        tile, vectors = self._tile, self._used(loop, known)
        stored = together(tile.to_array(row, vector) for row in statement.rows_read() for vector in vectors)
        if self._outer is not None and self._outer.touches(loop):
            stored += self._outer.rows_in_array(loop, scope, known)
        printed = self._trees.tree(loop, spelled(scope, known))
        changed = [statement.row()] if statement.body.target == tile.buffer.name else []
        return stored + printed + together(tile.from_array(row, vector) for row in changed for vector in vectors)

    def _needs_array(self, loop: Loop, scope: Scope) -> bool:
        """Whether loops over rows and lanes hold nothing but a statement that vectors cannot express."""
        nest = _rows_and_lanes(loop)
        if nest is None or not self.touches(loop) or (self._outer is not None and self._outer.touches(loop)):
            return False
        known = next(_places_in(nest[:-1]))
        statement = self._statement(nest[-1], scope, known)
        try:
            for vector in self._used(nest[-1], known):
                statement.print(vector)
        except NotVectorsError:
            return True
        return False

    def _rows_through_array(self, loop: Loop, scope: Scope) -> Printed:
        """What vectors cannot express, for all rows in memory: a loop over them is one text for the compiler."""
        *rows, lanes = _rows_and_lanes(loop) or ()
        self._uses_array = True
        read, changed = dict[tuple[int, Vector], None](), dict[tuple[int, Vector], None]()
        for known in _places_in(rows):
            statement, vectors = self._statement(lanes, scope, known), self._used(lanes, known)
            if statement.body.target == self._tile.buffer.name:
                self._require_lanes(len(iterations(lanes, known)))
                if statement.reads_lanes_of_tile() and self._tile.has_room():
                    vectors = [replace(vector, used=vector.width) for vector in vectors]
                changed |= dict.fromkeys((statement.row(), vector) for vector in vectors)
            read |= dict.fromkeys(product(statement.rows_read(), vectors))
            count = vectors[-1].first + vectors[-1].used
        printed = self._trees.tree(_with_lanes(loop, count), spelled(scope, {}))
        stored = together(self._tile.to_array(*own) for own in read)
        return stored + printed + together(self._tile.from_array(*own) for own in changed)

    def _statement(self, lanes: Loop, scope: Scope, known: Mapping[str, int]) -> VectorStatement:
        instance, inside = lanes_in_use(lanes)
        return VectorStatement(self._context, self._tile, lanes, instance, scope, known, inside=inside)

    def rows_in_array(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> Printed:
        """Brings the rows that a loop over lanes reads to the array; NotVectorsError where it changes the tile."""
        statement = self._statement(loop, scope, known)
        if statement.body.target == self._tile.buffer.name:
            raise NotVectorsError("rows that another tile changes")
        self._uses_array = True
        rows, vectors = statement.rows_read(), self._used(loop, known)
        return together(self._tile.to_array(row, vector) for row in rows for vector in vectors)

    def _turned_rows(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> Printed | None:
        """Rows that are columns in memory: through the array, by the call for transpositions."""
        nest = transposed_nest(loop)
        if nest is None or nest[1].kind is not LoopKind.VECTOR:
            return None
        name, body = self._tile.buffer.name, self._context.bodies[nest[2].statement]
        stores = isinstance(body.value, Read) and body.value.tensor == name
        if not stores and body.target != name:
            return None
        called = transposing_call(self._context, loop, spelled(scope, known))
        if called is None:
            return None
        self._uses_array = True
        moved: list[Printed] = []
        for value in iterations(loop, known):
            here = {**known, loop.iterator: value}
            row = VectorStatement(self._context, self._tile, nest[1], nest[2], scope, here).row()
            move = self._tile.to_array if stores else self._tile.from_array
            moved += [move(row, vector) for vector in self._used(nest[1], here)]
        return together((*moved, called) if stores else (called, *moved))

    def touches(self, tree: LoopTree) -> bool:
        """Whether an instance inside accesses the tile."""
        return _touches(tree, self._tile.buffer.name, self._context.bodies)


def _declared(vectors: SharedVectors) -> Printed:
    return together(
        line("{} {} = {};", own.type, own.name, own.loaded) + line("{};", call("tc_in_register", own.name))
        for own in vectors.loaded()
    )


def _is_rows(tree: LoopTree) -> TypeGuard[Loop]:
    return isinstance(tree, Loop) and tree.kind is LoopKind.REGISTER


def _rows_and_lanes(loop: Loop) -> tuple[Loop, ...] | None:
    """Loops over rows, with one over lanes inside that holds one statement, and nothing else; None for others."""
    match loop:
        case Loop(kind=LoopKind.REGISTER, body=Loop() as inner):
            found = _rows_and_lanes(inner)
            return None if found is None else (loop, *found)
        case Loop(kind=LoopKind.VECTOR, step=1, body=Instance()):
            return (loop,)
        case _:
            return None


def _with_lanes(loop: Loop, lanes: int) -> Loop:
    """The loops of ``_rows_and_lanes`` with so many lanes."""
    if loop.kind is LoopKind.VECTOR:
        return replace(loop, upper=IndexLiteral(iterations(loop, {})[0] + lanes - 1))
    assert isinstance(loop.body, Loop)
    return replace(loop, body=_with_lanes(loop.body, lanes))


def _places_in(rows: Sequence[Loop], known: Mapping[str, int] | None = None) -> Iterator[Mapping[str, int]]:
    """The values of the iterators of loops inside each other, in order."""
    known = known or {}
    if not rows:
        yield known
        return
    for value in iterations(rows[0], known):
        yield from _places_in(rows[1:], {**known, rows[0].iterator: value})


def _prefetches_first(body: LoopTree) -> tuple[Block, LoopTree]:
    """The prefetches at the beginning of a body, and the rest."""
    children = body.children if isinstance(body, Block) else (body,)
    first = tuple(itertools.takewhile(lambda child: isinstance(child, Prefetch), children))
    return (Block(first), Block(children[len(first) :])) if first else (Block(()), body)


def _touches(tree: LoopTree, buffer: str, bodies: Mapping[str, StatementBody]) -> bool:
    """Whether an instance inside accesses the buffer."""
    match tree:
        case Barrier() | Prefetch():
            return False
        case Scheduled(statement, _):
            body = bodies[statement]
            return body.target == buffer or any(read.tensor == buffer for read in reads_in(body.value))
        case Matrices(nest=nest):
            return _touches(nest, buffer, bodies)
        case Block(children):
            return any(_touches(child, buffer, bodies) for child in children)
        case Guard(_, then, otherwise):
            return _touches(then, buffer, bodies) or (otherwise is not None and _touches(otherwise, buffer, bodies))
        case Loop() | Allocation():
            return _touches(tree.body, buffer, bodies)
        case _:
            assert_never(tree)
