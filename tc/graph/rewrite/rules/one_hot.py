"""Products with one-hot rows are gathers: of all terms of a sum, at most one is not 0."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import Pointwise
from tc.graph.operators.products import Product
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes
from tc.graph.rewrite.pattern import Any, Constant, Made, Match
from tc.graph.rewrite.rule import Rule


def _compares(match: Match) -> bool:
    """Whether the rows are 1 where an integer is equal to the number of the column, and the matrix is finite."""
    equal, cast, product = (match.call(name).operator for name in ("equal", "cast", "root"))
    assert isinstance(equal, Pointwise)
    assert isinstance(cast, Pointwise)
    assert isinstance(product, Product)
    index, columns, matrix = match.values["index"], match.array("columns"), match.array("matrix")
    counts = columns.size == matrix.shape[0] and np.array_equal(columns.reshape(-1), np.arange(columns.size))
    along = columns.ndim > 0 and columns.shape[-1] == columns.size and columns.ndim <= len(index.shape)
    single = bool(index.shape) and index.shape[-1] == 1 and index.type.is_integer
    formulas = equal.expression == "{0} == {1}" and cast.expression == "{0}"
    plain = matrix.ndim == 2 and match.result.type.is_floating and not product.bias
    return formulas and plain and along and counts and single and bool(np.isfinite(matrix).all())


def _gathered(builder: Builder, match: Match) -> Value:
    """The row whose number the index is; 0 where there is none."""
    index, matrix = match.values["index"], match.values["matrix"]
    rank = len(index.shape) - 1
    place = access("A", [*iterators(rank), 0])
    inside = f"{place} >= 0 && {place} < K"
    parameters = [parameter(index.type, [*sizes(rank), 1], "A"), parameter(matrix.type, ["K", "N"], "B")]
    statement = f"{access('Y', [*iterators(rank), 'n'])} = {inside} ? B({place}, n) : 0"
    return builder.call(definition("gather_rows", parameters, ["Y"], [statement]), index, matrix)[0]


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "product with one-hot rows",
        Made(
            "root",
            Product,
            (
                Made("cast", Pointwise, (Made("equal", Pointwise, (Any("index"), Constant("columns"))),)),
                Constant("matrix"),
            ),
        ),
        _gathered,
        _compares,
        "float(i == [0, 1, ...]) @ w -> w[i], and 0 where there is no such row, if w is finite",
    ),
)
