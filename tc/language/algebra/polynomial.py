"""Index arithmetic in normal form: polynomials with integer coefficients over atoms.

An atom is an expression that arithmetic cannot take apart: a size, a scalar argument, an iterator, a quotient, a
minimum.  ``Atoms`` numbers them, so that a polynomial is a small dictionary; it knows which are never negative.
Terms keep the order in which they arose, which makes the expressions made of them independent of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.fold import divide, remainder
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Expression,
    IteratorReference,
    Literal,
    ScalarReference,
    SizeReference,
    Unary,
    children,
    walk,
)

Monomial: TypeAlias = tuple[int, ...]
_CONSTANT: Final[Monomial] = ()

# What leaves a tensor, or leaves a part of one unwritten, is refused in a definition when it does so for all sizes from
# here on; every other fault of ranges shows for the sizes of a call.
LEAST_SIZE: Final = 1


@dataclass(frozen=True, slots=True, eq=True)
class Polynomial:
    """A sum of integer multiples of products of atoms (their numbers, ascending); never holds a zero multiple."""

    terms: Mapping[Monomial, int]

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without atoms; None for any other."""
        if not self.terms:
            return 0
        return self.terms.get(_CONSTANT) if len(self.terms) == 1 else None

    @property
    def atoms(self) -> frozenset[int]:
        """The atoms of all monomials."""
        return frozenset(atom for monomial in self.terms for atom in monomial)

    def __add__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in (constant(other) if isinstance(other, int) else other).terms.items():
            total = terms.get(monomial, 0) + factor
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        result = Polynomial({})
        for right, times in (constant(other) if isinstance(other, int) else other).terms.items():
            result = result + Polynomial({tuple(sorted(left + right)): f * times for left, f in self.terms.items()})
        return result

    def coefficient(self, atom: int) -> Polynomial | None:
        """What multiplies an atom that occurs at most linearly; None where it is squared."""
        if any(monomial.count(atom) > 1 for monomial in self.terms):
            return None
        return Polynomial({_without(m, atom): factor for m, factor in self.terms.items() if atom in m})

    def rest(self, atom: int) -> Polynomial:
        """The terms without an atom."""
        return Polynomial({m: factor for m, factor in self.terms.items() if atom not in m})

    def substitute(self, atom: int, value: Polynomial) -> Polynomial:
        """The polynomial with an atom replaced."""
        result = Polynomial({})
        for monomial, factor in self.terms.items():
            term = Polynomial({tuple(a for a in monomial if a != atom): factor})
            for _ in range(monomial.count(atom)):
                term = value * term
            result = result + term
        return result


def _without(monomial: Monomial, atom: int) -> Monomial:
    position = monomial.index(atom)
    return monomial[:position] + monomial[position + 1 :]


def constant(value: int) -> Polynomial:
    """A polynomial without atoms."""
    return Polynomial({_CONSTANT: value} if value else {})


class Atoms:
    """The table of atoms of one definition, and the way from expressions to polynomials and back.

    ``sizes`` and ``scalars`` give the order in which products, minima and maxima are written, so that it does not
    depend on names.
    """

    def __init__(self, sizes: Iterable[str] = (), scalars: Iterable[str] = ()) -> None:
        self._expressions: list[Expression] = []
        self._numbers: dict[Expression, int] = {}
        self._nonnegative: list[bool] = []
        self._iterators: list[frozenset[str]] = []
        self._structures: dict[int, str] = {}
        self._tensors: dict[str, int] = {}
        self._scalars = {name: number for number, name in enumerate(scalars)}
        for size in sizes:
            self.number(SizeReference(size))

    def __getitem__(self, atom: int) -> Expression:
        return self._expressions[atom]

    def number(self, expression: Expression) -> int:
        """The number of an atom, entered on first sight."""
        found = self._numbers.get(expression)
        if found is None:
            found = self._numbers[expression] = len(self._expressions)
            self._nonnegative.append(self._never_negative(expression))
            self._iterators.append(frozenset(e.name for e in walk(expression) if isinstance(e, IteratorReference)))
            self._expressions.append(expression)
        return found

    def iterators(self, atom: int) -> frozenset[str]:
        """The iterators below an atom (for an iterator: itself)."""
        return self._iterators[atom]

    def variables(self, polynomial: Polynomial) -> frozenset[str]:
        """All iterators of a polynomial."""
        return frozenset().union(*(self._iterators[atom] for atom in polynomial.atoms))

    def _never_negative(self, expression: Expression) -> bool:
        match expression:
            case SizeReference() | IteratorReference():
                return True
            case Binary(BinaryOperator.DIVIDE, left, right):
                return self.is_nonnegative(self.polynomial(left)) and self.is_nonnegative(self.polynomial(right))
            case Binary(BinaryOperator.REMAINDER, left, _):
                return self.is_nonnegative(self.polynomial(left))
            case Call("min", arguments):
                return all(self.is_nonnegative(self.polynomial(a)) for a in arguments)
            case Call("max", arguments):
                return any(self.is_nonnegative(self.polynomial(a)) for a in arguments)
            case _:
                return False

    # --- expressions -----------------------------------------------------------------------------------------

    def variable(self, expression: Expression) -> Polynomial:
        """The polynomial of one atom."""
        return Polynomial({(self.number(expression),): 1})

    def iterator(self, name: str) -> int:
        """The number of an iterator."""
        return self.number(IteratorReference(name))

    def polynomial(self, expression: Expression) -> Polynomial:
        """The normal form of an INT64 expression."""
        match expression:
            case Literal(value):
                return constant(int(value))
            case Unary(UnaryOperator.NEGATE, operand):
                return -self.polynomial(operand)
            case Binary(BinaryOperator.ADD, left, right):
                return self.polynomial(left) + self.polynomial(right)
            case Binary(BinaryOperator.SUBTRACT, left, right):
                return self.polynomial(left) - self.polynomial(right)
            case Binary(BinaryOperator.MULTIPLY, left, right):
                return self.polynomial(left) * self.polynomial(right)
            case Binary(BinaryOperator.DIVIDE, left, right):
                return self.quotient(self.polynomial(left), self.polynomial(right))
            case Binary(BinaryOperator.REMAINDER, left, right):
                return self._remainder(self.polynomial(left), self.polynomial(right))
            case Call("min", arguments):
                return self.least([self.polynomial(a) for a in arguments])
            case Call("max", arguments):
                return self.greatest([self.polynomial(a) for a in arguments])
            case _:
                return self.variable(expression)

    def quotient(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """The quotient truncated towards zero."""
        if divisor.constant == 1:
            return dividend
        if dividend.constant is not None and divisor.constant is not None:
            return constant(divide(dividend.constant, divisor.constant))
        return self.variable(
            Binary(BinaryOperator.DIVIDE, self.expression(dividend), self.expression(divisor), INDEX_TYPE)
        )

    def _remainder(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        if divisor.constant == 1:
            return constant(0)
        if dividend.constant is not None and divisor.constant is not None:
            return constant(remainder(dividend.constant, divisor.constant))
        return self.variable(
            Binary(BinaryOperator.REMAINDER, self.expression(dividend), self.expression(divisor), INDEX_TYPE)
        )

    def least(self, candidates: Iterable[Polynomial]) -> Polynomial:
        """The minimum; candidates that are never the least are dropped."""
        return self._choose("min", candidates)

    def greatest(self, candidates: Iterable[Polynomial]) -> Polynomial:
        """The maximum; candidates that are never the greatest are dropped."""
        return self._choose("max", candidates)

    def clamped(self, extent: Polynomial) -> Polynomial:
        """An extent, or the end of a range from 0: one that is surely negative is the 0 that it means."""
        return constant(0) if extent.constant is not None and extent.constant < 0 else extent

    def _choose(self, function: str, candidates: Iterable[Polynomial]) -> Polynomial:
        kept: list[Polynomial] = []
        for candidate in (part for c in candidates for part in self._parts(function, c)):
            if not any(self._wins(function, k, candidate) for k in kept):
                kept = [k for k in kept if not self._wins(function, candidate, k)]
                kept.append(candidate)
        # One order for one set, whoever asked first: equal programs have equal expressions.
        kept.sort(key=self._rank)
        result = kept[0]
        for other in kept[1:]:
            arguments = (self.expression(result), self.expression(other))
            result = self.variable(Call(function, arguments, INDEX_TYPE))
        return result

    def _rank(self, polynomial: Polynomial) -> tuple[tuple[tuple[str, ...], int], ...]:
        """A key that orders polynomials by their structure, not by names nor by when their atoms were met."""
        return tuple(sorted((tuple(sorted(map(self._structure, m))), f) for m, f in polynomial.terms.items()))

    def _structure(self, atom: int) -> str:
        if atom not in self._structures:
            self._structures[atom] = self._describe(self[atom])
        return self._structures[atom]

    def _describe(self, expression: Expression) -> str:
        match expression:
            case SizeReference(name) if "." in name:  # an extent of a tensor: those of one stand in their order
                tensor, _, dimension = name.rpartition(".")
                return f"e{self._tensors.setdefault(tensor, len(self._tensors)):06}.{dimension}"
            case SizeReference() | IteratorReference():
                return f"n{self.number(expression):06}"
            case ScalarReference(name, _):
                return f"s{self._scalars.get(name, 0):06}"
            case Literal(value):
                return str(value)
            case Binary(operator):
                head = operator.value
            case Call(function):
                head = function
            case _:
                head = type(expression).__name__
        return f"{head}({','.join(map(self._describe, children(expression)))})"

    def _wins(self, function: str, first: Polynomial, second: Polynomial) -> bool:
        return self.is_nonnegative(second - first if function == "min" else first - second)

    def _parts(self, function: str, polynomial: Polynomial) -> Sequence[Polynomial]:
        """The arguments of a nested minimum (maximum); otherwise the polynomial itself."""
        if len(polynomial.terms) == 1:
            ((monomial, factor),) = polynomial.terms.items()
            if factor == 1 and len(monomial) == 1:
                atom = self[monomial[0]]
                if isinstance(atom, Call) and atom.function == function:
                    return [part for a in atom.arguments for part in self._parts(function, self.polynomial(a))]
        return (polynomial,)

    def expression(self, polynomial: Polynomial) -> Expression:
        """The expression of a polynomial: positive terms, negative terms, the constant."""
        constant_term = polynomial.terms.get(_CONSTANT, 0)
        terms = [(m, f) for m, f in polynomial.terms.items() if m]
        result: Expression | None = None
        for monomial, factor in (*(t for t in terms if t[1] > 0), *(t for t in terms if t[1] < 0)):
            product = self._product(monomial, abs(factor))
            if result is None:
                if factor > 0:
                    result = product
                    continue
                if constant_term <= 0:
                    result = Unary(UnaryOperator.NEGATE, product, INDEX_TYPE)
                    continue
                result, constant_term = Literal(constant_term, INDEX_TYPE), 0
            operator = BinaryOperator.ADD if factor > 0 else BinaryOperator.SUBTRACT
            result = Binary(operator, result, product, INDEX_TYPE)
        if result is None:
            return Literal(constant_term, INDEX_TYPE)
        if constant_term:
            operator = BinaryOperator.ADD if constant_term > 0 else BinaryOperator.SUBTRACT
            result = Binary(operator, result, Literal(abs(constant_term), INDEX_TYPE), INDEX_TYPE)
        return result

    def _product(self, monomial: Monomial, factor: int) -> Expression:
        result: Expression | None = None if factor == 1 else Literal(factor, INDEX_TYPE)
        # In one order, whichever was met first: sizes and iterators, then what is computed.
        for atom in monomial if len(monomial) == 1 else sorted(monomial, key=self._place):
            expression = self._expressions[atom]
            result = expression if result is None else Binary(BinaryOperator.MULTIPLY, result, expression, INDEX_TYPE)
        return Literal(factor, INDEX_TYPE) if result is None else result

    def _place(self, atom: int) -> tuple[str, int]:
        is_plain = isinstance(self[atom], SizeReference | IteratorReference)
        return ("" if is_plain else self._structure(atom)), atom

    # --- signs -----------------------------------------------------------------------------------------------

    def is_nonnegative(self, polynomial: Polynomial) -> bool:
        """Surely never negative, for all sizes and iterators."""
        return all(
            factor > 0 and all(self._nonnegative[atom] for atom in monomial)
            for monomial, factor in polynomial.terms.items()
        )

    def is_negative(self, polynomial: Polynomial) -> bool:
        """Surely negative for all sizes from LEAST_SIZE on and all iterators."""
        shifted = polynomial
        for atom in polynomial.atoms:
            if isinstance(self[atom], SizeReference):
                shifted = shifted.substitute(atom, Polynomial({(atom,): 1, _CONSTANT: LEAST_SIZE}))
        return shifted.terms.get(_CONSTANT, 0) < 0 and all(
            factor < 0 and all(self._nonnegative[atom] for atom in monomial)
            for monomial, factor in shifted.terms.items()
        )
