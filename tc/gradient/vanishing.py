"""Adjoints that are 0 whatever is given: in softmax, that of the maximum, which cancels out.

The sum of what is added to an adjoint is brought to a normal form over the real numbers: a sum of products of powers of
elements, of functions of them, and of reductions.  Pointwise values are replaced by what they are computed from, and
factors that a reduction does not run over stand before it.  Where all terms cancel, the adjoint is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.gradient.images import is_everything
from tc.gradient.reads import read_by
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Cast,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Statement,
    Unary,
    in_terms_of,
    iterators_in,
)

# Terms of a sum, by far more than those that cancel in what people write.
_MOST_TERMS: Final = 64


@frozen
class _Sum:
    """A reduction of a product; its iterators are numbered, so that names do not matter."""

    ranges: tuple[Expression, ...]
    product: _Product


# Factors with their exponents; products with their coefficients.
_Factor: TypeAlias = "Expression | _Sum"
_Product: TypeAlias = "frozenset[tuple[_Factor, int]]"
_Terms: TypeAlias = "dict[_Product, Fraction]"

_ONE: Final[frozenset[tuple[_Factor, int]]] = frozenset()


class _NoNormalFormError(Exception):
    """Of what has none, or only a long one."""


def vanishes(program: Program, adjoint: str) -> bool:
    """Whether all that statements add to an adjoint cancels out, as real numbers do."""
    own = [statement for statement in program.statements if statement.target == adjoint]
    if not own or any(s.blocks or s.conditions or s.reduction not in (None, Reduction.ADD) for s in own):
        return False
    total: _Terms = {}
    normal = _Normal(program)
    try:
        for statement in own:
            if not _is_whole(statement, program):
                return False
            names = {s.name: f"@{n}" for n, s in enumerate(_iterators(statement))}
            total = _added(total, _renamed(normal.statement(statement), names))
    except _NoNormalFormError:
        return False
    return not total


def _iterators(statement: Statement) -> list[IteratorReference]:
    return [own for own in statement.subscripts if isinstance(own, IteratorReference)]


def _is_whole(statement: Statement, program: Program) -> bool:
    """Whether it gives a sum, or a value, to each element of its target."""
    names = [own.name for own in _iterators(statement)]
    return len(set(names)) == len(statement.subscripts) and is_everything(statement, program.tensor(statement.target))


class _Normal:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._defined: Final[Mapping[str, Statement]] = _defined(program)
        self._known: Final[dict[str, _Terms]] = {}

    def statement(self, statement: Statement) -> _Terms:
        """What a statement gives to the element that it writes."""
        written = {own.name for own in _iterators(statement)}
        return _summed(self.terms(statement.value), [i for i in statement.iterators if i.name not in written])

    def terms(self, value: Expression) -> _Terms:
        match value:
            case Literal(number) if value.type.is_floating and isfinite(number):
                return {_ONE: Fraction(number)} if number else {}
            case Cast(operand) if value.type.is_floating and operand.type.is_floating:
                return self.terms(operand)
            case Unary(UnaryOperator.NEGATE, operand):
                return _times(self.terms(operand), {_ONE: Fraction(-1)})
            case Binary(BinaryOperator.ADD, left, right) if value.type.is_floating:
                return _added(self.terms(left), self.terms(right))
            case Binary(BinaryOperator.SUBTRACT, left, right) if value.type.is_floating:
                return _added(self.terms(left), _times(self.terms(right), {_ONE: Fraction(-1)}))
            case Binary(BinaryOperator.MULTIPLY, left, right) if value.type.is_floating:
                return _times(self.terms(left), self.terms(right))
            case Binary(BinaryOperator.DIVIDE, left, right) if value.type.is_floating:
                return _times(self.terms(left), _inverse(self.terms(right), right))
            case Read(tensor) if tensor in self._defined:
                return self.read(value)
            case _:
                return {frozenset({(value, 1)}): Fraction(1)}

    def read(self, value: Read) -> _Terms:
        """What an element was computed from."""
        definition = self._defined[value.tensor]
        if value.tensor not in self._known:
            try:
                self._known[value.tensor] = self.statement(definition)
            except _NoNormalFormError:
                self._known[value.tensor] = {frozenset({(_element(definition), 1)}): Fraction(1)}
        values = {own.name: s for own, s in zip(_iterators(definition), value.subscripts, strict=True)}
        return _in_terms_of(self._known[value.tensor], values)


def _element(statement: Statement) -> Read:
    """What a statement writes."""
    return Read(statement.target, statement.subscripts, statement.value.type)


def _defined(program: Program) -> Mapping[str, Statement]:
    """The statements that alone give a tensor all its elements, by values or by sums of them."""
    writers: dict[str, list[Statement]] = {}
    for statement in program.statements:
        writers.setdefault(statement.target, []).append(statement)
    found: dict[str, Statement] = {}
    for name, (first, *others) in writers.items():
        plain = first.reduction is None or (first.reduction is Reduction.ADD and first.initialize)
        own = plain and not others and not first.blocks and not first.conditions and name not in read_by(first)
        if own and program.tensor(name).type.is_floating and _is_whole(first, program):
            found[name] = first
    return found


def _summed(terms: _Terms, iterators: Sequence[IterationVariable]) -> _Terms:
    if not iterators:
        return terms
    found: _Terms = {}
    names = {iterator.name for iterator in iterators}
    for product, coefficient in terms.items():
        inside = frozenset(own for own in product if names & _iterators_of(own[0]))
        ordered = sorted(iterators, key=lambda iterator: repr(iterator.end))
        first = 1 + max((_depth(own) for own, _ in inside), default=-1)
        numbers: dict[str, Expression] = {i.name: IteratorReference(f"#{first + n}") for n, i in enumerate(ordered)}
        renamed = frozenset((_factor_in_terms_of(own, numbers), power) for own, power in inside)
        own = _Sum(tuple(_range(iterator) for iterator in ordered), renamed)
        found = _added(found, {_multiplied(product - inside, frozenset({(own, 1)})): coefficient})
    return found


def _range(iterator: IterationVariable) -> Expression:
    if iterators_in((iterator.end,)) or iterator.begin != Literal(0, iterator.begin.type):
        raise _NoNormalFormError
    return iterator.end


def _iterators_of(factor: _Factor) -> frozenset[str]:
    if isinstance(factor, _Sum):
        return frozenset(name for own, _ in factor.product for name in _iterators_of(own) if not name.startswith("#"))
    return iterators_in((factor,))


def _depth(factor: _Factor) -> int:
    """The greatest number of an iterator of reductions inside of a factor."""
    if isinstance(factor, _Sum):
        return max((_depth(own) for own, _ in factor.product), default=-1)
    return max((int(name[1:]) for name in iterators_in((factor,)) if name.startswith("#")), default=-1)


def _factor_in_terms_of(factor: _Factor, values: Mapping[str, Expression]) -> _Factor:
    if isinstance(factor, _Sum):
        own = frozenset((_factor_in_terms_of(inner, values), power) for inner, power in factor.product)
        return replace(factor, product=own)
    return in_terms_of(factor, values)


def _in_terms_of(terms: _Terms, values: Mapping[str, Expression]) -> _Terms:
    if any(own.startswith("#") for value in values.values() for own in iterators_in((value,))):
        raise _NoNormalFormError  # it would mean the iterator of another reduction
    found: _Terms = {}
    for product, coefficient in terms.items():
        renamed = frozenset((_factor_in_terms_of(own, values), power) for own, power in product)
        found = _added(found, {renamed: coefficient})
    return found


def _renamed(terms: _Terms, names: Mapping[str, str]) -> _Terms:
    return _in_terms_of(terms, {old: IteratorReference(new) for old, new in names.items()})


def _added(left: _Terms, right: _Terms) -> _Terms:
    found = dict(left)
    for product, coefficient in right.items():
        total = found.pop(product, Fraction(0)) + coefficient
        if total:
            found[product] = total
    if len(found) > _MOST_TERMS:
        raise _NoNormalFormError
    return found


def _times(left: _Terms, right: _Terms) -> _Terms:
    found: _Terms = {}
    for product, coefficient in left.items():
        for other, factor in right.items():
            found = _added(found, {_multiplied(product, other): coefficient * factor})
    return found


def _multiplied(left: _Product, right: _Product) -> _Product:
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return frozenset((factor, power) for factor, power in powers.items() if power)


def _inverse(terms: _Terms, value: Expression) -> _Terms:
    if len(terms) != 1:
        return {frozenset({(value, -1)}): Fraction(1)}
    ((product, coefficient),) = terms.items()
    return {frozenset((factor, -power) for factor, power in product): 1 / coefficient}
