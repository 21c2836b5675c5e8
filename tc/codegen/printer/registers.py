"""Prints a register tile: its rows as vector variables, its loops unrolled, its lanes as vector operations.

The loops of a tile say which instances run, and are proven; printing only chooses a form that keeps every row in
registers.  The last vector of a row may have more lanes than the row: these compute unused values, and memory accesses
are masked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tc.base.types import ScalarType
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.codegen.printer.routines import braced
from tc.codegen.printer.transpose import transposed_nest
from tc.codegen.printer.vector_statement import NotVectorsError, Vector, VectorStatement, iterations, reads_in, spelled
from tc.codegen.printer.vector_totals import VectorTotals
from tc.codegen.text.fragment import Fragment, call, prefix
from tc.language.program.program import Read
from tc.polyhedral.cpu.microkernel import vector_widths
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
)

if TYPE_CHECKING:
    from tc.codegen.printer.kernel import KernelPrinter, Scope


class RegisterPrinter:
    """Prints the body of one allocation whose buffer is a register tile."""

    def __init__(self, kernel: KernelPrinter, buffer: Buffer, name: str, vector_bytes: int) -> None:
        self._kernel = kernel
        self._buffer = buffer
        self._name = name
        self._type = buffer.layout.type
        if self._type not in (ScalarType.FLOAT32, ScalarType.FLOAT64):
            raise NotVectorsError(f"{buffer.name} is not of floating point")
        moving = [d for d, step in enumerate(buffer.layout.strides) if step == 1 and buffer.layout.shape[d] > 1]
        if len(moving) != 1:
            raise NotVectorsError(f"{buffer.name} has no row of lanes")
        self._lane = moving[0]
        self._lanes = buffer.layout.shape[self._lane]
        self._vectors = tuple(self._cut(vector_bytes // self._type.itemsize))
        self._variables: set[str] = set()
        self._uses_array = False
        self._totals: VectorTotals | None = None
        self._numbers = itertools.count()

    def _cut(self, width: int) -> Iterator[Vector]:
        if width < 2:
            raise NotVectorsError("the target has no vectors")
        first = 0
        for number, (lanes, used) in enumerate(vector_widths(self._lanes, width)):
            if lanes < 2:
                raise NotVectorsError("a vector of one lane")
            yield Vector(number, first, lanes, used)
            first += used

    def lines(self, body: LoopTree, scope: Scope) -> list[str]:
        """The body with its declarations; NotVectorsError where it must be printed as loops over an array."""
        lines = self._sharing(body, scope, {}, repeated=False)
        declared = [f"{self._vector_type(v)} {', '.join(names)};" for v, names in self._declared()]
        array = f"{self._kernel.storage(self._type)} {self._name}[{self._buffer.layout.span}]"
        return [*([f"{array} __attribute__((aligned(64)));"] if self._uses_array else []), *declared, *lines]

    def _declared(self) -> Iterator[tuple[Vector, list[str]]]:
        for vector in self._vectors:
            ending = f"_{vector.number}"
            names = [name for name in self._variables if name.endswith(ending)]
            yield vector, sorted(names, key=lambda name: int(name.split("_")[-2]))

    def _vector_type(self, vector: Vector) -> str:
        return f"tc_{self._type}x{vector.width}"

    # --- loops

    def _sharing(self, body: LoopTree, scope: Scope, known: Mapping[str, int], *, repeated: bool) -> list[str]:
        """The lines of all that one printed loop holds, behind the offsets that they share."""
        offsets = SharedOffsets(self._numbers)
        lines = self._tree(body, replace(scope, offsets=offsets), known, repeated=repeated)
        type = self._kernel.index_type
        return [*offsets.declarations(type, lambda moving: self._kernel.index(moving, scope)), *lines]

    def _tree(self, tree: LoopTree, scope: Scope, known: Mapping[str, int], *, repeated: bool) -> list[str]:
        """The lines of a part; ``known``: iterators of unrolled loops; ``repeated``: a printed loop stands around."""
        match tree:
            case Block(children):
                return [line for child in children for line in self._tree(child, scope, known, repeated=repeated)]
            case Loop(kind=LoopKind.REGISTER) if (lines := self._turned_rows(tree, scope, known)) is not None:
                return lines
            case Loop(kind=LoopKind.REGISTER):
                return [
                    line
                    for value in iterations(tree, known)
                    for line in self._tree(tree.body, scope, {**known, tree.iterator: value}, repeated=repeated)
                ]
            case Loop(kind=LoopKind.VECTOR):
                return self._lane_loop(tree, scope, known, repeated=repeated)
            case Loop():
                if _touches(tree.body, self._buffer.name, self._kernel.bodies):
                    return self._repeating_loop(tree, scope, known)
                return self._kernel.tree(tree, spelled(scope, known))
            case Guard(condition, then, otherwise):
                test = self._kernel.index(condition, spelled(scope, known))
                lines = braced(f"if ({test})", self._tree(then, scope, known, repeated=repeated))
                if otherwise is not None:
                    lines += braced("else", self._tree(otherwise, scope, known, repeated=repeated))
                return lines
            case Allocation() | Instance():
                if _touches(tree, self._buffer.name, self._kernel.bodies):
                    raise NotVectorsError(f"{self._buffer.name} is used outside of its lanes")
                return self._kernel.tree(tree, spelled(scope, known))
            case _:
                assert_never(tree)

    def _repeating_loop(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> list[str]:
        """A loop in which the tile is used again and again, with the totals that the loop keeps of it."""
        if any(total.buffer != self._buffer.name for total in loop.totals):
            raise NotVectorsError("totals of something else than the tile")
        for total in loop.totals:
            self._totals = VectorTotals(self, loop, total, self._vectors, self._rows_in_use())
        inner = replace(scope.inside(loop), innermost=loop)
        lines = self._sharing(loop.body, inner, known, repeated=True)
        totals = self._totals
        for fold in loop.folds:
            if totals is None or fold.statement != totals.total.statement:
                raise NotVectorsError("partial sums of something else than the tile")
            lines = [*lines, *totals.fold(fold, inner.variables[loop.iterator])]
        lines = self._kernel.loop(loop, spelled(scope, known), lines)
        if totals is not None and loop.totals:
            self._totals = None
            return totals.around(lines)
        return lines

    def _rows_in_use(self) -> list[int]:
        """The rows of the tile that hold something: those that were begun."""
        rows = range(self._buffer.layout.span // self._lanes)
        used = [row for row in rows if any(f"{self._name}_{row}_{v.number}" in self._variables for v in self._vectors)]
        return used or list(rows)

    def _lane_loop(self, loop: Loop, scope: Scope, known: Mapping[str, int], *, repeated: bool) -> list[str]:
        if not _touches(loop.body, self._buffer.name, self._kernel.bodies):
            return self._kernel.tree(loop, spelled(scope, known))
        if not isinstance(loop.body, Instance) or loop.step != 1:
            raise NotVectorsError("a loop over lanes that holds more than one statement")
        vectors = self._used(loop, known)
        ragged = repeated and len({vector.width for vector in vectors}) > 1
        statement = VectorStatement(self, loop, loop.body, scope, known, vectors[0] if ragged else None)
        try:
            lines = [line for vector in vectors for line in statement.lines(vector)]
            return braced("", [*statement.spread(), *lines]) if ragged else lines
        except NotVectorsError:
            if repeated:
                raise
        return self._through_array(loop, statement, scope, known)

    def _used(self, loop: Loop, known: Mapping[str, int]) -> list[Vector]:
        """The vectors of a row, or those of its first lanes where the loop is shorter than the row."""
        lanes = iterations(loop, known)
        if len(lanes) > self._lanes:
            raise NotVectorsError("more lanes than a row has")
        return [replace(v, used=min(v.used, len(lanes) - v.first)) for v in self._vectors if v.first < len(lanes)]

    def _through_array(
        self, loop: Loop, statement: VectorStatement, scope: Scope, known: Mapping[str, int]
    ) -> list[str]:
        """What vectors cannot express runs on the rows in memory, once for a tile."""
        self._uses_array = True
        vectors = self._used(loop, known)
        stored = [self._to_array(row, vector) for row in statement.rows_read() for vector in vectors]
        lines = self._kernel.tree(loop, spelled(scope, known))
        changed = [statement.row()] if statement.body.target == self._buffer.name else []
        return [*stored, *lines, *(self._from_array(row, vector) for row in changed for vector in vectors)]

    def _turned_rows(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> list[str] | None:
        """Rows that are columns in memory: through the array, by the call for transpositions."""
        nest = transposed_nest(loop)
        if nest is None or nest[1].kind is not LoopKind.VECTOR:
            return None
        body = self._kernel.bodies[nest[2].statement]
        stores = isinstance(body.value, Read) and body.value.tensor == self._buffer.name
        if not stores and body.target != self._buffer.name:
            return None
        lines = self._kernel.tree(loop, spelled(scope, known))
        if not any("tc_transpose" in line for line in lines):
            return None
        self._uses_array = True
        moved: list[str] = []
        for value in iterations(loop, known):
            here = {**known, loop.iterator: value}
            row = VectorStatement(self, nest[1], nest[2], scope, here).row()
            move = self._to_array if stores else self._from_array
            moved += [move(row, vector) for vector in self._used(nest[1], here)]
        return [*moved, *lines] if stores else [*lines, *moved]

    def _from_array(self, row: int, vector: Vector) -> str:
        place = f"&{self._name}[{row * self._lanes + vector.first}]"
        return f"{self.variable(row, vector)} = {self._function('load', vector)}({place}{self._count(vector)});"

    def _to_array(self, row: int, vector: Vector) -> str:
        place = f"&{self._name}[{row * self._lanes + vector.first}]"
        return f"{self._function('store', vector)}({place}, {self.variable(row, vector)}{self._count(vector)});"

    def _function(self, what: str, vector: Vector, *, full: bool = False) -> str:
        part = "" if full or vector.used == vector.width else "_part"
        return f"tc_{what}{part}_{self._type}x{vector.width}"

    def _count(self, vector: Vector) -> str:
        return "" if vector.used == vector.width else f", {vector.used}"

    def variable(self, row: int, vector: Vector) -> str:
        """The variable that holds a vector of a row."""
        name = f"{self._name}_{row}_{vector.number}"
        self._variables.add(name)
        return name

    # --- what statements ask

    @property
    def buffer(self) -> Buffer:
        return self._buffer

    @property
    def name(self) -> str:
        """The variable of the tile, as an array."""
        return self._name

    @property
    def kernel(self) -> KernelPrinter:
        return self._kernel

    @property
    def type(self) -> ScalarType:
        return self._type

    def row_of(self, offset: int, step: int) -> int:
        """The row whose first lane is at ``offset``, if neighbouring lanes are neighbours in it."""
        if step != 1 or offset % self._lanes:
            raise NotVectorsError("lanes across rows")
        return offset // self._lanes

    def load(self, place: Fragment, vector: Vector, *, whole: bool) -> Fragment:
        """A vector from memory; ``whole``: what lies behind the lanes in use may be read, too."""
        name = self._function("load", vector, full=whole)
        count = [] if whole or vector.used == vector.width else [Fragment(str(vector.used))]
        return call(name, prefix("&", place), *count)

    def store(self, place: Fragment, value: Fragment, vector: Vector) -> str:
        return f"{self._function('store', vector)}({prefix('&', place)}, {value}{self._count(vector)});"

    def splat(self, value: Fragment, vector: Vector) -> Fragment:
        return call(f"tc_splat_{self._type}x{vector.width}", value)

    def spread(self, name: str, value: Fragment, vector: Vector) -> str:
        """The declaration of a vector with one number in all lanes."""
        type = self._vector_type(vector)
        return f"const {type} {name} = {call(f'tc_spread_{self._type}x{vector.width}', value)};"

    def lower(self, name: str, widest: Vector, vector: Vector) -> Fragment:
        """As many lanes of what was spread as the vector has."""
        if vector.width == widest.width:
            return Fragment(name)
        return call(f"tc_lower_{self._type}x{widest.width}_x{vector.width}", Fragment(name))

    def function(self, name: str, vector: Vector, *arguments: Fragment) -> Fragment:
        """A builtin of two numbers in every lane."""
        return call(f"tc_lanes_{name}_{self._type}x{vector.width}", *arguments)


def _touches(tree: LoopTree, buffer: str, bodies: Mapping[str, StatementBody]) -> bool:
    """Whether an instance inside accesses the buffer."""
    match tree:
        case Instance(statement, _):
            body = bodies[statement]
            return body.target == buffer or any(read.tensor == buffer for read in reads_in(body.value))
        case Block(children):
            return any(_touches(child, buffer, bodies) for child in children)
        case Guard(_, then, otherwise):
            return _touches(then, buffer, bodies) or (otherwise is not None and _touches(otherwise, buffer, bodies))
        case Loop() | Allocation():
            return _touches(tree.body, buffer, bodies)
        case _:
            assert_never(tree)
