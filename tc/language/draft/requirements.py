"""Collects what a call must fulfil beyond ranks and dtypes: the preconditions of a program."""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Origin,
    Precondition,
    SizeReference,
)


class Requirements:
    """Preconditions in the order in which they were found, each once."""

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms
        self._found: dict[Expression, Precondition] = {}

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """What calls have to fulfil, in the order in which it was found."""
        return tuple(self._found.values())

    def add(self, condition: Expression, message: str, origin: Origin) -> None:
        """A BOOL expression over sizes and scalars that every call must fulfil."""
        self._found.setdefault(condition, Precondition(condition, message, origin))

    def at_least(self, polynomial: Polynomial, least: int, message: str, origin: Origin) -> None:
        """``polynomial >= least``; a product of scalars asks it of each of them, sizes need not be asked."""
        if len(polynomial.terms) == 1:
            ((monomial, _),) = polynomial.terms.items()
            expressions = [self._atoms[atom] for atom in dict.fromkeys(monomial)]
        else:
            expressions = [self._atoms.expression(polynomial)]
        for expression in expressions:
            if not isinstance(expression, SizeReference):
                bound = Literal(least, INDEX_TYPE)
                condition = Binary(BinaryOperator.GREATER_EQUAL, expression, bound, ScalarType.BOOL)
                self.add(condition, message, origin)
