"""Which statements are products of matrices that a machine has instructions for."""

from __future__ import annotations

from collections.abc import Mapping, Set
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
from tc.polyhedral.gpu.tensor.lines import Lines, lines_beside, with_whole_eights
from tc.polyhedral.gpu.tensor.taps import Summed, summed
from tc.polyhedral.gpu.tensor.tile_shapes import EIGHT
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
    the rows of the left factor and the columns of the right one.  ``lines``: what counts the lines of an image where
    rows or columns are its points, and lines are short.
    """

    statement: ScopStatement
    factors: tuple[Read, Read]
    rows: str
    columns: str
    summed: Summed
    shape: MatrixShape
    lines: Lines = Lines()

    def extent(self, iterator: str) -> int:
        """How many values the iterator has at most."""
        return _extents(self.statement)[iterator]

    def extents(self, lines: Lines) -> tuple[int, int]:
        """How many rows and columns there are, with those beyond the ends of lines."""
        sides = (self.rows, lines.rows), (self.columns, lines.columns)
        rows, columns = (
            self.extent(points) if own is None else with_whole_eights(self.extent(points)) * self.extent(own)
            for points, own in sides
        )
        return rows, columns

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
    if sums is None or extents[sums.steps] < shape.k:
        return None

    def side(own: Set[str]) -> tuple[str | None, str | None]:
        """What counts the rows or columns of a factor, and the lines of an image of which these are eights."""
        names = [name for name in body.iterators if name in own & kept]
        # Neighbours in memory first; or those of an image, for they share what taps read.
        near = [name for name in names if name in along] or (names if sums.taps else [])
        # An eight of a short line reaches beyond its end.
        near = [name for name in near if extents[name] >= shape.n or _may_be_short(name, extents, sums)]
        lines = lines_beside(near[-1], names, extents) if near else None
        if lines is not None:
            return near[-1], lines
        enough = [name for name in names if extents[name] >= shape.n]
        return max(enough, key=lambda name: (name in along, extents[name]), default=None), None

    of_first, of_second = side(first - second), side(second - first)
    # Columns lie side by side in what is written: a lane has two of them.
    of_rows, of_columns = (of_second, of_first) if of_first[0] in along else (of_first, of_second)
    (rows, row_lines), (columns, lines) = of_rows, of_columns
    if rows is None or columns is None or (extents[rows] < shape.m and row_lines is None):
        return None
    # A tile has eights of lines along one side.
    found = Lines(columns=lines) if row_lines is None else Lines(rows=row_lines)
    if row_lines is not None and extents[columns] < shape.n:
        return None
    return MatrixProduct(statement, factors, rows, columns, sums, shape, found)


def _may_be_short(points: str, extents: Mapping[str, int], sums: Summed) -> bool:
    """Whether lines of these points may have fewer than eight, but more than half: those beyond are read, too."""
    return extents[points] > EIGHT // 2 and points in sums.ahead


def _extents(statement: ScopStatement) -> dict[str, int]:
    sides = sides_of(statement.domain)
    return dict(zip(statement.body.iterators, sides, strict=False))
