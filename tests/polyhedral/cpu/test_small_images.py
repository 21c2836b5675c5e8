"""Convolutions of images with fewer pixels than a vector has lanes, as in the last layers of networks."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tc
from tc.reference.compare import compare

SAME: Final = """
def same(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+i-1,w+j-1) * K(f,c,i,j) where h in 0:H, w in 0:W, h+i-1 in 0:H, w+j-1 in 0:W
}"""
HALVED: Final = """
def halved(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,2*h+i-1,2*w+j-1) * K(f,c,i,j)
        where h in 0:(H+1)/2, w in 0:(W+1)/2, 2*h+i-1 in 0:H, 2*w+j-1 in 0:W
}"""
POINTWISE: Final = """
def pointwise(float(N,C,H,W) I, float(F,C) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,2*h,2*w) * K(f,c) where h in 0:(H+1)/2, w in 0:(W+1)/2
}"""


@pytest.mark.parametrize(
    ("text", "images", "filters"),
    [
        pytest.param(SAME, (1, 33, 2, 2), (24, 33, 3, 3), id="two by two"),
        pytest.param(SAME, (1, 17, 3, 3), (21, 17, 3, 3), id="three by three, filters that fill no vectors"),
        pytest.param(SAME, (2, 16, 4, 5), (19, 16, 3, 3), id="four by five, two images"),
        pytest.param(HALVED, (1, 24, 5, 4), (40, 24, 3, 3), id="every second pixel"),
    ],
)
def test_results_are_those_of_the_oracle(text: str, images: tuple[int, ...], filters: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(text) + images[2])
    f = tc.define(text).single()
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (images, filters)]
    kernel = f.compile(*arrays, target="cpu")
    assert "packed0_K" in kernel.source, "filters are the lanes"
    assert compare(f.oracle(*arrays)["O"], np.asarray(kernel(*arrays))).ok


@pytest.mark.parametrize("size", [3, 5, 7])
def test_products_with_images_are_products_of_matrices(size: int) -> None:
    rng = np.random.default_rng(size)
    f = tc.define(POINTWISE).single()
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 40, size, size), (37, 40))]
    kernel = f.compile(*arrays, target="cpu")
    assert "I_sampled" in kernel.source
    assert compare(f.oracle(*arrays)["O"], np.asarray(kernel(*arrays))).ok
