"""Swizzles: no two bytes have one place, and eight rows of a panel lie in different banks."""

from __future__ import annotations

import islpy as isl
import pytest

from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, SWIZZLED_ROWS, Swizzle

SHAPES = [Swizzle(128, 64), Swizzle(128, 8), Swizzle(256, 64), Swizzle(512, 64), Swizzle(384, 16)]


@pytest.mark.parametrize("swizzle", SHAPES, ids=str)
def test_places_are_those_of_the_array_each_once(swizzle: Swizzle) -> None:
    size = 2 * swizzle.row * swizzle.rows
    assert sorted(map(swizzle.place, range(size))) == list(range(size))


@pytest.mark.parametrize("swizzle", SHAPES, ids=str)
def test_panels_are_a_bijection(swizzle: Swizzle) -> None:
    context, size = isl.Context(), 3 * swizzle.row * swizzle.rows
    array = isl.Set.read_from_str(context, f"{{ [o] : 0 <= o < {size} }}")
    panels = swizzle.panels(context)
    assert panels.intersect_domain(array).is_injective()
    for offset in range(0, size, size // 7 - 1):
        found = isl.Set.read_from_str(context, f"{{ [{offset}] }}").apply(panels)
        assert found.is_equal(isl.Set.read_from_str(context, f"{{ [{swizzle.in_panels(offset)}] }}"))


@pytest.mark.parametrize("swizzle", SHAPES, ids=str)
def test_pieces_stay_whole_and_eight_rows_lie_in_different_banks(swizzle: Swizzle) -> None:
    """A piece of 16 bytes of each of eight rows: together, they are all of the banks, 128 bytes."""
    for column in range(0, swizzle.row, 16):
        places = [swizzle.place(row * swizzle.row + column) for row in range(8)]
        assert sorted(place % SWIZZLED_ROW for place in places) == list(range(0, SWIZZLED_ROW, 16))
        assert len({place // SWIZZLED_ROWS for place in places}) == 1
        assert [swizzle.place(column + byte) for byte in range(16)] == [places[0] + byte for byte in range(16)]
