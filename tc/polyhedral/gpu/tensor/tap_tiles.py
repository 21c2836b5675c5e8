"""Which tiles of a sum of products of matrices have room in shared memory for the operands of all taps."""

from __future__ import annotations

import math

import islpy as isl

from tc.polyhedral.analysis.extents import sides_of
from tc.polyhedral.gpu.tensor.products import MatrixProduct
from tc.polyhedral.gpu.tensor.tile_shapes import EIGHT, GROUP, SMALL_TILES, TAPS_TILES, WarpTile
from tc.polyhedral.ir.scop import reads_by_position


def with_all_taps(product: MatrixProduct, shared: int) -> list[WarpTile]:
    """The tiles, the largest first, of which two have room in shared memory with the operands of all taps."""
    tiles = (*TAPS_TILES, *SMALL_TILES) if product.taps else ()
    return [tile for tile in tiles if (taken := _bytes(product, tile)) is not None and 2 * taken <= shared]


def _bytes(product: MatrixProduct, tile: WarpTile) -> int | None:
    """What the operands of the first tile take, with the steps of one instruction; None where it is empty."""
    statement, k = product.statement, product.shape.k
    sizes = {product.rows: tile.rows, product.columns: tile.columns, product.steps: k, **product.taps}
    lines = product.lines
    if lines.rows is not None:
        sizes |= {product.rows: EIGHT, lines.rows: tile.rows // EIGHT}
    if lines.columns is not None:
        sizes |= {product.columns: EIGHT, lines.columns: tile.columns // EIGHT}
    box = statement.domain
    for place, name in enumerate(statement.body.iterators):
        first = statement.domain.dim_min_val(place)
        box = box.upper_bound_val(isl.dim_type.set, place, first.add(sizes.get(name, 1) - 1))
    if box.is_empty():
        return None
    found = sum(
        math.prod(sides_of(statement.reads[position].intersect_domain(box).range())) * own.read.type.itemsize
        for position, own in reads_by_position(statement, ())
        if own.read in product.factors
    )
    return found // k * (k + GROUP)
