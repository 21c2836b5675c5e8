"""What is copied beside what is used: everything between, where the used part has no plain shape."""

from __future__ import annotations

import islpy as isl
import pytest

from tc.polyhedral.analysis.box import Box
from tc.polyhedral.transform.fill import fill

CONTEXT = isl.Context()
# Tiles of 8 places, of elements 6 apart: one behind the other, with an overlap of 2.
BOX = Box(depth=1, offsets=((0, (6,)),), extents=(8,), steps=(1,), runs=(1,))
ELEMENTS = isl.Map.read_from_str(CONTEXT, "{ buffer[p, a] -> X[6p + a] }")


def filled(places: str) -> isl.Set:
    return fill(isl.Set.read_from_str(CONTEXT, places), ELEMENTS, BOX)


@pytest.mark.parametrize(
    "places",
    [
        "{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 }",
        "{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and 6p + a <= 29 }",
        "{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and a mod 2 = 0 }",
    ],
    ids=["whole tiles", "one that ends early", "regular distances"],
)
def test_what_has_a_plain_shape_stays_as_it_is(places: str) -> None:
    assert filled(places).is_equal(isl.Set.read_from_str(CONTEXT, places))


@pytest.mark.parametrize(
    "holes",
    ["(a <= 1 or a >= 5)", "(exists e : 3e <= a <= 3e + 1 and a <= 2e + 3)"],
    ids=["several pieces", "quotients"],
)
def test_holes_are_filled_but_nothing_outside_of_the_tensor_is_touched(holes: str) -> None:
    found = filled(f"{{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and 6p + a <= 30 and {holes} }}")
    elements = isl.Set.read_from_str(CONTEXT, f"{{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and {holes} }}")
    most = elements.intersect(found).apply(ELEMENTS).dim_max_val(0)
    assert most.to_python() <= 30
    expected = f"{{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and 6p + a <= {most} }}"
    assert found.is_equal(isl.Set.read_from_str(CONTEXT, expected))


def test_elements_go_as_far_as_an_open_size() -> None:
    found = filled("[n] -> { buffer[p, a] : 0 <= p < n and 0 <= a < 8 and 6p + a < 6n - 1 and (a <= 1 or a >= 5) }")
    expected = "[n] -> { buffer[p, a] : 0 <= p < n and 0 <= a < 8 and 6p + a < 6n - 4 }"
    assert found.is_equal(isl.Set.read_from_str(CONTEXT, expected))


def test_bands_are_filled() -> None:
    box = Box(depth=1, offsets=((0, (4,)), (0, (4,))), extents=(4, 5), steps=(1, 1), runs=(1, 1))
    elements = isl.Map.read_from_str(CONTEXT, "{ buffer[p, i, k] -> X[4p + i, 4p + k] }")
    band = "{ buffer[p, i, k] : 0 <= p < 3 and 0 <= i < 4 and i <= k <= i + 1 and 4p + i < 10 and 4p + k < 10 }"
    whole = "{ buffer[p, i, k] : 0 <= p < 3 and 0 <= i < 4 and 0 <= k < 5 and 4p + i < 10 and 4p + k < 10 }"
    assert fill(isl.Set.read_from_str(CONTEXT, band), elements, box).is_equal(isl.Set.read_from_str(CONTEXT, whole))


def test_what_would_have_holes_all_the_same_stays_as_it_is() -> None:
    places = isl.Set.read_from_str(CONTEXT, "{ buffer[p, a] : 0 <= p < 5 and 0 <= a < 8 and (a <= 1 or a >= 5) }")
    holes = ELEMENTS.subtract(isl.Map.read_from_str(CONTEXT, "{ buffer[p, a] -> X[x] : x mod 7 = 3 }"))
    assert fill(places, holes, BOX).is_equal(places)
