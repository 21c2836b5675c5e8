"""Conditions as inequalities ``polynomial >= 0``: what a guard tells, and what an access asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.program.program import INDEX_TYPE, Binary, Expression, Unary


def inequalities(condition: Expression, value: bool, atoms: Atoms) -> Iterator[Polynomial]:
    """Polynomials that are not negative where the condition has the value; none for what is not arithmetic."""
    match condition:
        case Unary(UnaryOperator.NOT, operand):
            yield from inequalities(operand, not value, atoms)
        case Binary(BinaryOperator.AND, left, right) if value:
            yield from inequalities(left, True, atoms)
            yield from inequalities(right, True, atoms)
        case Binary(BinaryOperator.OR, left, right) if not value:
            yield from inequalities(left, False, atoms)
            yield from inequalities(right, False, atoms)
        case Binary(operator, left, right) if left.type is INDEX_TYPE:
            difference = atoms.polynomial(right) - atoms.polynomial(left)
            for polynomial in _compare(operator, value, difference):
                yield tighten(polynomial)
        case _:
            return


def _compare(operator: BinaryOperator, value: bool, difference: Polynomial) -> Iterable[Polynomial]:
    """``left operator right`` has the value; ``difference`` is right minus left."""
    match operator, value:
        case (BinaryOperator.LESS, True) | (BinaryOperator.GREATER_EQUAL, False):
            return (difference - 1,)
        case (BinaryOperator.LESS_EQUAL, True) | (BinaryOperator.GREATER, False):
            return (difference,)
        case (BinaryOperator.GREATER, True) | (BinaryOperator.LESS_EQUAL, False):
            return (-difference - 1,)
        case (BinaryOperator.GREATER_EQUAL, True) | (BinaryOperator.LESS, False):
            return (-difference,)
        case (BinaryOperator.EQUAL, True) | (BinaryOperator.NOT_EQUAL, False):
            return (difference, -difference)
        case _:
            return ()


def tighten(polynomial: Polynomial) -> Polynomial:
    """An inequality over integers divided by the common divisor of its factors: ``2i - 1 >= 0`` is ``i - 1 >= 0``."""
    divisor = math.gcd(*(abs(factor) for monomial, factor in polynomial.terms.items() if monomial))
    if divisor <= 1:
        return polynomial
    reduced = {monomial: factor // divisor for monomial, factor in polynomial.terms.items()}
    return Polynomial({monomial: factor for monomial, factor in reduced.items() if factor})


def is_implied(asked: Polynomial, facts: Iterable[Polynomial], atoms: Atoms) -> bool:
    """Whether ``asked >= 0`` follows from one of the facts, for all sizes and iterators."""
    wanted = tighten(asked)
    return any(atoms.is_nonnegative(wanted - fact) for fact in facts)


def linearize(asked: Polynomial, atoms: Atoms) -> Polynomial:
    """``asked >= 0`` without its quotient, where it has one of iterators: ``p / c <= r`` is ``p <= c*r + c - 1``.

    The result asks for at least as much as ``asked``, for positive divisors.
    """
    quotients = [
        (monomial[0], factor)
        for monomial, factor in asked.terms.items()
        if len(monomial) == 1 and atoms.iterators(monomial[0]) and _is_quotient(atoms[monomial[0]])
    ]
    if len(quotients) != 1 or abs(quotients[0][1]) != 1:
        return asked
    atom, factor = quotients[0]
    quotient = atoms[atom]
    assert isinstance(quotient, Binary)
    dividend, divisor = atoms.polynomial(quotient.left), atoms.polynomial(quotient.right)
    if atoms.variables(divisor):
        return asked
    rest = asked.rest(atom)
    if factor < 0:
        return divisor * rest + divisor - 1 - dividend
    # Truncation rounds towards zero: from below, a quotient of 0 begins at 1 - divisor.
    slack = divisor - 1 if atoms.is_nonnegative(rest) else Polynomial({})
    return dividend + divisor * rest + slack


def _is_quotient(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.operator is BinaryOperator.DIVIDE
