"""Sums of products in Einstein's notation: ``bij,bjk->bik``, with ellipses, diagonals and any number of operands."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, definition, parameter


@frozen
class Equation:
    """The symbols of each operand and of the result: letters, and ``e0``, ``e1`` for the dimensions of an ellipsis."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]


def equation_of(text: str, ranks: Sequence[int], what: str) -> Equation:
    """The equation for operands of these ranks; GraphError where it means nothing, or is not about them."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise GraphError(f"{what}: the equation `{text}` has {len(terms)} terms for {len(ranks)} operands")
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, rank, width in zip(terms, ranks, widths, strict=True):
        if width < 0 or (width > 0 and "..." not in term):
            raise GraphError(f"{what}: the term `{term}` of `{text}` is of an operand with {rank} dimensions")
    most = max(widths)
    operands = tuple(_symbols(term, width, most) for term, width in zip(terms, widths, strict=True))
    letters = left.replace("...", "").replace(",", "")
    if not arrow:
        right = ("..." if "..." in left else "") + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    result = _symbols(right, most, most)
    known = {symbol for term in operands for symbol in term}
    for symbol in (*known, *result):
        if not (symbol.isascii() and symbol[0].isalpha()):
            raise GraphError(f"{what}: `{symbol}` in the equation `{text}` is no letter")
    if not known.issuperset(result) or len(set(result)) != len(result):
        raise GraphError(f"{what}: the result of `{text}` must have letters of the operands, each of them once")
    return Equation(operands, result)


def _symbols(term: str, width: int, most: int) -> tuple[str, ...]:
    """The symbols of a term; dimensions of a shorter ellipsis are the last ones of the longest."""
    before, dots, after = term.partition("...")
    return (*before, *([f"e{place}" for place in range(most - width, most)] if dots else ()), *after)


def einsum(builder: Builder, equation: Equation, operands: Sequence[Value]) -> Value:
    """The result; operands are multiplied in order, and a symbol is summed as soon as none that follow has it."""
    repeated = {
        symbol
        for symbols, operand in zip(equation.operands, operands, strict=True)
        for symbol, extent in zip(symbols, operand.shape, strict=True)
        if extent != 1
    }
    parameters, factors = [], []
    for place, (symbols, operand) in enumerate(zip(equation.operands, operands, strict=True)):
        # Dimensions of one element that others repeat are read at 0.
        once = [extent == 1 and symbol in repeated for symbol, extent in zip(symbols, operand.shape, strict=True)]
        extents = [1 if one else f"N_{symbol}" for symbol, one in zip(symbols, once, strict=True)]
        parameters.append(parameter(operand.type, extents, f"X{place}"))
        factors.append(_Factor(f"X{place}", tuple("0" if one else s for s, one in zip(symbols, once, strict=True))))
    statements = _statements(factors, equation.result)
    (result,) = builder.call(definition("einsum", parameters, ["out"], statements), *operands)
    return result


@frozen
class _Factor:
    name: str
    subscripts: tuple[str, ...]

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(self.subscripts) - {"0"}

    def __str__(self) -> str:
        return access(self.name, self.subscripts)


def _statements(factors: Sequence[_Factor], result: tuple[str, ...]) -> list[str]:
    statements: list[str] = []

    def summed(product: Sequence[_Factor], wanted: frozenset[str]) -> list[_Factor]:
        """The product, as a sum over the symbols that are not wanted, if there are any."""
        symbols = frozenset[str]().union(*(factor.symbols for factor in product))
        if symbols <= wanted:
            return list(product)
        total = _Factor(f"T{len(statements)}", tuple(sorted(symbols & wanted)))
        statements.append(f"{total} +=! {' * '.join(map(str, product))}")
        return [total]

    product: list[_Factor] = []
    for place, factor in enumerate(factors):
        later = frozenset(result).union(*(other.symbols for other in factors[place + 1 :]))
        before = frozenset[str]().union(*(other.symbols for other in product))
        product += summed([factor], later | before) if len(factors) > 1 else [factor]
        if place + 1 < len(factors):
            product = summed(product, later)
    symbols = frozenset[str]().union(*(factor.symbols for factor in product))
    operator = "=" if symbols <= frozenset(result) else "+=!"
    statements.append(f"{access('out', result)} {operator} {' * '.join(map(str, product))}")
    return statements
