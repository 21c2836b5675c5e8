"""Register tiles of reductions with conditions: rows and lanes that are not there in some steps."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pytest

import tc
from tc.polyhedral.pipeline import map_program
from tc.reference.compare import compare
from tests.levels import runs
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
SAME: Final = """
def same(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+i-1,w+j-1) * K(f,c,i,j) where h in 0:H, w in 0:W, h+i-1 in 0:H, w+j-1 in 0:W
}"""
HALVED: Final = """
def halved(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,2*h+i-1,2*w+j-1) * K(f,c,i,j) where h in 0:H/2, w in 0:W/2, 2*h+i-1 in 0:H, 2*w+j-1 in 0:W
}"""
DEPTHWISE: Final = """
def depthwise(float(N,C,H,W) I, float(C,3,3) K) -> (O) {
    O(n,c,h,w) +=! I(n,c,h+i-1,w+j-1) * K(c,i,j) where h in 0:H, w in 0:W, h+i-1 in 0:H, w+j-1 in 0:W
}"""
DOUBLES: Final = DEPTHWISE.replace("float", "double")
UPPER: Final = (
    "def upper(float(N,N) A, float(N,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) where k in i:N, k <= j, j in 0:N }"
)
GREATEST: Final = """
def greatest(float(N,C,H,W) I, float(C,3) K) -> (O) {
    O(n,c,h,w) max=! I(n,c,h,w+j-1) * K(c,j) where h in 0:H, w in 0:W, w+j-1 in 0:W
}"""
TRANSPOSED: Final = """
def transposed(float(N,C,H,W) I, float(C,F,4,4) K) -> (O) {
    O(n,f,2*h+i-1,2*w+j-1) +=! I(n,c,h,w) * K(c,f,i,j) where 2*h+i-1 in 0:2*H, 2*w+j-1 in 0:2*W
}"""
EVERY_OTHER: Final = """
def other(float(M,N,K) x) -> (y) { y(j) +=! x(i,j,k) where (k + j) % 2 == 0 }"""
WIDE: Final = """
def wide(float(N,C,H,W) I, float(F,C,41) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h,w+j-20) * K(f,c,j) where w in 0:W, w+j-20 in 0:W
}"""
CASES: Final[dict[str, tuple[str, Shapes]]] = {
    "same": (SAME, ((2, 19, 13, 27), (33, 19, 3, 3))),
    "a small image": (SAME, ((2, 20, 1, 2), (32, 20, 3, 3))),
    "one row": (SAME, ((1, 20, 1, 40), (32, 20, 3, 3))),
    "halved": (HALVED, ((2, 19, 14, 27), (33, 19, 3, 3))),
    "depthwise": (DEPTHWISE, ((2, 5, 13, 45), (5, 3, 3))),
    "narrow lanes": (DEPTHWISE, ((2, 9, 14, 14), (9, 3, 3))),
    "doubles": (DOUBLES, ((2, 9, 14, 13), (9, 3, 3))),
    "a triangle": (UPPER, ((67, 67), (67, 67))),
    "every other one": (EVERY_OTHER, ((3, 40, 41),)),
    "maxima": (GREATEST, ((2, 33, 20, 45), (33, 3))),
    "transposed": (TRANSPOSED, ((2, 19, 7, 9), (19, 33, 4, 4))),
}


# This processor, and what it is with shorter vectors.
TARGETS: Final = tuple(filter(runs, ("cpu", "cpu:x86-64-v3", "cpu:x86-64")))


def arrays_of(f: tc.Comprehension, shapes: Shapes) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    types = [f.program.tensor(name).type.value for name in f.program.arguments]
    return [rng.standard_normal(shape).astype(type) for shape, type in zip(shapes, types, strict=True)]


def right(f: tc.Comprehension, arrays: list[np.ndarray[Any, Any]], target: str) -> bool:
    (own,) = f.oracle(*arrays).values()
    return compare(own, np.asarray(f(*arrays, target=target))).ok


@one_in(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str, target: str) -> None:
    text, shapes = CASES[name]
    f = tc.define(text).single()
    assert right(f, arrays_of(f, shapes), target)


@pytest.mark.parametrize("name", CASES)
def test_every_pass_is_proven(name: str) -> None:
    text, shapes = CASES[name]
    map_program(specialized(text, shapes), tc.CpuOptions(), MACHINE, verify_every_pass=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("text", "shapes"), [CASES["same"], CASES["depthwise"], CASES["transposed"]])
def test_what_is_outside_has_no_terms(text: str, shapes: Shapes, target: str) -> None:
    """Zeros around the image would make NaN of weights that are infinite, and of those that are NaN."""
    f = tc.define(text).single()
    image, weights = arrays_of(f, shapes)
    weights[..., 0, 0], weights[..., 2, 2] = np.inf, np.nan
    assert right(f, [image, weights], target)
    assert np.isfinite(np.asarray(f(image, np.where(np.isfinite(weights), weights, 0)))).all()


def source(text: str, shapes: Shapes, options: tc.CpuOptions | None = None) -> str:
    kernel = tc.define(text).single().compile(*shapes, target="cpu:x86-64-v4", options=options)
    return kernel.source[kernel.source.index("static __attribute__((noinline))") :]


def test_steps_with_all_points_have_no_conditions() -> None:
    text = source(WIDE, ((4, 3, 4, 64), (16, 3, 41)), tc.CpuOptions(register_tile=(16, 1, 8), vector_axis=0))
    inside, outside = text.split("else {", 1)
    tile = r"t_tile\d_O_\d+_0 \+= "
    rows = len(re.findall(tile, inside))
    assert rows >= 4
    assert len(re.findall(r"if \([^)]*\) \{\s*" + tile, outside)) == rows


def test_lanes_with_conditions_are_in_vectors() -> None:
    text = source(DEPTHWISE, ((4, 64, 14, 14), (64, 3, 3)))
    assert "tc_load_between_float32x16(" in text
    assert "tc_between_float32x16(" in text


def test_images_of_any_size() -> None:
    f = tc.define(SAME).single()
    kernel = f.compile((tc.dynamic(64), 8, tc.dynamic(64), tc.dynamic(64)), (16, 8, 3, 3))
    for shape in ((2, 8, 13, 17), (3, 8, 7, 5), (1, 8, 1, 1), (1, 8, 64, 64)):
        image, weights = arrays_of(f, (shape, (16, 8, 3, 3)))
        (own,) = f.oracle(image, weights).values()
        assert compare(own, np.asarray(kernel(image, weights))).ok
