"""Constant folding: arithmetic on literals as kernels do it, and the identities that leave plain subscripts.

Only integer arithmetic, conditions, signs and conversions of literals are folded; floating-point arithmetic is left
to the kernel, whose rounding is its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tc.base.rounding import round_to
from tc.base.types import Kind, ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    Literal,
    Read,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
    children,
    rebuild,
    walk,
)


def divide(dividend: int, divisor: int) -> int:
    """Truncated division; by zero it gives 0."""
    if divisor == 0:
        return 0
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def remainder(dividend: int, divisor: int) -> int:
    """The remainder of ``divide``; by zero it gives 0."""
    return 0 if divisor == 0 else dividend - divisor * divide(dividend, divisor)


def wrap(value: int, type: ScalarType) -> int:
    """The value modulo the range of an integer type."""
    return (value - type.minimum) % (type.maximum - type.minimum + 1) + type.minimum


def convert_literal(literal: Literal, type: ScalarType) -> Literal:
    """``Cast`` of a literal: integers wrap, floating to integer truncates and saturates, NaN gives 0."""
    value = literal.value
    match type.kind:
        case Kind.BOOLEAN:
            return Literal(value != 0, type)
        case Kind.FLOATING:
            try:
                return Literal(round_to(float(value), type), type)
            except OverflowError:  # an integer beyond the range of a double
                return Literal(math.inf if value > 0 else -math.inf, type)
        case Kind.SIGNED | Kind.UNSIGNED:
            if not isinstance(value, float):
                return Literal(wrap(int(value), type), type)
            if math.isnan(value):
                return Literal(0, type)
            if math.isinf(value):
                return Literal(type.maximum if value > 0 else type.minimum, type)
            return Literal(min(max(int(value), type.minimum), type.maximum), type)


def fold_constants(expression: Expression) -> Expression:
    """The expression with every operation on literals done."""
    return fold(rebuild(expression, fold_constants))


def substitute(
    expression: Expression,
    values: Mapping[Expression, Expression],
    simplify: Callable[[Expression], Expression] | None = None,
) -> Expression:
    """The expression with sizes and scalars (or any leaves) replaced, and folded, or simplified in another way."""
    if not values:
        return expression
    found = values.get(expression) if isinstance(expression, SizeReference | ScalarReference) else None
    if found is not None:
        return found
    return (simplify or fold)(rebuild(expression, lambda child: substitute(child, values, simplify)))


def put_in(expression: Expression, values: Mapping[Expression, Expression]) -> Expression:
    """The expression of a definition with placeholders of extents replaced; only what holds one is folded.

    So a text folds in the same way when it is printed, with extents where nothing had to be said of them.
    """
    found = values.get(expression) if isinstance(expression, SizeReference) else None
    if found is not None:
        return found
    parts = children(expression)
    changed = [put_in(part, values) for part in parts]
    if all(new is old for new, old in zip(changed, parts, strict=True)):
        return expression
    following = iter(changed)
    return fold_keeping_reads(rebuild(expression, lambda _: next(following)))


def fold_keeping_reads(expression: Expression) -> Expression:
    """``fold`` for definitions: a result that is read before it is written comes in, whatever is read of it."""
    folded = fold(expression)
    if folded is expression:
        return expression  # mostly; to look for all reads in it at every level takes quadratic time
    return folded if _reads(folded) == _reads(expression) else expression


def _reads(expression: Expression) -> set[Expression]:
    return {part for part in walk(expression) if isinstance(part, Read)}


def _is_wide(expression: Expression) -> bool:
    """Whether an expression of halves, which is computed in float32, may have a value that no half has."""
    match expression:
        case Binary():
            return True
        case Call(_, arguments):
            return bool(arguments)
        case Unary(_, operand):
            return _is_wide(operand)
        case Select(_, then, otherwise):
            return _is_wide(then) or _is_wide(otherwise)
        case _:
            return False


def fold(expression: Expression) -> Expression:
    """The expression with its root folded; its children are taken as folded."""
    match expression:
        case Cast(Literal() as literal, type):
            converted = convert_literal(literal, type)
            # Infinity has no literal in the language.
            return converted if math.isfinite(converted.value) else expression
        case Cast(operand, type) if operand.type is type and not (type.is_half and _is_wide(operand)):
            return operand
        case Unary(UnaryOperator.NEGATE, Literal(value, type)):
            return Literal(-value if type.is_floating else wrap(-int(value), type), type)
        case Unary(UnaryOperator.NOT, Literal(value, type)):
            return Literal(not value, type)
        case Select(Literal(value), then, otherwise):
            return then if value else otherwise
        case Call(name, arguments, type) if type.is_integer:
            return _fold_call(name, arguments, type) or expression
        case Binary(BinaryOperator.AND | BinaryOperator.OR):
            return _fold_logic(expression)
        case Binary(operator, left, right) if left.type.is_integer:
            return _fold_integers(operator, left, right) or expression
        case _:
            return expression


def _fold_call(name: str, arguments: tuple[Expression, ...], type: ScalarType) -> Expression | None:
    """The integer functions: on literals, or of one argument twice, nested ones included."""
    values = [int(argument.value) for argument in arguments if isinstance(argument, Literal)]
    if len(values) < len(arguments):
        return _fold_choice(name, arguments, type) if name in ("min", "max") else None
    match name:
        case "min":
            return Literal(min(values), type)
        case "max":
            return Literal(max(values), type)
        case "abs":
            return Literal(wrap(abs(values[0]), type), type)
        case _:
            return None


def _fold_choice(name: str, arguments: tuple[Expression, ...], type: ScalarType) -> Expression | None:
    """``max(a, max(a, b))`` as ``max(a, b)``: what stands for an extent may hold a part that stands beside it."""
    parts = [part for argument in arguments for part in _nested(name, argument)]
    kept = list(dict.fromkeys(parts))
    if len(kept) == len(parts):
        return None
    result = kept[0]
    for part in kept[1:]:
        result = Call(name, (result, part), type)
    return result


def _nested(name: str, expression: Expression) -> list[Expression]:
    if isinstance(expression, Call) and expression.function == name:
        return [part for argument in expression.arguments for part in _nested(name, argument)]
    return [expression]


def _fold_logic(expression: Binary) -> Expression:
    """A literal on the left decides, or leaves the right operand."""
    if not isinstance(expression.left, Literal):
        return expression
    decides = bool(expression.left.value) == (expression.operator is BinaryOperator.OR)
    return expression.left if decides else expression.right


def _fold_integers(operator: BinaryOperator, left: Expression, right: Expression) -> Expression | None:
    """Integer arithmetic and comparisons: on two literals, or with a neutral one; None where nothing folds."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _evaluate(operator, int(left.value), int(right.value), left.type)
    match operator, left, right:
        case BinaryOperator.ADD, Literal(0), _:
            return right
        case ((BinaryOperator.ADD | BinaryOperator.SUBTRACT), _, Literal(0)):
            return left
        case BinaryOperator.MULTIPLY, Literal(1), _:
            return right
        case ((BinaryOperator.MULTIPLY | BinaryOperator.DIVIDE), _, Literal(1)):
            return left
        case BinaryOperator.REMAINDER, _, Literal(0 | 1, type):
            return Literal(0, type)
        case BinaryOperator.DIVIDE, _, Literal(0):
            return right
        case _:
            return None


def _evaluate(operator: BinaryOperator, left: int, right: int, type: ScalarType) -> Literal | None:
    match operator:
        case BinaryOperator.ADD:
            return Literal(wrap(left + right, type), type)
        case BinaryOperator.SUBTRACT:
            return Literal(wrap(left - right, type), type)
        case BinaryOperator.MULTIPLY:
            return Literal(wrap(left * right, type), type)
        case BinaryOperator.DIVIDE:
            return Literal(wrap(divide(left, right), type), type)
        case BinaryOperator.REMAINDER:
            return Literal(remainder(left, right), type)
        case BinaryOperator.EQUAL:
            return Literal(left == right, ScalarType.BOOL)
        case BinaryOperator.NOT_EQUAL:
            return Literal(left != right, ScalarType.BOOL)
        case BinaryOperator.LESS:
            return Literal(left < right, ScalarType.BOOL)
        case BinaryOperator.LESS_EQUAL:
            return Literal(left <= right, ScalarType.BOOL)
        case BinaryOperator.GREATER:
            return Literal(left > right, ScalarType.BOOL)
        case BinaryOperator.GREATER_EQUAL:
            return Literal(left >= right, ScalarType.BOOL)
        case BinaryOperator.AND | BinaryOperator.OR:
            return None
