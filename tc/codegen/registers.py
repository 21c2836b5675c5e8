"""Prints a register tile: its rows as variables of vector types, its loops unrolled, its lanes as vector operations.

The loops of a tile say which instances run, and were proven; here they only get a form that keeps every row in
registers.  The last vector of a row may have more lanes than the row: they compute garbage, which nothing reads, and
memory is accessed under a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from tc.codegen.expressions import Site
from tc.codegen.fragment import Fragment, call, infix, prefix
from tc.codegen.offsets import evaluate, index_form, substituted
from tc.codegen.routines import braced
from tc.codegen.transpose import transposed_nest
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program import Binary, Cast, Expression, IteratorReference, Read, Reduction, Unary, iterators_in, walk
from tc.language.specialization import Layout
from tc.polyhedral.loops import (
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
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
)
from tc.polyhedral.microkernel import vector_widths
from tc.polyhedral.strides import stride
from tc.types import ScalarType

if TYPE_CHECKING:
    from tc.codegen.kernel import KernelPrinter, Scope

_INFIX = {
    BinaryOperator.ADD: "+",
    BinaryOperator.SUBTRACT: "-",
    BinaryOperator.MULTIPLY: "*",
    BinaryOperator.DIVIDE: "/",
}
_COMPOUND = {Reduction.ADD: "+=", Reduction.MULTIPLY: "*="}


class NotVectorsError(Exception):
    """The loops around a buffer do not have the form of a register tile; it is printed as an array."""


@dataclass(frozen=True, slots=True)
class _Vector:
    """One vector of a row: its first lane, the lanes of its type, and those in use."""

    number: int
    first: int
    width: int
    used: int


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in C: a vector, or one number for all lanes."""

    fragment: Fragment
    is_vector: bool


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

    def _cut(self, width: int) -> Iterator[_Vector]:
        if width < 2:
            raise NotVectorsError("the target has no vectors")
        first = 0
        for number, (lanes, used) in enumerate(vector_widths(self._lanes, width)):
            if lanes < 2:
                raise NotVectorsError("a vector of one lane")
            yield _Vector(number, first, lanes, used)
            first += used

    def lines(self, body: LoopTree, scope: Scope) -> list[str]:
        """The body with its declarations; NotVectorsError where it must be printed as loops over an array."""
        lines = self._tree(body, scope, {}, repeated=False)
        declared = [f"{self._vector_type(v)} {', '.join(names)};" for v, names in self._declared()]
        array = f"{self._kernel.storage(self._type)} {self._name}[{self._buffer.layout.span}]"
        return [*([f"{array} __attribute__((aligned(64)));"] if self._uses_array else []), *declared, *lines]

    def _declared(self) -> Iterator[tuple[_Vector, list[str]]]:
        for vector in self._vectors:
            ending = f"_{vector.number}"
            names = [name for name in self._variables if name.endswith(ending)]
            yield vector, sorted(names, key=lambda name: int(name.split("_")[-2]))

    def _vector_type(self, vector: _Vector) -> str:
        return f"tc_{self._type}x{vector.width}"

    # --- loops

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
                    for value in _iterations(tree, known)
                    for line in self._tree(tree.body, scope, {**known, tree.iterator: value}, repeated=repeated)
                ]
            case Loop(kind=LoopKind.VECTOR):
                return self._lane_loop(tree, scope, known, repeated=repeated)
            case Loop():
                if _touches(tree.body, self._buffer.name, self._kernel.bodies):
                    inner = replace(scope.inside(tree), innermost=tree)
                    return self._kernel.loop(
                        tree, _spelled(scope, known), self._tree(tree.body, inner, known, repeated=True)
                    )
                return self._kernel.tree(tree, _spelled(scope, known))
            case Guard(condition, then, otherwise):
                test = self._kernel.index(condition, _spelled(scope, known))
                lines = braced(f"if ({test})", self._tree(then, scope, known, repeated=repeated))
                if otherwise is not None:
                    lines += braced("else", self._tree(otherwise, scope, known, repeated=repeated))
                return lines
            case Allocation() | Instance():
                if _touches(tree, self._buffer.name, self._kernel.bodies):
                    raise NotVectorsError(f"{self._buffer.name} is used outside of its lanes")
                return self._kernel.tree(tree, _spelled(scope, known))
            case _:
                assert_never(tree)

    def _lane_loop(self, loop: Loop, scope: Scope, known: Mapping[str, int], *, repeated: bool) -> list[str]:
        if not _touches(loop.body, self._buffer.name, self._kernel.bodies):
            return self._kernel.tree(loop, _spelled(scope, known))
        if not isinstance(loop.body, Instance) or loop.step != 1:
            raise NotVectorsError("a loop over lanes that holds more than one statement")
        statement = _Statement(self, loop, loop.body, scope, known)
        try:
            return [line for vector in self._used(loop, known) for line in statement.lines(vector)]
        except NotVectorsError:
            if repeated:
                raise
        return self._through_array(loop, statement, scope, known)

    def _used(self, loop: Loop, known: Mapping[str, int]) -> list[_Vector]:
        """The vectors of a row, or those of its first lanes where the loop is shorter than the row."""
        lanes = _iterations(loop, known)
        if len(lanes) > self._lanes:
            raise NotVectorsError("more lanes than a row has")
        return [replace(v, used=min(v.used, len(lanes) - v.first)) for v in self._vectors if v.first < len(lanes)]

    def _through_array(self, loop: Loop, statement: _Statement, scope: Scope, known: Mapping[str, int]) -> list[str]:
        """What vectors cannot express runs on the row in memory, once for a tile."""
        self._uses_array = True
        row = statement.row()
        vectors = self._used(loop, known)
        stored = [self._to_array(row, vector) for vector in vectors]
        loaded = [self._from_array(row, vector) for vector in vectors]
        lines = self._kernel.tree(loop, _spelled(scope, known))
        before = stored if statement.reads_tile() else []
        return [*before, *lines, *(loaded if statement.body.target == self._buffer.name else [])]

    def _turned_rows(self, loop: Loop, scope: Scope, known: Mapping[str, int]) -> list[str] | None:
        """Rows that are columns in memory: through the array, by the call for transpositions."""
        nest = transposed_nest(loop)
        if nest is None or nest[1].kind is not LoopKind.VECTOR:
            return None
        body = self._kernel.bodies[nest[2].statement]
        stores = isinstance(body.value, Read) and body.value.tensor == self._buffer.name
        if not stores and body.target != self._buffer.name:
            return None
        lines = self._kernel.tree(loop, _spelled(scope, known))
        if not any("tc_transpose" in line for line in lines):
            return None
        self._uses_array = True
        moved: list[str] = []
        for value in _iterations(loop, known):
            here = {**known, loop.iterator: value}
            row = _Statement(self, nest[1], nest[2], scope, here).row()
            move = self._to_array if stores else self._from_array
            moved += [move(row, vector) for vector in self._used(nest[1], here)]
        return [*moved, *lines] if stores else [*lines, *moved]

    def _from_array(self, row: int, vector: _Vector) -> str:
        place = f"&{self._name}[{row * self._lanes + vector.first}]"
        return f"{self.variable(row, vector)} = {self._function('load', vector)}({place}{self._count(vector)});"

    def _to_array(self, row: int, vector: _Vector) -> str:
        place = f"&{self._name}[{row * self._lanes + vector.first}]"
        return f"{self._function('store', vector)}({place}, {self.variable(row, vector)}{self._count(vector)});"

    def _function(self, what: str, vector: _Vector, *, full: bool = False) -> str:
        part = "" if full or vector.used == vector.width else "_part"
        return f"tc_{what}{part}_{self._type}x{vector.width}"

    def _count(self, vector: _Vector) -> str:
        return "" if vector.used == vector.width else f", {vector.used}"

    def variable(self, row: int, vector: _Vector) -> str:
        """The variable that holds a vector of a row."""
        name = f"{self._name}_{row}_{vector.number}"
        self._variables.add(name)
        return name

    # --- what statements ask

    @property
    def buffer(self) -> Buffer:
        return self._buffer

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

    def load(self, place: Fragment, vector: _Vector, *, whole: bool) -> Fragment:
        """A vector from memory; ``whole``: what lies behind the lanes in use may be read, too."""
        name = self._function("load", vector, full=whole)
        count = [] if whole or vector.used == vector.width else [Fragment(str(vector.used))]
        return call(name, prefix("&", place), *count)

    def store(self, place: Fragment, value: Fragment, vector: _Vector) -> str:
        return f"{self._function('store', vector)}({prefix('&', place)}, {value}{self._count(vector)});"

    def splat(self, value: Fragment, vector: _Vector) -> Fragment:
        return call(f"tc_splat_{self._type}x{vector.width}", value)


class _Statement:
    """One statement in a loop over lanes, with everything else fixed."""

    def __init__(
        self, printer: RegisterPrinter, loop: Loop, instance: Instance, scope: Scope, known: Mapping[str, int]
    ) -> None:
        self._printer = printer
        self._kernel = printer.kernel
        self.body: StatementBody = printer.kernel.bodies[instance.statement]
        self._loop = loop
        self._instance = instance
        self._scope = scope
        self._arguments = dict(zip(self.body.iterators, instance.arguments, strict=True))
        self._known = known

    def reads_tile(self) -> bool:
        own = self.body.target == self._printer.buffer.name
        return (own and self.body.reduction is not None) or any(self._is_tile(read) for read in _reads(self.body.value))

    def _is_tile(self, read: Read) -> bool:
        return read.tensor == self._printer.buffer.name

    def row(self) -> int:
        """The row that the statement touches."""
        if self.body.target == self._printer.buffer.name:
            return self._row(self.body.subscripts)
        return self._row(next(read for read in _reads(self.body.value) if self._is_tile(read)).subscripts)

    def lines(self, vector: _Vector) -> list[str]:
        body, printer = self.body, self._printer
        value = self._value(body.value, vector)
        fragment = value.fragment if value.is_vector else printer.splat(value.fragment, vector)
        if body.target == printer.buffer.name:
            target = printer.variable(self._row(body.subscripts), vector)
            if body.reduction is None:
                assignment = f"{target} = {fragment};"
            elif body.reduction in _COMPOUND:
                assignment = f"{target} {_COMPOUND[body.reduction]} {value.fragment};"
            else:
                raise NotVectorsError("a reduction that vectors have no operator for")
        else:
            layout = self._kernel.layouts[body.target]
            if (
                body.reduction is not None
                or self._stride(body.subscripts, layout) != 1
                or layout.type is not printer.type
            ):
                raise NotVectorsError("a store across memory")
            place = self._kernel.expressions.location(body.target, body.subscripts, self._site(vector))
            assignment = printer.store(place, fragment, vector)
        return [*self._prefetches(vector), assignment]

    def _prefetches(self, vector: _Vector) -> list[str]:
        """What asks for the rows that gathers will read some iterations of the loop around the lanes later."""
        loop, distance = self._scope.innermost, self._kernel.prefetch
        if loop is None or distance == 0:
            return []
        later: IndexExpression = IndexOperation(
            IndexOperator.ADD, (IndexVariable(loop.iterator), IndexLiteral(distance * loop.step))
        )
        site = self._site(vector)
        ahead = {name: substituted(argument, {loop.iterator: later}) for name, argument in site.arguments.items()}
        gathers = [read for read in _reads(self.body.value) if self._varies(read)]
        found = (self._kernel.expressions.prefetch(g, site, replace(site, arguments=ahead)) for g in gathers)
        return [line for line in found if line is not None]

    def _site(self, vector: _Vector) -> Site:
        first = vector.first + _iterations(self._loop, self._known)[0]
        known = {name: IndexLiteral(value) for name, value in {**self._known, self._loop.iterator: first}.items()}
        arguments = tuple(substituted(argument, known) for argument in self._instance.arguments)
        return self._kernel.site(replace(self._instance, arguments=arguments), self._scope)

    # --- values

    def _value(self, expression: Expression, vector: _Vector) -> _Value:
        if not self._varies(expression):
            return _Value(self._kernel.expressions.value(expression, self._site(vector)), is_vector=False)
        if expression.type is not self._printer.type:
            raise NotVectorsError("lanes of another type")
        match expression:
            case Read():
                return _Value(self._read(expression, vector), is_vector=True)
            case Cast(operand, type) if operand.type is type:
                return self._value(operand, vector)
            case Unary(UnaryOperator.NEGATE, operand):
                return _Value(prefix("-", self._value(operand, vector).fragment), is_vector=True)
            case Binary(operator, left, right) if operator in _INFIX:
                sides = (self._value(left, vector).fragment, self._value(right, vector).fragment)
                return _Value(infix(_INFIX[operator], *sides), is_vector=True)
            case _:
                raise NotVectorsError("an operation that vectors do not have")

    def _varies(self, expression: Expression) -> bool:
        return any(self._coefficient(name) != 0 for name in iterators_in((expression,)))

    def _read(self, read: Read, vector: _Vector) -> Fragment:
        layout = self._kernel.layouts[read.tensor]
        if self._is_tile(read):
            return Fragment(self._printer.variable(self._row(read.subscripts), vector))
        if self._stride(read.subscripts, layout) != 1 or layout.type is not self._printer.type:
            raise NotVectorsError("a load across memory")
        if layout.size == 0:
            raise NotVectorsError("nothing to load")
        place = self._kernel.expressions.source(read, self._site(vector))
        return self._printer.load(place, vector, whole=self._is_padded(read, vector))

    def _is_padded(self, read: Read, vector: _Vector) -> bool:
        """Whether the row of a packed operand has room behind its last lane."""
        if not self._kernel.is_promoted(read.tensor):
            return False
        layout = self._kernel.layouts[read.tensor]
        steps = [step for step, extent in zip(layout.strides, layout.shape, strict=True) if step > 1 and extent > 1]
        lanes = next((e for step, e in zip(layout.strides, layout.shape, strict=True) if step == 1 and e > 1), 1)
        beyond = vector.first + vector.width
        return lanes == vector.first + vector.used and all(step % 16 == 0 and step >= beyond for step in steps)

    def _row(self, subscripts: tuple[Expression, ...]) -> int:
        """The row of the tile that constant subscripts choose."""
        offset = step = 0
        for subscript, distance in zip(subscripts, self._printer.buffer.layout.strides, strict=True):
            if not isinstance(subscript, IteratorReference):
                raise NotVectorsError("a computed subscript")
            constant, coefficient = self._constant(self._arguments[subscript.name])
            offset, step = offset + constant * distance, step + coefficient * distance
        return self._printer.row_of(offset, step)

    def _constant(self, argument: IndexExpression) -> tuple[int, int]:
        """An argument as a constant for the first lane and a distance between lanes."""
        first = _iterations(self._loop, self._known)[0]
        values = [_evaluate(argument, {**self._known, self._loop.iterator: first + lane}) for lane in (0, 1)]
        return values[0], values[1] - values[0]

    def _stride(self, subscripts: tuple[Expression, ...], layout: Layout) -> int:
        total = 0
        for name in iterators_in(subscripts):
            coefficient = self._coefficient(name)
            if coefficient:
                distance = stride(subscripts, layout, name)
                if distance is None:
                    raise NotVectorsError("lanes at no constant distance")
                total += coefficient * distance
        return total

    def _coefficient(self, name: str) -> int:
        """How far an iterator of the statement moves from lane to lane."""
        argument = self._arguments[name]
        return _slope(argument, self._loop.iterator)


def _reads(expression: Expression) -> Iterator[Read]:
    return (part for part in walk(expression) if isinstance(part, Read))


def _spelled(scope: Scope, known: Mapping[str, int]) -> Scope:
    """The scope with the iterators of unrolled loops as numbers."""
    return replace(scope, variables={**scope.variables, **{name: str(value) for name, value in known.items()}})


def _iterations(loop: Loop, known: Mapping[str, int]) -> range:
    return range(_evaluate(loop.lower, known), _evaluate(loop.upper, known) + 1, loop.step)


def _evaluate(expression: IndexExpression, known: Mapping[str, int]) -> int:
    """The value of an expression of unrolled iterators."""
    try:
        return evaluate(expression, known)
    except (KeyError, ValueError) as error:
        raise NotVectorsError("bounds or subscripts that are not constant in a tile") from error


def _slope(expression: IndexExpression, name: str) -> int:
    """How much the expression grows with a variable, in which it must be linear."""
    slope = index_form(expression).slope(name)
    if slope is None:
        raise NotVectorsError("lanes at no constant distance")
    return slope


def _touches(tree: LoopTree, buffer: str, bodies: Mapping[str, StatementBody]) -> bool:
    """Whether an instance inside accesses the buffer."""
    match tree:
        case Instance(statement, _):
            body = bodies[statement]
            return body.target == buffer or any(read.tensor == buffer for read in _reads(body.value))
        case Block(children):
            return any(_touches(child, buffer, bodies) for child in children)
        case Guard(_, then, otherwise):
            return _touches(then, buffer, bodies) or (otherwise is not None and _touches(otherwise, buffer, bodies))
        case Loop() | Allocation():
            return _touches(tree.body, buffer, bodies)
        case _:
            assert_never(tree)
