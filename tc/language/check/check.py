"""Checks expressions: resolves names, infers types, makes every conversion explicit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from tc.base.counted import counted
from tc.base.errors import Span, nearest
from tc.base.types import ScalarType, float_of, scalar_type
from tc.grammar import syntax
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.fold import fold
from tc.language.check.foreign import FOREIGN
from tc.language.check.scope import Scope, View
from tc.language.draft.typed import Strength, Typed, common, convert, settle, unknown
from tc.language.program.functions import Function, builtin
from tc.language.program.operators import ARITHMETIC, EQUALITIES, LOGIC, RELATIONS
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    IteratorReference,
    Literal,
    Read,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
)
from tc.language.program.report import Report
from tc.language.text.expression_text import expression_text


class ExpressionChecker:
    """Checks the expressions of one statement.

    ``views`` says what each tensor's name means here; ``lets`` holds what ``where x = e`` names.
    ``iterators`` and ``places`` collect the first place of every iterator and of every read.
    """

    def __init__(
        self,
        scope: Scope,
        views: Mapping[str, View],
        lets: Mapping[str, syntax.Expression],
        report: Report,
    ) -> None:
        self._scope = scope
        self._views = views
        self._lets = lets
        self._report = report
        self.iterators: dict[str, Span] = {}
        self.places: dict[Read, Span] = {}

    def is_declared(self, name: str) -> bool:
        """Whether a bare name is something else than an iterator."""
        return name in self._lets or self._scope.is_declared(name)

    def tensor(self, name: str) -> str | None:
        """The tensor that a name means; None if it means none."""
        view = self._views.get(name)
        return None if view is None else view.tensor

    # --- values ----------------------------------------------------------------------------------------------

    def access(self, expression: syntax.Apply) -> Typed:
        """The access that an ``exists`` names: a ``Read``, unless it is in error."""
        if expression.name in self._scope.tensors:
            return self._read(expression.name, expression.arguments, expression.span)
        return self.value(expression)

    def value(self, expression: syntax.Expression) -> Typed:
        """A value of any type."""
        span = expression.span
        match expression:
            case syntax.Number(value):
                type = ScalarType.FLOAT64 if isinstance(value, float) else ScalarType.INT64
                return Typed(Literal(value, type), Strength.WEAK, span)
            case syntax.Name(name):
                return self._name(name, span)
            case syntax.Extent():
                return Typed(self._extent(expression), Strength.WEAK, span)
            case syntax.Unary(operator, operand):
                if operator is UnaryOperator.NEGATE:
                    return self._negate(self.value(operand), span)
                inverted = Unary(operator, self.condition(operand), ScalarType.BOOL)
                return Typed(inverted, Strength.STRONG, span)
            case syntax.Binary(operator, left, right):
                return self._binary(operator, left, right, span)
            case syntax.Conditional(condition, then, otherwise):
                chosen = self.condition(condition)
                first, second = self.value(then), self.value(otherwise)
                type, strength = common(first, second)
                branches = convert(first, type, self._report), convert(second, type, self._report)
                return Typed(Select(chosen, *branches, type), strength, span)
            case syntax.Apply():
                return self._apply(expression)
            case _:
                assert_never(expression)

    def condition(self, expression: syntax.Expression) -> Expression:
        """A BOOL expression; a number is true where it is not 0."""
        result = self.value(expression)
        return convert(result, ScalarType.BOOL, self._report)

    def _name(self, name: str, span: Span) -> Typed:
        if name in self._lets:
            return self.value(self._lets[name])
        if name in self._scope.sizes:
            return Typed(SizeReference(name), Strength.WEAK, span)
        if name in self._scope.scalars:
            return Typed(ScalarReference(name, self._scope.scalars[name]), Strength.STRONG, span)
        if name in self._scope.tensors:
            return self._converted(name, self._read(name, (), span))
        self.iterators.setdefault(name, span)
        return Typed(IteratorReference(name), Strength.WEAK, span)

    def _extent(self, expression: syntax.Extent) -> Expression:
        view = self._views.get(expression.tensor)
        if view is None:
            if expression.tensor not in self._scope.tensors:
                guess = nearest(expression.tensor, self._scope.tensors)
                known = ", ".join(f"`{tensor}`" for tensor in sorted(self._scope.tensors))
                hint = f"there are the tensors {known}" if guess is None else f"did you mean `{guess}`?"
                self._report.error(f"unknown tensor `{expression.tensor}`", expression.span, hint)
            return Literal(0, INDEX_TYPE)
        if expression.dimension >= view.rank:
            self._report.error(
                f"`{expression.tensor}` has {counted(view.rank, 'dimension')}, so there is no "
                f"`{expression.tensor}.{expression.dimension}`",
                expression.span,
                "dimensions are counted from 0",
            )
            return Literal(0, INDEX_TYPE)
        return view.extent(expression.dimension)

    def _read(self, name: str, arguments: tuple[syntax.Expression, ...], span: Span) -> Typed:
        """An access of a tensor; its subscripts are checked even where its value is in error."""
        subscripts = tuple(self.index(argument) for argument in arguments)
        view = self._views.get(name)
        if view is None:
            return unknown(span)
        if len(arguments) != view.rank:
            written = f"{len(arguments)} given" if arguments else "none given"
            self._report.error(
                f"`{name}` has {counted(view.rank, 'dimension')} and needs as many subscripts, {written}",
                span,
                _declared(name, view),
            )
            return unknown(span)
        read = Read(view.tensor, subscripts, view.type or INDEX_TYPE)
        self.places.setdefault(read, span)
        return Typed(read, Strength.UNKNOWN if view.type is None else Strength.STRONG, span)

    def _converted(self, name: str, read: Typed) -> Typed:
        """What is read, in the type that the statement wants of it."""
        view = self._views.get(name)
        wanted = None if view is None else view.wanted
        return read if wanted in (None, read.type) else replace(read, expression=Cast(read.expression, wanted))

    def _negate(self, operand: Typed, span: Span) -> Typed:
        if operand.is_bool:
            self._refuse_arithmetic("-", operand.span)
            return unknown(span)
        if isinstance(operand.expression, Literal):
            return Typed(Literal(-operand.expression.value, operand.type), operand.strength, span)
        result = Unary(UnaryOperator.NEGATE, settle(operand, self._report), operand.type)
        return Typed(result, operand.strength, span)

    def _binary(self, operator: BinaryOperator, left: syntax.Expression, right: syntax.Expression, span: Span) -> Typed:
        if operator in LOGIC:
            logic = Binary(operator, self.condition(left), self.condition(right), ScalarType.BOOL)
            return Typed(logic, Strength.STRONG, span)
        if operator not in ARITHMETIC and self._is_index(left) and self._is_index(right):
            # Index arithmetic is exact in INT64, whatever the types of the scalar arguments in it.
            compared = Binary(operator, self.index(left), self.index(right), ScalarType.BOOL)
            return Typed(compared, Strength.STRONG, span)
        first, second = self.value(left), self.value(right)
        if _is_chained(operator, left) and not second.is_bool:
            hint = "write `0 <= i && i < N`, and a range as `i in 0:N`; parentheses compare the outcome of the first"
            if isinstance(left, syntax.Binary) and isinstance(left.left, syntax.Name) and left.left.name in FOREIGN:
                hint = f"write {FOREIGN[left.left.name]}"  # `cast<float>(x)`
            self._report.error("comparisons do not chain: each has two sides", span, hint)
            return unknown(span)
        type, strength = common(first, second)
        if operator in ARITHMETIC and first.is_bool and second.is_bool:
            self._refuse_arithmetic(operator.value, span)
            return unknown(span)
        operands = convert(first, type, self._report), convert(second, type, self._report)
        if operator in ARITHMETIC:
            return Typed(Binary(operator, *operands, type), strength, span)
        return Typed(Binary(operator, *operands, ScalarType.BOOL), Strength.STRONG, span)

    def _refuse_arithmetic(self, operator: str, span: Span) -> None:
        self._report.error(
            f"`{operator}` is not defined on bool", span, "cast to a number first, for example `int32(...)`"
        )

    def _apply(self, expression: syntax.Apply) -> Typed:
        name, span = expression.name, expression.span
        if name in self._scope.tensors:
            return self._converted(name, self._read(name, expression.arguments, span))
        target = scalar_type(name)
        if target is not None:
            return self._cast(target, expression)
        function = builtin(name)
        if function is not None:
            return self._call(function, expression)
        for argument in expression.arguments:
            # A bare tensor is what a call would take: the unknown name is complaint enough.
            if not (isinstance(argument, syntax.Name) and argument.name in self._scope.tensors):
                self.value(argument)
        if name in self._scope.definitions:
            self._report.error(
                f"`{name}` is a definition, which only a statement of its own can call",
                expression.name_span,
                f"write `T = {name}(...)` and use `T`",
            )
        else:
            self._report.error(f"unknown name `{name}`", expression.name_span, self._scope.suggestion(name))
        return unknown(span)

    def _cast(self, target: ScalarType, expression: syntax.Apply) -> Typed:
        if len(expression.arguments) != 1:
            self._wrong_count(f"a cast to `{expression.name}`", 1, expression)
            return unknown(expression.span)
        operand = self.value(expression.arguments[0])
        # An explicit cast of a literal converts like any other: it wraps or rounds.
        return Typed(fold(Cast(operand.expression, target)), Strength.STRONG, expression.span)

    def _call(self, function: Function, expression: syntax.Apply) -> Typed:
        if len(expression.arguments) != function.arity:
            self._wrong_count(f"`{expression.name}`", function.arity, expression)
            return unknown(expression.span)
        arguments = [self.value(argument) for argument in expression.arguments]
        type, strength = arguments[0].type, arguments[0].strength
        for argument in arguments[1:]:
            type, strength = common(Typed(Literal(0, type), strength, expression.span), argument)
        if not function.keeps_integers:
            type = float_of(type)
        elif type is ScalarType.BOOL and function.name == "abs":
            self._refuse_arithmetic("abs", expression.span)
        converted = tuple(convert(argument, type, self._report) for argument in arguments)
        return Typed(Call(function.name, converted, type), strength, expression.span)

    def _wrong_count(self, what: str, expected: int, expression: syntax.Apply) -> None:
        name, given = expression.name, len(expression.arguments)
        hint = None
        if name in ("min", "max") and given == 1:
            hint = f"of many elements it is a reduction: `m(i) {name}=! A(i,j)`"
        elif name in ("min", "max"):
            hint = f"nest it: `{name}({name}(x, y), z)`"
        self._report.error(f"{what} takes {counted(expected, 'argument')}, {given} given", expression.span, hint)

    # --- indices ---------------------------------------------------------------------------------------------

    def index(self, expression: syntax.Expression) -> Expression:
        """An INT64 expression: a subscript, or a bound of a range."""
        span = expression.span
        match expression:
            case syntax.Name(name) if name in self._lets:
                return self.index(self._lets[name])
            case syntax.Name(name) if self._is_array(name):
                self._report.error(
                    f"`{name}` is a tensor, so it cannot be an index",
                    span,
                    f"give the index another name, or read an element: `{name}(...)`",
                )
                return Literal(0, INDEX_TYPE)
            case syntax.Unary(UnaryOperator.NEGATE, operand):
                return fold(Unary(UnaryOperator.NEGATE, self.index(operand), INDEX_TYPE))
            case syntax.Binary(operator, left, right) if operator in ARITHMETIC:
                return Binary(operator, self.index(left), self.index(right), INDEX_TYPE)
            case syntax.Conditional(condition, then, otherwise):
                return Select(self.condition(condition), self.index(then), self.index(otherwise), INDEX_TYPE)
            case syntax.Apply(name, arguments) if self._keeps_integers(expression):
                function = builtin(name)
                assert function is not None
                if len(arguments) != function.arity:
                    self._wrong_count(f"`{name}`", function.arity, expression)
                    return Literal(0, INDEX_TYPE)
                operands = tuple(self.index(a) for a in arguments)
                if function.name == "abs":  # which is affine, if its operand is
                    operands = (*operands, fold(Unary(UnaryOperator.NEGATE, operands[0], INDEX_TYPE)))
                return Call("max" if function.name == "abs" else function.name, operands, INDEX_TYPE)
            case _:
                return self._integer(self.value(expression), span)

    def _integer(self, result: Typed, span: Span) -> Expression:
        if result.strength is Strength.UNKNOWN:
            return fold(Cast(result.expression, INDEX_TYPE))
        if not result.type.is_integer:
            self._report.error(
                f"a subscript or a range needs an integer, this is {result.type}",
                span,
                "cast it: `int64(...)`"
                if not isinstance(result.expression, Binary) or result.expression.operator in ARITHMETIC
                else "a condition stands behind a comma of its own: `where i in 0:N, i > 2`; as a number, it is "
                "`i > 2 ? 1 : 0`",
            )
            return Literal(0, INDEX_TYPE)
        return convert(result, INDEX_TYPE, self._report)

    def _is_array(self, name: str) -> bool:
        """Whether a bare name means a tensor that has dimensions."""
        view = self._views.get(name)
        return (
            self._scope.is_bare_tensor(name) and name not in self._scope.scalars and view is not None and view.rank > 0
        )

    def _keeps_integers(self, expression: syntax.Apply) -> bool:
        if expression.name in self._scope.tensors or scalar_type(expression.name) is not None:
            return False
        function = builtin(expression.name)
        return function is not None and function.keeps_integers

    def _is_index(self, expression: syntax.Expression) -> bool:
        """Whether an expression is index arithmetic: iterators, sizes, integer scalars and literals only."""
        match expression:
            case syntax.Number(value):
                return isinstance(value, int)
            case syntax.Extent():
                return True
            case syntax.Name(name):
                if name in self._lets:
                    return self._is_index(self._lets[name])
                scalar = self._scope.scalars.get(name)
                return name not in self._scope.tensors and (scalar is None or scalar.is_integer)
            case syntax.Unary(operator, operand):
                return operator is UnaryOperator.NEGATE and self._is_index(operand)
            case syntax.Binary(operator, left, right):
                return operator in ARITHMETIC and self._is_index(left) and self._is_index(right)
            case syntax.Apply(_, arguments):
                return self._keeps_integers(expression) and all(self._is_index(a) for a in arguments)
            case syntax.Conditional(_, then, otherwise):
                return self._is_index(then) and self._is_index(otherwise)
            case _:
                assert_never(expression)


def _is_chained(operator: BinaryOperator, left: syntax.Expression) -> bool:
    """Whether the left side of a comparison is one itself, without parentheses, which would begin before it."""
    return (
        isinstance(left, syntax.Binary)
        and any(operator in level and left.operator in level for level in (EQUALITIES, RELATIONS))
        and left.span.start == left.left.span.start
    )


def _declared(name: str, view: View) -> str | None:
    """A hint that shows the declared sizes of an argument."""
    if view.shape is None:
        return None
    if not view.shape:
        return f"it is a single number: write `{name}`"
    return f"it is declared with the sizes ({', '.join(map(expression_text, view.shape))})"
