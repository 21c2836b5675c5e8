"""How borders cut the pieces of iterators, against counting; tiles that avoid that, and accesses across memory."""

from __future__ import annotations

from itertools import product

import islpy as isl
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.cpu.borders import conditions_of


@pytest.mark.parametrize(
    ("extent", "taps", "before", "stride"), [(48, 3, 1, 1), (7, 5, 2, 1), (6, 3, 1, 2), (9, 3, 0, 1)]
)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 16])
def test_pieces_that_borders_cut_are_counted(extent: int, taps: int, before: int, stride: int, size: int) -> None:
    image = (extent - 1) * stride + taps - 2 * before
    with isl_context() as context:
        text = f"{{ [h, k] : 0 <= h < {extent} and 0 <= k < {taps} and 0 <= {stride} * h + k - {before} < {image} }}"
        found = conditions_of(isl.Set.read_from_str(context, text), ("h", "k"))
        part, copies = found.cut("h", size, extent), found.copies("h", size, extent)
    pieces = -(-extent // size)
    cut = 0
    for k, piece in product(range(taps), range(pieces)):
        values = range(piece * size, min(extent, (piece + 1) * size))
        inside = [0 <= stride * h + k - before < image for h in values]
        cut += any(inside) and not all(inside)
    assert part == pytest.approx(cut / (pieces * taps))

    def whole(piece: int) -> bool:
        rows = range(piece * size, min(extent, (piece + 1) * size))
        return all(0 <= stride * h + k - before < image for h, k in product(rows, range(taps)))

    if found.ranges:
        assert copies == taps * sum(not whole(piece) for piece in range(pieces))


def test_triangles_are_no_borders() -> None:
    with isl_context() as context:
        triangle = isl.Set.read_from_str(context, "{ [i, j, k] : 0 <= i < 8 and 0 <= j <= i and 0 <= k < 3 }")
        found = conditions_of(triangle, ("i", "j", "k"))
    assert found.density == pytest.approx(36 / 64)
    assert set(found.parts) == {"i", "j"}
    assert not found.borders


CONVOLUTION = """
def f(float(N,C,H,W) X, float(C,F,3,3) K{more}) -> ({results}) {{
    Y(n,f,h,w) +=! X(n,c,h+1-kh,w+1-kw) * K(c,f,kh,kw) where h in 0:H, w in 0:W, h+1-kh in 0:H, w+1-kw in 0:W
    {rest}
}}"""
PLAIN = CONVOLUTION.format(more="", results="Y", rest="")
FUSED = CONVOLUTION.format(
    more=", float(N,F,H,W) R, float(N,F,H,W) V",
    results="Y, Z",
    rest="Y(n,f,h,w) = R(n,f,h,w) <= 0 ? 0.0 : Y(n,f,h,w) Z(n,f,h,w) = Y(n,f,h,w) * V(n,f,h,w)",
)


def test_lanes_avoid_borders_and_what_lies_across_memory() -> None:
    def vectors_of(text: str, extent: int) -> bool:
        """Whether vectors hold weights, of which no border cuts one."""
        shapes = [(4, 64, extent, extent), (64, 64, 3, 3), *[(4, 64, extent, extent)] * 2][: text.count("float(")]
        specs = [tc.ArraySpec(shape, tc.ScalarType.FLOAT32) for shape in shapes]
        source = tc.define(text).f.compile(*specs, target="cpu:x86-64-v4").source
        return "(&t_packed0_K[" in source

    assert vectors_of(PLAIN, 48)
    assert vectors_of(FUSED, 24)
    # Channels of images of 96x96 all lie in one set of the first cache.
    assert not vectors_of(FUSED, 96)
