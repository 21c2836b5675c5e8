"""Lines of images whose eights are rows or columns of a tile of a product of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from tc.base.frozen import frozen
from tc.polyhedral.gpu.tensor.products import MatrixProduct
from tc.polyhedral.gpu.tensor.tile_shapes import EIGHT

# The points of a line that a tile has otherwise, as tiles of several lines are compared with it.
_LINE: Final = 64


@frozen
class Lines:
    """The lines of which a tile has eight rows, or eight columns, each; None where it has those of one."""

    rows: str | None = None
    columns: str | None = None

    @staticmethod
    def of(product: MatrixProduct) -> Lines:
        """Those with which fewer points are beyond the result."""

        def better(own: str, lines: str | None) -> str | None:
            if lines is None:
                return None
            points, count, eights = product.extent(own), product.extent(lines), _LINE // EIGHT
            several = -(-points // EIGHT) * EIGHT * (-(-count // eights) * eights)
            return lines if several < -(-points // _LINE) * _LINE * count else None

        return Lines(better(product.rows, product.row_lines), better(product.columns, product.lines))

    def among(self, names: Set[str]) -> Lines:
        """Those whose iterators are these."""
        return Lines(*(name if name in names else None for name in (self.rows, self.columns)))

    def asked(self, product: MatrixProduct, sizes: Mapping[str, int]) -> Lines:
        """Those where sizes of tiles ask for eights."""
        sides = (product.rows, self.rows), (product.columns, self.columns)
        return Lines(*(lines if sizes[own] == EIGHT else None for own, lines in sides))

    def extents(self, product: MatrixProduct) -> tuple[int, int]:
        """How many rows and columns there are, with those beyond the ends of lines."""
        sides = (product.rows, self.rows), (product.columns, self.columns)
        rows, columns = (
            product.extent(own) if lines is None else -(-product.extent(own) // EIGHT) * EIGHT * product.extent(lines)
            for own, lines in sides
        )
        return rows, columns
