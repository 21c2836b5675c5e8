"""Offsets of elements as linear forms of loop variables.

Quotients and remainders of one expression by one number, which loops over several dimensions at once bring, come
together again: ``12 * (x / 12) + x % 12`` is ``x``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add, floordiv, mod, mul, neg, sub
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from tc.base.remembered import Remembered
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.affine_form import AffineForm
from tc.language.program.program import Binary, Call, Expression, IteratorReference, Literal, Unary
from tc.polyhedral.analysis.ranges import Ranges, range_of
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable

_QUOTIENTS: Final = (IndexOperator.FLOOR_DIVIDE, IndexOperator.NONNEGATIVE_DIVIDE)

_NOTHING_KNOWN: Final[Ranges] = MappingProxyType({})

_ARITHMETIC: Final[Mapping[IndexOperator, Callable[..., int]]] = {
    IndexOperator.ADD: add,
    IndexOperator.SUBTRACT: sub,
    IndexOperator.MULTIPLY: mul,
    IndexOperator.NEGATE: neg,
    IndexOperator.MINIMUM: min,
    IndexOperator.MAXIMUM: max,
    IndexOperator.EXACT_DIVIDE: floordiv,
    IndexOperator.FLOOR_DIVIDE: floordiv,
    IndexOperator.NONNEGATIVE_DIVIDE: floordiv,
    IndexOperator.NONNEGATIVE_REMAINDER: mod,
}

# The values of a statement's iterators at one place.
Arguments: TypeAlias = Mapping[str, IndexExpression]


@dataclass(frozen=True, slots=True)
class LinearForm(AffineForm[IndexExpression]):
    """Of index expressions."""

    def slope(self, variable: str) -> int | None:
        """How much the form grows with a variable; None where that is not constant."""
        found = 0
        for term, factor in self.factors.items():
            if term == IndexVariable(variable):
                found = factor
            elif _mentions(term, variable):
                return None
        return found

    def step(self, variable: str) -> IndexExpression | None:
        """``slope`` as an expression, which may have other variables: a stride that depends on open sizes."""
        found = LinearForm()
        for term, factor in self.factors.items():
            match term:
                case IndexVariable(name) if name == variable:
                    found = found.plus(LinearForm(factor))
                case IndexOperation(IndexOperator.MULTIPLY, (other, IndexVariable(name))) if (
                    name == variable and not _mentions(other, variable)
                ):
                    found = found.plus(LinearForm(0, {other: factor}))
                case _ if _mentions(term, variable):
                    return None
        return found.expression()

    def expression(self, first: IndexExpression | None = None) -> IndexExpression:
        """The form as an expression; ``first``: something that it is added to."""
        total = first
        for term, factor in sorted(self.factors.items(), key=lambda item: -item[1]):
            size = abs(factor)
            product = term if size == 1 else IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(size), term))
            if total is None:
                total = product if factor > 0 else IndexOperation(IndexOperator.NEGATE, (product,))
            else:
                operator = IndexOperator.ADD if factor > 0 else IndexOperator.SUBTRACT
                total = IndexOperation(operator, (total, product))
        if total is None:
            return IndexLiteral(self.constant)
        if self.constant == 0:
            return total
        return IndexOperation(IndexOperator.ADD, (total, IndexLiteral(self.constant)))


def subscript_form(
    subscript: Expression, arguments: Arguments, ranges: Ranges = _NOTHING_KNOWN, forms: Forms | None = None
) -> LinearForm | None:
    """A subscript where the iterators have these values; None where it is not quasi-affine in them.

    ``ranges``: of the variables that the values mention.  ``forms``: of values, for many subscripts that have the same.
    """
    match subscript:
        case Literal(value, type) if type.is_integer:
            return LinearForm(int(value))
        case IteratorReference(name):
            return index_form(arguments[name]) if forms is None else forms.of(arguments[name])
        case Unary(UnaryOperator.NEGATE, operand):
            inner = subscript_form(operand, arguments, ranges, forms)
            return None if inner is None else LinearForm().plus(inner, -1)
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT as operator, left, right):
            first, second = (
                subscript_form(left, arguments, ranges, forms),
                subscript_form(right, arguments, ranges, forms),
            )
            if first is None or second is None:
                return None
            return first.plus(second, 1 if operator is BinaryOperator.ADD else -1)
        case Binary(BinaryOperator.MULTIPLY, Literal(value), other) | Binary(
            BinaryOperator.MULTIPLY, other, Literal(value)
        ):
            inner = subscript_form(other, arguments, ranges, forms)
            return None if inner is None else LinearForm().plus(inner, int(value))
        case Binary(BinaryOperator.DIVIDE | BinaryOperator.REMAINDER as operator, left, Literal(value)) if value > 0:
            inner = subscript_form(left, arguments, ranges, forms)
            # The language rounds towards zero, which is down where nothing is negative.
            if inner is None or range_of(inner.expression(), ranges).least < 0:
                return None
            quotient, remainder = divided(inner, int(value), ranges)
            return quotient if operator is BinaryOperator.DIVIDE else remainder
        case Call("min" | "max" as name, (left, right)):
            first, second = (
                subscript_form(left, arguments, ranges, forms),
                subscript_form(right, arguments, ranges, forms),
            )
            return None if first is None or second is None else _extreme(name, first, second, ranges)
        case _:
            return None


def _extreme(name: str, first: LinearForm, second: LinearForm, ranges: Ranges) -> LinearForm:
    """The least or the greatest of two, which is one of them where ranges decide."""
    distance = range_of(first.plus(second, -1).expression(), ranges)
    if distance.least >= 0:
        return first if name == "max" else second
    if distance.most <= 0:
        return second if name == "max" else first
    operator = IndexOperator.MAXIMUM if name == "max" else IndexOperator.MINIMUM
    return LinearForm(0, {IndexOperation(operator, (first.expression(), second.expression())): 1})


class Forms:
    """``index_form`` of expressions, found once for the very same one."""

    def __init__(self) -> None:
        self._found: Final = Remembered[LinearForm]()

    def of(self, expression: IndexExpression) -> LinearForm:
        """The linear form of an expression."""
        return self._found.of((expression,), lambda: index_form(expression))


def index_form(expression: IndexExpression) -> LinearForm:
    """An index expression as a linear form; what is not linear is a term of its own."""
    factors: dict[IndexExpression, int] = {}
    constant = _add_form(expression, 1, factors)
    return LinearForm(constant, {term: factor for term, factor in factors.items() if factor})


def _add_form(expression: IndexExpression, factor: int, factors: dict[IndexExpression, int]) -> int:
    """Adds a multiple of the terms of an expression to ``factors``; the same multiple of its constant."""
    match expression:
        case IndexLiteral(value):
            return factor * value
        case IndexOperation(IndexOperator.ADD, (left, right)):
            return _add_form(left, factor, factors) + _add_form(right, factor, factors)
        case IndexOperation(IndexOperator.SUBTRACT, (left, right)):
            return _add_form(left, factor, factors) + _add_form(right, -factor, factors)
        case IndexOperation(IndexOperator.NEGATE, (operand,)):
            return _add_form(operand, -factor, factors)
        case IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(times), other)) | IndexOperation(
            IndexOperator.MULTIPLY, (other, IndexLiteral(times))
        ):
            return _add_form(other, factor * times, factors)
        case IndexOperation() if _is_number(expression):
            return factor * evaluate(expression, {})
        case _:
            factors[expression] = factors.get(expression, 0) + factor
            return 0


def divided(form: LinearForm, divisor: int, ranges: Ranges) -> tuple[LinearForm, LinearForm]:
    """Quotient and remainder of a form that is not negative.

    Multiples of the divisor leave no remainder.  Of the rest, what is below a factor of the divisor and of everything
    else is remainder, too: ``(8 * x + y) / 24`` is ``x / 3`` where y is below 8.
    """
    whole, rest = _multiples(form, divisor)
    left = range_of(rest.expression(), ranges)
    if left.least < 0:
        return _undivided(form, divisor)
    if left.most < divisor:
        return whole, rest
    for factor in sorted({math.gcd(divisor, own) for own in rest.factors.values()} - {1, divisor}, reverse=True):
        coarse, fine = _multiples(rest, factor)
        within = range_of(fine.expression(), ranges)
        if within.least >= 0 and within.most < factor and range_of(coarse.expression(), ranges).least >= 0:
            quotient, remainder = divided(coarse, divisor // factor, ranges)
            return whole.plus(quotient), fine.plus(remainder, factor)
    quotient, remainder = _undivided(rest, divisor)
    match list(rest.factors.items()):
        case [(IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (inner, IndexLiteral(by))), 1)] if not rest.constant:
            quotient, _ = divided(index_form(inner), by * divisor, ranges)  # x / 4 / 3 is x / 12
        case _:
            pass
    return whole.plus(quotient), remainder


def _multiples(form: LinearForm, divisor: int) -> tuple[LinearForm, LinearForm]:
    """The form as ``divisor * first + second``, with all terms in the first one that are multiples."""
    whole = LinearForm(form.constant // divisor, {t: f // divisor for t, f in form.factors.items() if f % divisor == 0})
    return whole, LinearForm(form.constant % divisor, {t: f for t, f in form.factors.items() if f % divisor})


def _undivided(form: LinearForm, divisor: int) -> tuple[LinearForm, LinearForm]:
    ends = (form.expression(), IndexLiteral(divisor))
    quotient = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, ends)
    return index_form(quotient), index_form(IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, ends))


def _is_number(expression: IndexExpression) -> bool:
    """Whether ``evaluate`` needs no variable; isl leaves ``(2 * 0 + 2) / 3`` where a loop ran once."""
    match expression:
        case IndexLiteral():
            return True
        case IndexVariable():
            return False
        case IndexOperation(operator, operands):
            return operator in _ARITHMETIC and all(map(_is_number, operands))
        case _:
            assert_never(expression)


def straightened(form: LinearForm, variable: str, values: range) -> LinearForm:
    """The form with terms of this variable alone as a multiple of it, if their sum is one for all its values."""
    own = {t: f for t, f in form.factors.items() if t != IndexVariable(variable) and _only_mentions(t, variable)}
    if not own or len(values) < 2:
        return form
    found = [sum(factor * evaluate(term, {variable: value}) for term, factor in own.items()) for value in values]
    slope, odd = divmod(found[1] - found[0], values.step)
    if odd or any(then - now != slope * values.step for now, then in itertools.pairwise(found)):
        return form
    others = LinearForm(form.constant, {t: f for t, f in form.factors.items() if t not in own})
    return others.plus(LinearForm(found[0] - slope * values[0], {IndexVariable(variable): slope}))


def evaluate(expression: IndexExpression, values: Mapping[str, int]) -> int:
    """The value of an arithmetic expression; KeyError for a variable that has none, ValueError for logic."""
    match expression:
        case IndexLiteral(value):
            return value
        case IndexVariable(name):
            return values[name]
        case IndexOperation(operator, operands):
            numbers = [evaluate(operand, values) for operand in operands]
            if operator not in _ARITHMETIC:
                raise ValueError(operator)
            return _ARITHMETIC[operator](*numbers)
        case _:
            assert_never(expression)


def _only_mentions(expression: IndexExpression, variable: str) -> bool:
    match expression:
        case IndexLiteral():
            return True
        case IndexVariable(name):
            return name == variable
        case IndexOperation(operator, operands):
            return operator in _ARITHMETIC and all(_only_mentions(operand, variable) for operand in operands)
        case _:
            assert_never(expression)


def recombined(form: LinearForm) -> LinearForm:
    """The form with quotients and remainders that belong together replaced by what was divided."""
    form = _shifted(form)
    while (found := _pair(form) or _in_two_steps(form) or _rounded_up(form)) is not None:
        quotient, remainder, whole = found
        left = LinearForm(form.constant, {t: f for t, f in form.factors.items() if t not in (quotient, remainder)})
        form = left.plus(whole, form.factors[remainder])
    return form


def _shifted(form: LinearForm) -> LinearForm:
    """The form with ``e / k + m`` for ``(e + m * k) / k`` beside ``e / k``, which says that ``e`` is not negative."""
    quotients = [
        (term, index_form(whole), divisor)
        for term in form.factors
        if isinstance(term, IndexOperation) and term.operator in _QUOTIENTS
        for whole, divisor in (term.operands,)
    ]
    for (term, own, divisor), (other, dividend, by) in itertools.permutations(quotients, 2):
        distance = own.plus(dividend, -1)
        if divisor != by or distance.factors or distance.constant <= 0 or not isinstance(by, IndexLiteral):
            continue
        whole, rest = divmod(distance.constant, by.value)
        if not rest:
            factor = form.factors[term]
            left = LinearForm(form.constant, {t: f for t, f in form.factors.items() if t != term})
            return _shifted(left.plus(LinearForm(whole, {other: 1}), factor))
    return form


# A quotient and a remainder of a form, and what both are together where the factor of the remainder is 1.
_Together: TypeAlias = tuple[IndexExpression, IndexExpression, LinearForm]


def _pair(form: LinearForm) -> _Together | None:
    """A quotient ``e / k``, and the remainder of the same by ``k`` with a ``k``-th of its factor: ``e``.

    The remainder of ``e % m`` by a divisor of ``m`` is that of ``e``, and that of ``e + m * k`` by ``k``, too.
    """
    for term, factor in form.factors.items():
        match term:
            case IndexOperation(operator, (whole, IndexLiteral(divisor))) if operator in _QUOTIENTS:
                wanted = [index_form(whole)]
                match whole:
                    case IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (inner, IndexLiteral(modulus))) if (
                        modulus % divisor == 0
                    ):
                        wanted.append(index_form(inner))
                for remainder, times in form.factors.items():
                    if times * divisor == factor and _is_remainder(remainder, wanted, divisor):
                        return term, remainder, wanted[0]
    return None


def _is_remainder(term: IndexExpression, dividends: list[LinearForm], divisor: int) -> bool:
    """Whether a term is the remainder of one of these, or of what is multiples of the divisor apart."""
    match term:
        case IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (whole, IndexLiteral(number))) if number == divisor:
            distances = (index_form(whole).plus(dividend, -1) for dividend in dividends)
            return any(not distance.factors and distance.constant % divisor == 0 for distance in distances)
        case _:
            return False


def _in_two_steps(form: LinearForm) -> _Together | None:
    """A quotient ``e / (m * k)``, and the remainder of ``e / m`` by ``k`` with a ``k``-th of its factor: ``e / m``."""
    for remainder, factor in form.factors.items():
        match remainder:
            case IndexOperation(
                IndexOperator.NONNEGATIVE_REMAINDER,
                (IndexOperation(operator, (whole, IndexLiteral(first))) as part, IndexLiteral(second)),
            ) if operator in _QUOTIENTS:
                quotient = IndexOperation(operator, (whole, IndexLiteral(first * second)))
                if form.factors.get(quotient, 0) == factor * second:
                    return quotient, remainder, LinearForm(0, {part: 1})
    return None


def _rounded_up(form: LinearForm) -> _Together | None:
    """``e % k - k * (((k - 1) * e + k - 1) / k)`` as ``e - k * e``: isl writes ``e - e / k`` as that quotient."""
    for term, factor in form.factors.items():
        match term:
            case IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (inner, IndexLiteral(divisor))) if divisor > 1:
                whole = index_form(inner)
                raised = LinearForm(divisor - 1).plus(whole, divisor - 1)
                for other, times in form.factors.items():
                    if times == -divisor * factor and _is_quotient(other, raised, divisor):
                        return other, term, LinearForm().plus(whole, 1 - divisor)
    return None


def _is_quotient(term: IndexExpression, dividend: LinearForm, divisor: int) -> bool:
    match term:
        case IndexOperation(operator, (whole, IndexLiteral(number))) if operator in _QUOTIENTS:
            return number == divisor and index_form(whole) == dividend
        case _:
            return False


def _mentions(expression: IndexExpression, variable: str) -> bool:
    match expression:
        case IndexLiteral():
            return False
        case IndexVariable(name):
            return name == variable
        case IndexOperation(_, operands):
            return any(_mentions(operand, variable) for operand in operands)
