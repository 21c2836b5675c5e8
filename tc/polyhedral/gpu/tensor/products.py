"""Which statements are products of matrices that a machine has instructions for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

import islpy as isl

from tc.base.dots import MatrixShape, Products
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Read, Reduction, iterators_in
from tc.language.program.terms import matrix_factors
from tc.polyhedral.analysis.extents import sides_of, volume
from tc.polyhedral.analysis.reads import data_ranges, has_affine_subscripts
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.gpu.tensor.taps import Summed, summed
from tc.polyhedral.ir.loops import StatementBody
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import statement_names

# PTX's names of the types of operands.
OPERANDS: Final = {
    ScalarType.FLOAT16: "f16",
    ScalarType.BFLOAT16: "bf16",
    ScalarType.INT8: "s8",
    ScalarType.UINT8: "u8",
}
_SINGLE: Final = tuple(MatrixShape(16, 8, 8, own.value, "f32") for own in (Products.TF32, Products.THREE_TF32))
# The shapes whose fragments are known, by the type of the first operand, with the type of sums.
_SHAPES: Final = {
    ScalarType.FLOAT16: ((MatrixShape(16, 8, 16, "f16", "f32"),), ScalarType.FLOAT32),
    ScalarType.BFLOAT16: ((MatrixShape(16, 8, 16, "bf16", "f32"),), ScalarType.FLOAT32),
    ScalarType.INT8: ((MatrixShape(16, 8, 32, "s8", "s32"),), ScalarType.INT32),
    ScalarType.UINT8: ((MatrixShape(16, 8, 32, "s8", "s32"),), ScalarType.INT32),
    ScalarType.FLOAT32: (_SINGLE, ScalarType.FLOAT32),
}


@frozen
class MatrixProduct:
    """A statement whose instances are those of a product of matrices.

    ``factors``: the left and the right one, or the other way round.  ``rows``, ``columns``: the iterators that count
    the rows of the left factor and the columns of the right one.  ``lines``: another iterator of the right factor and
    of the result, as of the rows of an image, whose columns are short; None where there is none.  ``row_lines``: the
    same of the left factor of a convolution.
    """

    statement: ScopStatement
    factors: tuple[Read, Read]
    rows: str
    columns: str
    summed: Summed
    shape: MatrixShape
    lines: str | None = None
    row_lines: str | None = None

    def extent(self, iterator: str) -> int:
        """How many values the iterator has at most."""
        return _extents(self.statement)[iterator]

    @property
    def steps(self) -> str:
        """The iterator over what is added up."""
        return self.summed.steps

    @property
    def taps(self) -> Mapping[str, int]:
        """The other iterators over which products of matrices are added up, as in a convolution, with their extents."""
        return self.summed.taps


def factors_of(body: StatementBody, scop: Scop) -> tuple[Read, Read] | None:
    """What a statement multiplies, if matrix instructions may do so."""
    return matrix_factors(body.value, scop.products)


def shape_of(
    body: StatementBody, scop: Scop, target: ScalarType, shapes: tuple[MatrixShape, ...]
) -> MatrixShape | None:
    """The instruction for what a statement adds up in a target of this type; None where there is none."""
    factors = factors_of(body, scop)
    if factors is None or body.reduction is not Reduction.ADD:
        return None
    if body.owned is not None or body.counts or body.atomic:
        return None
    known, sums = _SHAPES.get(factors[0].type, ((), None))
    return next((own for own in known if own in shapes), None) if target is sums else None


def matrix_product(scop: Scop, shapes: tuple[MatrixShape, ...], domain: isl.UnionSet) -> MatrixProduct | None:
    """The heaviest statement, if it is a product with enough rows, columns and steps for one instruction."""
    names = statement_names(domain)
    if not names or not shapes:
        return None
    heaviest = max(names, key=lambda name: volume(isl.UnionSet.from_set(scop.statement(name).domain)))
    statement = scop.statement(heaviest)
    body, layouts = statement.body, layouts_of(scop)
    shape = shape_of(body, scop, layouts[body.target].type, shapes)
    factors = factors_of(body, scop)
    if shape is None or factors is None or data_ranges(body):
        return None
    if not all(has_affine_subscripts(read, statement, scop.sizes) for read in factors):
        return None
    extents = _extents(statement)
    first, second = (iterators_in(read.subscripts) for read in factors)
    kept = iterators_in(body.subscripts)
    sums = summed(statement, scop)
    along = [name for name in kept if stride(body.subscripts, layouts[body.target], name) == 1]

    if sums is None:
        return None

    def enough(names: Sequence[str]) -> list[str]:
        # An eight of a short line may reach beyond its end, where there are several.
        several = sum(extents[name] > 1 for name in names) > 1
        short = () if not several else names if sums.taps else along
        return [name for name in names if extents[name] >= (shape.n // 2 + 1 if name in short else shape.n)]

    def longest(names: Sequence[str]) -> str | None:
        return max(enough(names), key=lambda name: (name in along, extents[name]), default=None)

    sides = (first - second, second - first)
    of_first, of_second = (longest([n for n in body.iterators if n in side & kept]) for side in sides)
    if extents[sums.steps] < shape.k or of_first is None or of_second is None:
        return None
    # Columns lie side by side in what is written: a lane has two of them.
    rows, columns = (of_second, of_first) if of_first in along else (of_first, of_second)
    of_rows, of_columns = ([n for n in body.iterators if n in side & kept] for side in _in_order(sides, columns))
    row_lines = None
    if sums.taps:
        # Neighbours of an image share what taps read.
        near = enough(of_rows)[-1]
        row_lines = _next_to(near, of_rows, extents)
        rows = rows if row_lines is None else near
    if extents[rows] < shape.m and row_lines is None:
        return None
    lines = _next_to(columns, of_columns, extents)
    return MatrixProduct(statement, factors, rows, columns, sums, shape, lines, row_lines)


def _in_order(sides: tuple[Set[str], Set[str]], columns: str) -> tuple[Set[str], Set[str]]:
    """That of the rows, then that of the columns."""
    first, second = sides
    return (first, second) if columns in second else (second, first)


def _next_to(own: str, names: Sequence[str], extents: Mapping[str, int]) -> str | None:
    """The last one of the other names that has several values; None if there is none."""
    return next((name for name in reversed(names) if name != own and extents[name] > 1), None)


def _extents(statement: ScopStatement) -> dict[str, int]:
    sides = sides_of(statement.domain)
    return dict(zip(statement.body.iterators, sides, strict=False))
