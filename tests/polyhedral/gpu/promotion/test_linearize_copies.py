"""Copies by their numbers, of whole boxes and of parts of them."""

from __future__ import annotations

import islpy as isl
import pytest

import tc
from tc.polyhedral.analysis.box import bounding_box
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import ScopStatement, build_scop
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, promote_accesses, relation_of

ELEMENTS = [
    ("i in 0:5, j in 0:7, k in 0:3", "n = 21a + 3b + c and a < 5 and b < 7 and c < 3"),
    ("i in 0:5, j in 0:i+1, k in 0:3", "n = 15a + 3b + c and a < 5 and b <= a and c < 3"),
    ("i in 0:5, j in 0:7, k in 0:3, j + 3 * k in 0:9", "n = 21a + 3b + c and a < 5 and b < 7 and c < 3 and b + 3c < 9"),
]


def numbered(ranges: str) -> ScopStatement:
    """The copy of what is read of a tensor of 5 x 7 x 3."""
    text = f"def f(float(5,7,3) X) -> (O) {{ O() +=! X(i,j,k) where {ranges} }}"
    scop = build_scop(tc.define(text).single().specialize((5, 7, 3)), isl.Context())
    access = Access("S0", 0)
    box = bounding_box([relation_of(scop.statement("S0"), access)], ())
    assert box is not None
    found = promote_accesses(
        scop, Footprint((access,), (), box), Placement("tile", (0, 1, 2), Sharing.BLOCK), stored=False
    )
    assert found.loads is not None
    return linearize_copies(found.scop, found.loads, box.extents)[1]


@pytest.mark.parametrize(("ranges", "elements"), ELEMENTS)
def test_a_number_stands_for_an_element(monkeypatch: pytest.MonkeyPatch, ranges: str, elements: str) -> None:
    """Also where no more can be copied than is used, which is a part of the box."""
    monkeypatch.setattr("tc.polyhedral.transform.promotion.fill", lambda places, _elements, _box: places)
    copy = numbered(ranges)
    (access,) = copy.promoted
    name, context = copy.name, copy.domain.get_ctx()
    inside = f"0 <= a and 0 <= b and 0 <= c and {elements}"
    numbers = isl.Map.read_from_str(context, f"{{ {name}[n] -> X[a, b, c] : {inside} }}")
    assert copy.domain.is_equal(numbers.domain())
    assert access.element.is_equal(numbers)
    assert access.location.reset_tuple_id(isl.dim_type.out).is_equal(numbers.reset_tuple_id(isl.dim_type.out))


@pytest.mark.parametrize(("ranges", "_elements"), ELEMENTS)
def test_which_numbers_there_are_is_said_by_the_numbers_alone(ranges: str, _elements: str) -> None:
    """Where they were said to have an element, isl took minutes for the proof of a convolution's gradient."""
    domain = numbered(ranges).domain
    assert domain.remove_unknown_divs().is_equal(domain)
