"""Prints one statement over the lanes of a register tile's row, as operations on whole vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.codegen.index.indices import index_literal
from tc.codegen.index.shared_vectors import SharedVectors
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Printed, line, together
from tc.codegen.printer.tile import NotVectorsError, Tile, Vector
from tc.codegen.text.fragment import Fragment, infix, prefix
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    IteratorReference,
    Read,
    Reduction,
    Select,
    Unary,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.offsets import evaluate, index_form
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import (
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    StatementBody,
    variables,
)

_INFIX = {
    BinaryOperator.ADD: "+",
    BinaryOperator.SUBTRACT: "-",
    BinaryOperator.MULTIPLY: "*",
    BinaryOperator.DIVIDE: "/",
}
_COMPARISONS = {
    BinaryOperator.LESS: "less",
    BinaryOperator.LESS_EQUAL: "less_equal",
    BinaryOperator.GREATER: "greater",
    BinaryOperator.GREATER_EQUAL: "greater_equal",
    BinaryOperator.EQUAL: "equal",
    BinaryOperator.NOT_EQUAL: "not_equal",
}
_COMPOUND = {Reduction.ADD: "+", Reduction.MULTIPLY: "*"}
_EXTREMES = {Reduction.MINIMUM: "min", Reduction.MAXIMUM: "max"}
# What is computed with in float32, but not kept so.
_HALVES: Final = (ScalarType.FLOAT16, ScalarType.BFLOAT16)
# Builtins that vectors.h has for vectors, too.
_FUNCTIONS: Final = frozenset({"fmin", "fmax", "min", "max"})


@frozen
class Inside:
    """The first and the last of the lanes that a statement runs in."""

    first: IndexExpression
    last: IndexExpression


@frozen
class _Value:
    """A value in C: a vector, or one number for all lanes."""

    fragment: Fragment
    is_vector: bool


class VectorStatement:
    """One statement in a loop over lanes, with everything else fixed.

    ``widest``: where vectors of several widths make a row, the first of them; what all lanes share is spread over its
    lanes once, for ``spread`` to declare after all vectors were printed.  ``inside``: between which lanes it runs.
    ``shared``: for the loops over rows around it, outermost first, the vectors that these share.
    """

    def __init__(
        self,
        context: Context,
        tile: Tile,
        loop: Loop,
        instance: Instance,
        scope: Scope,
        known: Mapping[str, int],
        widest: Vector | None = None,
        inside: Inside | None = None,
        shared: Sequence[SharedVectors] = (),
    ) -> None:
        self._context = context
        self._tile = tile
        self.body: StatementBody = context.body(instance)
        self._loop = loop
        self._instance = instance
        self._scope = scope
        self._arguments = dict(zip(self.body.iterators, instance.arguments, strict=True))
        self._known = known
        self._widest = widest
        self._inside = inside
        self._shared = shared
        self._spread: dict[Expression, str] = {}
        self._coefficients: dict[str, int] = {}

    def spread(self) -> Printed:
        """The declarations of what the vectors printed so far share."""
        if self._widest is None:
            return Printed(())
        site = self._site(self._widest)
        values = {name: self._context.expressions.value(shared, site) for shared, name in self._spread.items()}
        return together(self._tile.spread(name, value, self._widest) for name, value in values.items())

    def rows_read(self) -> list[int]:
        """The rows of the tile that the statement reads, with its lanes along theirs."""
        own = self.body.target == self._tile.buffer.name
        before = [self.row()] if own and self.body.reduction is not None else []
        read = (self._row(read.subscripts) for read in reads_in(self.body.value) if self._is_tile(read))
        return list(dict.fromkeys([*before, *read]))

    def _is_tile(self, read: Read) -> bool:
        return read.tensor == self._tile.buffer.name

    def reads_lanes_of_tile(self) -> bool:
        """Whether all that differs from lane to lane is in the tile: further lanes may be computed, too."""
        return not any(self._varies(read) for read in reads_in(self.body.value) if not self._is_tile(read))

    def row(self) -> int:
        """The row that the statement touches."""
        if self.body.target == self._tile.buffer.name:
            return self._row(self.body.subscripts)
        return self._row(next(read for read in reads_in(self.body.value) if self._is_tile(read)).subscripts)

    def print(self, vector: Vector) -> Printed:
        """The statement in the lanes of one vector; NotVectorsError where vectors cannot express it."""
        own = self.body.target == self._tile.buffer.name
        prefetches = self._prefetches(vector)
        return prefetches + (self._assignment(vector) if own else self._store(vector))

    def _assignment(self, vector: Vector) -> Printed:
        """To the tile."""
        body = self.body
        target = self._tile.variable(self._row(body.subscripts), vector)
        match body.reduction, body.value:
            case Reduction.ADD, Call("byte_dot" | "short_dot" | "pair_dot" as dot, words, _) if self._inside is None:
                added = (self._word(own, vector) for own in words)
                return line("{} = {};", target, self._tile.add_dot(dot, vector, target, *added))
            case _:
                pass
        if body.reduction is None:
            changed = self._vector(body.value, vector)
        elif body.reduction in _COMPOUND:
            value = self._value(body.value, vector).fragment
            if self._inside is None:
                return line("{} {}= {};", target, _COMPOUND[body.reduction], value)
            changed = infix(_COMPOUND[body.reduction], target, value)
        else:
            self._require_floats()
            operands = (target, self._vector(body.value, vector))
            changed = self._tile.function(_EXTREMES[body.reduction], vector, *operands)
        if self._inside is not None:
            self._require_floats()
            changed = self._tile.between(target, changed, *self._lanes_inside(vector), vector)
        return line("{} = {};", target, changed)

    def _require_floats(self) -> None:
        """NotVectorsError for words: vectors of them have sums and products alone."""
        if not self._tile.type.is_floating:
            raise NotVectorsError("an operation that vectors of words do not have")

    def _lanes_inside(self, vector: Vector) -> tuple[Fragment, Fragment]:
        """The first and the last lane of a vector that the statement runs in."""
        assert self._inside is not None
        scope, first = (
            spelled(self._scope, self._known),
            IndexLiteral(iterations(self._loop, self._known)[0] + vector.first),
        )
        lanes = (
            self._context.index(IndexOperation(IndexOperator.SUBTRACT, (bound, first)), scope)
            for bound in (self._inside.first, self._inside.last)
        )
        return next(lanes), next(lanes)

    def _store(self, vector: Vector) -> Printed:
        """To memory."""
        body, layout = self.body, self._context.layouts[self.body.target]
        along = self._stride(body.subscripts, layout) == 1 and self._is_of_tile(layout.type)
        if body.reduction is not None or not along or self._inside is not None:
            raise NotVectorsError("a store across memory, or one of some lanes")
        place, value = self._context.expressions.location(body.target, body.subscripts, self._site(vector)), body.value
        if isinstance(value, Cast) and value.type is layout.type and self._is_of_tile(value.operand.type):
            value = value.operand  # the store rounds to halves
        return self._tile.store(place, self._vector(value, vector), vector, layout.type)

    def _is_of_tile(self, type: ScalarType) -> bool:
        """Whether lanes may hold a type: the tile's, or one of two bytes that is computed with in the tile's."""
        return type is self._tile.type or (type in _HALVES and self._tile.type is ScalarType.FLOAT32)

    def _prefetches(self, vector: Vector) -> Printed:
        """What prefetches, line by line, the rows that gathers of a later instance read."""
        if not self._instance.prefetched:
            return Printed(())
        site, later = self._site(vector), self._known_at(vector)
        arguments = (substituted(argument, later) for argument in self._instance.prefetched)
        ahead = dict(zip(self.body.iterators, arguments, strict=True))
        gathers = [read for read in reads_in(self.body.value) if self._varies(read)]
        found = (self._context.expressions.prefetch(g, site, replace(site, arguments=ahead)) for g in gathers)
        return together(line("{}", asked) for asked in found if asked is not None)

    def _site(self, vector: Vector) -> Site:
        known = self._known_at(vector)
        arguments = tuple(substituted(argument, known) for argument in self._instance.arguments)
        return self._context.site(replace(self._instance, arguments=arguments), self._scope)

    def _known_at(self, vector: Vector) -> Mapping[str, IndexExpression]:
        """The iterators of unrolled loops, and that of the lanes at the first one of a vector."""
        first = vector.first + iterations(self._loop, self._known)[0]
        return {name: IndexLiteral(value) for name, value in {**self._known, self._loop.iterator: first}.items()}

    # --- values

    def _value(self, expression: Expression, vector: Vector) -> _Value:
        if not self._varies(expression):
            if any(self._is_tile(read) for read in reads_in(expression)):
                raise NotVectorsError("one lane of a row for all")
            if self._widest is not None and self._is_of_tile(expression.type):
                name = self._spread.setdefault(expression, f"spread{len(self._spread)}")
                return _Value(self._tile.lower(name, self._widest, vector), is_vector=True)
            return _Value(self._context.expressions.value(expression, self._site(vector)), is_vector=False)
        if not self._is_of_tile(expression.type):
            raise NotVectorsError("lanes of another type")
        match expression:
            case Read():
                return _Value(self._read(expression, vector), is_vector=True)
            case Cast(operand, type) if type.is_half and operand.type is type:
                raise NotVectorsError("a half that is rounded on the way")
            case Cast(operand, type) if type in (operand.type, self._tile.type):
                return self._value(operand, vector)
            case Unary(UnaryOperator.NEGATE, operand):
                return _Value(prefix("-", self._value(operand, vector).fragment), is_vector=True)
            case Binary(operator, left, right) if operator in _INFIX:
                if operator is BinaryOperator.DIVIDE:
                    self._require_floats()
                sides = (self._value(left, vector).fragment, self._value(right, vector).fragment)
                return _Value(infix(_INFIX[operator], *sides), is_vector=True)
            case Call(name, arguments, _) if name in _FUNCTIONS:
                self._require_floats()
                operands = (self._vector(argument, vector) for argument in arguments)
                return _Value(self._tile.function(name, vector, *operands), is_vector=True)
            case Select():
                return _Value(self._chosen(expression, vector), is_vector=True)
            case _:
                raise NotVectorsError("an operation that vectors do not have")

    def _chosen(self, select: Select, vector: Vector) -> Fragment:
        """Both values are computed in every lane, so that neither may read what only the condition allows."""
        self._require_floats()
        match select.condition:
            case Binary(operator, left, right) if operator in _COMPARISONS:
                allowed = set(reads_in(select.condition))
                values = (select.then, select.otherwise)
                if not all(self._is_tile(read) or read in allowed for own in values for read in reads_in(own)):
                    raise NotVectorsError("a read that a condition guards")
                operands = (self._vector(own, vector) for own in (left, right, *values))
                return self._tile.choose(_COMPARISONS[operator], vector, *operands)
            case _:
                raise NotVectorsError("a condition that vectors do not have")

    def _vector(self, expression: Expression, vector: Vector) -> Fragment:
        """The value in every lane."""
        value = self._value(expression, vector)
        return value.fragment if value.is_vector else self._tile.splat(value.fragment, vector, self._tile.type)

    def _word(self, word: Expression, vector: Vector) -> Fragment:
        """Words of a dot product, in every lane."""
        if not self._varies(word):
            value = self._context.expressions.value(word, self._site(vector))
            return self._tile.splat(value, vector, word.type)
        if not isinstance(word, Read) or self._is_tile(word):
            raise NotVectorsError("words that are computed")
        return self._loaded(word, vector, word.type)

    def _varies(self, expression: Expression) -> bool:
        return any(self._coefficient(name) != 0 for name in iterators_in((expression,)))

    def _read(self, read: Read, vector: Vector) -> Fragment:
        layout = self._context.layouts[read.tensor]
        if self._is_tile(read):
            return self._tile.variable(self._row(read.subscripts), vector)
        if not self._is_of_tile(layout.type):
            raise NotVectorsError("a load of another type")
        return self._loaded(read, vector, layout.type)

    def _loaded(self, read: Read, vector: Vector, type: ScalarType) -> Fragment:
        layout = self._context.layouts[read.tensor]
        step = self._stride(read.subscripts, layout)
        if step not in (1, 2):
            raise NotVectorsError("a load across memory")
        if layout.size == 0:
            raise NotVectorsError("nothing to load")
        place = self._context.expressions.source(read, self._site(vector))
        if step == 2:
            if self._inside is not None or type is not self._tile.type or not type.is_floating:
                raise NotVectorsError("every second element of another type, or of some lanes")
            return self._by_name(read, self._tile.load_second(place, vector), vector)
        if self._inside is None:
            loaded = self._tile.load(place, vector, type, whole=self._is_padded(read, vector))
            return self._by_name(read, loaded, vector)
        if type is not self._tile.type:
            raise NotVectorsError("some lanes of another type")
        return self._tile.load_between(place, *self._lanes_inside(vector), vector)

    def _by_name(self, read: Read, loaded: Fragment, vector: Vector) -> Fragment:
        """What was loaded, by the name that it has for several rows."""
        moving = {variable for name in iterators_in(read.subscripts) for variable in variables(self._arguments[name])}
        sharing = next((own for own in self._shared if own.row not in moving), None)
        type = self._tile.loaded_type(vector, self._context.layouts[read.tensor].type)
        return loaded if sharing is None else sharing.name(type, loaded)

    def _is_padded(self, read: Read, vector: Vector) -> bool:
        """Whether the row of a packed operand has room behind its last lane."""
        if read.tensor not in self._context.promoted:
            return False
        layout = self._context.layouts[read.tensor]
        steps = [step for step, extent in zip(layout.strides, layout.shape, strict=True) if step > 1 and extent > 1]
        lanes = next((e for step, e in zip(layout.strides, layout.shape, strict=True) if step == 1 and e > 1), 1)
        beyond = vector.first + vector.width
        return lanes == vector.first + vector.used and all(step % 16 == 0 and step >= beyond for step in steps)

    def _row(self, subscripts: tuple[Expression, ...]) -> int:
        """The row of the tile that constant subscripts choose."""
        offset = step = 0
        for subscript, distance in zip(subscripts, self._tile.buffer.layout.strides, strict=True):
            if not isinstance(subscript, IteratorReference):
                raise NotVectorsError("a computed subscript")
            constant, coefficient = self._constant(self._arguments[subscript.name])
            offset, step = offset + constant * distance, step + coefficient * distance
        return self._tile.row_of(offset, step)

    def _constant(self, argument: IndexExpression) -> tuple[int, int]:
        """An argument as a constant for the first lane and a distance between lanes."""
        first = iterations(self._loop, self._known)[0]
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
        found = self._coefficients.get(name)
        if found is None:
            found = self._coefficients[name] = _slope(self._arguments[name], self._loop.iterator)
        return found


def lanes_in_use(loop: Loop) -> tuple[Instance, Inside | None]:
    """The statement in a loop over lanes, and between which of them it runs; NotVectorsError for another body."""
    match loop.body:
        case Instance() as instance:
            return instance, None
        case Guard(condition, Instance() as instance, None):
            lower, upper = _bounds(condition, IndexVariable(loop.iterator))
            first = reduce(lambda a, b: IndexOperation(IndexOperator.MAXIMUM, (a, b)), lower, loop.lower)
            last = reduce(lambda a, b: IndexOperation(IndexOperator.MINIMUM, (a, b)), upper, loop.upper)
            return instance, Inside(first, last)
        case _:
            raise NotVectorsError("a loop over lanes that holds more than one statement")


def _bounds(
    condition: IndexExpression, lane: IndexVariable
) -> tuple[tuple[IndexExpression, ...], tuple[IndexExpression, ...]]:
    """What a condition says that the lane is not below, and not above; NotVectorsError where it says something else."""
    match condition:
        case IndexOperation(IndexOperator.AND, (left, right)):
            (first, second), (third, fourth) = _bounds(left, lane), _bounds(right, lane)
            return (*first, *third), (*second, *fourth)
        case IndexOperation(IndexOperator.LESS_EQUAL, (bound, value)) if value == lane and lane.name not in variables(
            bound
        ):
            return (bound,), ()
        case IndexOperation(IndexOperator.GREATER_EQUAL, (bound, value)) if (
            value == lane and lane.name not in variables(bound)
        ):
            return (), (bound,)
        case _:
            raise NotVectorsError("lanes with another condition")


def spelled(scope: Scope, known: Mapping[str, int]) -> Scope:
    """The scope with the iterators of unrolled loops as numbers, for statements that loops of their own surround."""
    variables = {**scope.variables, **{name: index_literal(value) for name, value in known.items()}}
    return replace(scope, variables=variables, offsets=None)


def iterations(loop: Loop, known: Mapping[str, int]) -> range:
    """The values of the iterator of a loop with constant bounds."""
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
