"""Conditions between iterators, and tiles that avoid accesses across memory."""

from __future__ import annotations

import islpy as isl
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.cpu.borders import conditions_of


def test_triangles_are_no_borders() -> None:
    with isl_context() as context:
        triangle = isl.Set.read_from_str(context, "{ [i, j, k] : 0 <= i < 8 and 0 <= j <= i and 0 <= k < 3 }")
        found = conditions_of(triangle, ("i", "j", "k"))
    assert found.density == pytest.approx(36 / 64)
    assert set(found.parts) == {"i", "j"}


CONVOLUTION = """
def f(float(N,C,H,W) X, float(C,F,3,3) K{more}) -> ({results}) {{
    Y(n,f,h,w) +=! X(n,c,h+1-kh,w+1-kw) * K(c,f,kh,kw) where h in 0:H, w in 0:W, h+1-kh in 0:H, w+1-kw in 0:W
    {rest}
}}"""
FUSED = CONVOLUTION.format(
    more=", float(N,F,H,W) R, float(N,F,H,W) V",
    results="Y, Z",
    rest="Y(n,f,h,w) = R(n,f,h,w) <= 0 ? 0.0 : Y(n,f,h,w) Z(n,f,h,w) = Y(n,f,h,w) * V(n,f,h,w)",
)


def test_lanes_avoid_what_lies_across_memory() -> None:
    def vectors_of(text: str, extent: int) -> bool:
        """Whether vectors hold weights."""
        shapes = [(4, 64, extent, extent), (64, 64, 3, 3), *[(4, 64, extent, extent)] * 2][: text.count("float(")]
        specs = [tc.ArraySpec(shape, tc.ScalarType.FLOAT32) for shape in shapes]
        source = tc.define(text).f.compile(*specs, target="cpu:x86-64-v4").source
        return "(&t_packed0_K[" in source

    assert vectors_of(FUSED, 24)
    # Channels of images of 96x96 all lie in one set of the first cache.
    assert not vectors_of(FUSED, 96)
