"""The least value that a polynomial takes over the ranges of its iterators, as a polynomial of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.program.program import Binary, Call, IteratorReference


@frozen
class Interval:
    """``begin <= iterator < end``; the bounds may mention other iterators."""

    begin: Polynomial
    end: Polynomial


@dataclass(slots=True)
class Extremes:
    """Replaces resolved iterators by the end of their range that makes a polynomial least.

    A factor whose sign depends on scalar arguments is taken as not negative and noted in ``assumptions``.
    """

    atoms: Atoms
    intervals: Mapping[str, Interval]
    assumptions: list[Polynomial] = field(default_factory=list)

    def least(self, polynomial: Polynomial) -> Polynomial | None:
        """A lower bound without resolved iterators, reached if the ranges are boxes; None if there is no rule."""
        current: Polynomial | None = polynomial
        while current is not None:
            atom = self._next(current)
            if atom is None:
                return current
            current = self._eliminate(current, atom)
        return None

    def greatest(self, polynomial: Polynomial) -> Polynomial | None:
        """An upper bound, as ``least``."""
        result = self.least(-polynomial)
        return None if result is None else -result

    def is_positive(self, factor: Polynomial) -> bool | None:
        """The sign of a factor; None if it is unknown."""
        if factor.terms and all(times > 0 for times in factor.terms.values()):
            return True
        return False if all(times < 0 for times in factor.terms.values()) else None

    def _next(self, polynomial: Polynomial) -> int | None:
        """An atom to eliminate: one with resolved iterators, on which no other one's range depends."""
        candidates = [a for a in polynomial.atoms if self.atoms.iterators(a) & self.intervals.keys()]
        compound = [a for a in candidates if not isinstance(self.atoms[a], IteratorReference)]
        if compound:
            return min(compound)
        for atom in sorted(candidates):
            if not any(self._depends(other, atom) for other in candidates if other != atom):
                return atom
        return None

    def _depends(self, iterator: int, on: int) -> bool:
        """Whether the range of one iterator mentions, directly or not, another one."""
        (name,), (wanted,) = self.atoms.iterators(iterator), self.atoms.iterators(on)
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            interval = self.intervals.get(waiting.pop())
            if interval is not None:
                new = (self.atoms.variables(interval.begin) | self.atoms.variables(interval.end)) - seen
                seen |= new
                waiting.extend(new)
        return wanted in seen

    def _eliminate(self, polynomial: Polynomial, atom: int) -> Polynomial | None:
        factor = polynomial.coefficient(atom)
        if factor is None or self.atoms.variables(factor):
            return None
        positive = self.is_positive(factor)
        if positive is None:
            return None
        if not self.atoms.is_nonnegative(factor if positive else -factor):
            self.assumptions.append(factor if positive else -factor)
        extreme = self._extreme(atom, upper=not positive)
        return None if extreme is None else polynomial.substitute(atom, extreme)

    def _extreme(self, atom: int, *, upper: bool) -> Polynomial | None:
        expression = self.atoms[atom]
        match expression:
            case IteratorReference(name):
                interval = self.intervals[name]
                return interval.end - 1 if upper else interval.begin
            case Binary(BinaryOperator.DIVIDE, left, right):
                divisor = self.atoms.polynomial(right)
                dividend = self._bound(self.atoms.polynomial(left), upper)
                if dividend is None or self.atoms.variables(divisor) or not self.is_positive(divisor):
                    return None
                return self.atoms.quotient(dividend, divisor)
            case Binary(BinaryOperator.REMAINDER, left, right):
                divisor = self.atoms.polynomial(right)
                if self.atoms.variables(divisor) or not self.is_positive(divisor):
                    return None
                if upper:
                    return divisor - 1
                return constant(0) if self.atoms.is_nonnegative(self.atoms.polynomial(left)) else -divisor + 1
            case Call("min" | "max" as function, arguments):
                bounds = [self._bound(self.atoms.polynomial(a), upper) for a in arguments]
                known = [bound for bound in bounds if bound is not None]
                if len(known) < len(bounds):
                    return None
                return self.atoms.least(known) if function == "min" else self.atoms.greatest(known)
            case _:
                return None

    def _bound(self, polynomial: Polynomial, upper: bool) -> Polynomial | None:
        return self.greatest(polynomial) if upper else self.least(polynomial)
