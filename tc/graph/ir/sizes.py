"""``Size``: how large a dimension is, where that is no number yet; and arithmetic with sizes.

Shape rules are written with Python's operators, which take numbers and sizes alike, as in ``(h + 2 * pad - kernel) //
stride + 1``.  A size that comes out as a number is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from tc.base.errors import GraphError
from tc.base.frozen import frozen

# The name of an open size, or a quotient or a minimum of sizes.
Atom: TypeAlias = "str | Quotient | Least"
Monomial: TypeAlias = tuple[Atom, ...]
_CONSTANT: Final[Monomial] = ()


@frozen
class Quotient:
    """``dividend / divisor``, rounded down."""

    dividend: Size
    divisor: Size

    def __str__(self) -> str:
        return f"{_within(self.dividend)} / {_within(self.divisor)}"


@frozen
class Least:
    """The least of some sizes, two at least."""

    operands: tuple[Size, ...]

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.operands))})"


@frozen
class Size:
    """A polynomial with integer coefficients: ``terms`` in order, none of them 0.

    Two sizes are equal if their polynomials are.  What only some values of the open sizes fulfil, as ``n < 4``, raises
    GraphError.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        parts = [_term_text(monomial, factor) for monomial, factor in self.terms]
        return " + ".join(parts).replace("+ -", "- ") or "0"

    def __add__(self, other: Dimension) -> Dimension:
        terms = dict(self.terms)
        for monomial, factor in _polynomial(other).terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return _size(terms)

    __radd__ = __add__

    def __neg__(self) -> Dimension:
        return _size({monomial: -factor for monomial, factor in self.terms})

    def __sub__(self, other: Dimension) -> Dimension:
        return self + -other

    def __rsub__(self, other: Dimension) -> Dimension:
        return -self + other

    def __mul__(self, other: Dimension) -> Dimension:
        terms: dict[Monomial, int] = {}
        for left, factor in self.terms:
            for right, times in _polynomial(other).terms:
                monomial = tuple(sorted((*left, *right), key=str))
                terms[monomial] = terms.get(monomial, 0) + factor * times
        return _size(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dimension) -> Dimension:
        return _quotient(self, other)

    def __rfloordiv__(self, other: int) -> Dimension:
        return _quotient(other, self)

    def __mod__(self, other: Dimension) -> Dimension:
        return self - self // other * other

    def __rmod__(self, other: int) -> Dimension:
        return other - other // self * self

    def __lt__(self, other: Dimension) -> bool:
        return _sign(self - other, f"{self} < {other}") < 0

    def __le__(self, other: Dimension) -> bool:
        return not _sign(self - other, f"{self} <= {other}") > 0

    def __gt__(self, other: Dimension) -> bool:
        return _sign(self - other, f"{self} > {other}") > 0

    def __ge__(self, other: Dimension) -> bool:
        return not _sign(self - other, f"{self} >= {other}") < 0

    @property
    def names(self) -> frozenset[str]:
        """The open sizes that it depends on."""
        return frozenset(name for monomial, _ in self.terms for atom in monomial for name in _names(atom))

    def at(self, values: Mapping[str, Dimension]) -> Dimension:
        """The size with values for some of the open ones."""
        total: Dimension = 0
        for monomial, factor in self.terms:
            term: Dimension = factor
            for atom in monomial:
                term = term * _atom_at(atom, values)
            total = total + term
        return total


Dimension: TypeAlias = "int | Size"
Shape: TypeAlias = tuple[Dimension, ...]


def open_size(name: str) -> Size:
    """The size that is called so; it is 1 at least."""
    return Size((((name,), 1),))


def elements(shape: Iterable[Dimension]) -> Dimension:
    """How many elements such a tensor has."""
    total: Dimension = 1
    for extent in shape:
        total = total * extent
    return total


def shape_at(shape: Shape, values: Mapping[str, Dimension]) -> Shape:
    """The shape with values for some of the open sizes."""
    return tuple(extent if isinstance(extent, int) else extent.at(values) for extent in shape)


def least(*sizes: Dimension) -> Dimension:
    """The least of some sizes."""
    numbers = [size for size in sizes if isinstance(size, int)]
    others = sorted({size for size in sizes if isinstance(size, Size)}, key=str)
    if not others:
        return min(numbers)
    operands = [*others, *([constant(min(numbers))] if numbers else [])]
    if len(operands) == 1:
        return operands[0]
    return Size((((Least(tuple(operands)),), 1),))


def number(size: Dimension, what: str) -> int:
    """The size as a number; GraphError, which says what it is of, where it is open."""
    if isinstance(size, Size):
        raise GraphError(f"{what} must be a number, and is `{size}`; call the graph, or give its sizes")
    return size


def shape_text(shape: Iterable[Dimension]) -> str:
    """As in ``2, N, 3 * N``."""
    return ", ".join(map(str, shape))


def constant(value: int) -> Size:
    """A number in the form of a size."""
    return Size(((_CONSTANT, value),) if value else ())


def _polynomial(size: Dimension) -> Size:
    return size if isinstance(size, Size) else constant(int(size))


def _size(terms: Mapping[Monomial, int]) -> Dimension:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if kept.keys() == {_CONSTANT}:
        return kept[_CONSTANT]
    return Size(tuple(sorted(kept.items(), key=lambda item: (-len(item[0]), str(item[0])))))


def _quotient(dividend: Dimension, divisor: Dimension) -> Dimension:
    """``dividend / divisor``, rounded down; terms that the divisor divides leave it."""
    if isinstance(divisor, int) and divisor == 0:
        raise GraphError(f"the size {dividend} is divided by 0")
    top, bottom = _polynomial(dividend), _polynomial(divisor)
    if len(bottom.terms) != 1:
        return 1 if top == bottom else Size((((Quotient(top, bottom),), 1),))
    (monomial, factor), *_ = bottom.terms
    whole: Dimension = 0
    rest: Dimension = 0
    for term, times in top.terms:
        left = _without(term, monomial)
        if left is not None and times % factor == 0:
            whole = whole + _size({left: times // factor})
        else:
            rest = rest + _size({term: times})
    if isinstance(rest, int):
        # The fraction of a number that is less than the divisor rounds to 0, or to -1.
        if isinstance(divisor, int):
            return whole + rest // divisor
        if rest == 0:
            return whole
    remaining, factors = _polynomial(rest), _polynomial(divisor)
    common = math.gcd(*(times for _, times in (*remaining.terms, *factors.terms)))
    if common > 1:
        remaining, factors = (Size(tuple((m, t // common) for m, t in part.terms)) for part in (remaining, factors))
    return whole + Size((((Quotient(remaining, factors),), 1),))


def _without(term: Monomial, part: Monomial) -> Monomial | None:
    """The product without some factors; None if it does not have them."""
    left = list(term)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _sign(difference: Dimension, question: str) -> int:
    """-1, 0 or 1, for all values of the open sizes; GraphError where they decide."""
    if isinstance(difference, int):
        return (difference > 0) - (difference < 0)
    total = sum(factor for _, factor in difference.terms)
    growing = [factor for monomial, factor in difference.terms if monomial != _CONSTANT]
    plain = all(isinstance(atom, str) for monomial, _ in difference.terms for atom in monomial)
    if plain and all(factor > 0 for factor in growing) and total > 0:
        return 1
    if plain and all(factor < 0 for factor in growing) and total < 0:
        return -1
    raise GraphError(f"whether `{question}` depends on sizes that are open; call the graph, or give its sizes")


def _names(atom: Atom) -> frozenset[str]:
    if isinstance(atom, str):
        return frozenset((atom,))
    operands = (atom.dividend, atom.divisor) if isinstance(atom, Quotient) else atom.operands
    return frozenset(name for operand in operands for name in operand.names)


def _atom_at(atom: Atom, values: Mapping[str, Dimension]) -> Dimension:
    if isinstance(atom, str):
        return values.get(atom, open_size(atom))
    if isinstance(atom, Quotient):
        return atom.dividend.at(values) // atom.divisor.at(values)
    return least(*(operand.at(values) for operand in atom.operands))


def _within(size: Size) -> str:
    return str(size) if len(size.terms) == 1 and sum(map(len, dict(size.terms))) <= 1 else f"({size})"


def _term_text(monomial: Monomial, factor: int) -> str:
    if not monomial:
        return str(factor)
    product = " * ".join(
        atom if isinstance(atom, str) else f"({atom})" if len(monomial) > 1 else f"{atom}" for atom in monomial
    )
    if factor == 1:
        return product
    return f"-{product}" if factor == -1 else f"{factor} * {product}"
