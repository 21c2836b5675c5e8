"""Which reductions threads and blocks share by default, each kind as it needs."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tc
from tc.polyhedral.gpu.mapping.split_plan import Group, default_groups
from tc.reference.compare import compare
from tc.targets.machine import GPUS
from tests.opencl import require
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]

NORM: Final = """
def norm(float(N,D) x, float(N,D) g) -> (y, a) {
    s(n) +=! x(n,d) * g(n,d)
    y(n,d) = g(n,d) * s(n)
    a(d) +=! g(n,d) * x(n,d)
}"""
SCALED: Final = "def f(float(N,C,W) g, float(N,C) r) -> (a) { a(c) +=! g(n,c,w) * r(n,c) }"
WEIGHTS: Final = """
def f(float(N,F,H,W) g, float(N,C,IH,IW) I) -> (K) {
    K(f,c,i,j) +=! g(n,f,h,w) * I(n,c,h+i,w+j) where i in 0:3, j in 0:3, h in 0:H, w in 0:W
}"""
PRODUCT: Final = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
MASKED: Final = "def f(float(M,K) A, float(K,N) B, float(M,N,K) W) -> (C) { C(m,n) +=! A(m,k) * B(k,n) * W(m,n,k) }"


def groups(text: str, shapes: Shapes) -> list[tuple[tuple[int, ...], int, list[str]]]:
    """Partial results in threads, blocks, and which statements, of every group."""
    found = default_groups(specialized(text, shapes), GPUS["sm_90"], lanes=True)
    return [(group.parts, group.blocks, sorted(group.among or ())) for group in found]


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        # Threads share the rows, and blocks the columns.
        (NORM, ((4096, 1024), (4096, 1024)), [((256, 8), 1, ["S0"]), ((), 49, ["S2"])]),
        # What is small beside another operand does not say along what memory is read.
        (SCALED, ((32, 512, 2304), (32, 512)), [((256, 8), 1, ["S0"])]),
        # A block has a whole image.
        (WEIGHTS, ((8, 64, 28, 28), (8, 64, 30, 30)), [((), 8, ["S0"])]),
        (PRODUCT, ((128, 1024), (1024, 1024)), [((), 16, ["S0"])]),
        (PRODUCT, ((128, 2000), (2000, 128)), [((), 25, ["S0"])]),
        (PRODUCT, ((512, 4096), (4096, 512)), [((), 8, ["S0"])]),
        (PRODUCT, ((512, 1024), (1024, 512)), [((), 8, ["S0"])]),
        (PRODUCT, ((1024, 1024), (1024, 1024)), [((), 2, ["S0"])]),
        (PRODUCT, ((1280, 1024), (1024, 1280)), []),
        (PRODUCT, ((512, 256), (256, 512)), []),
        # Narrow ones have smaller tiles, and so have those of other types.
        (PRODUCT, ((16, 4096), (4096, 4096)), [((), 8, ["S0"])]),
        (PRODUCT.replace("float", "double"), ((512, 1024), (1024, 512)), []),
        # An operand of which each element is read once: it is read along memory.
        (MASKED, ((64, 2048), (2048, 64), (64, 64, 2048)), [((256, 8), 1, ["S0"])]),
    ],
)
def test_groups(text: str, shapes: Shapes, expected: list[tuple[tuple[int, ...], int, list[str]]]) -> None:
    assert groups(text, shapes) == expected


def test_products_with_tiles_that_were_asked_for_have_smaller_ones() -> None:
    product = specialized(PRODUCT, ((1024, 1024), (1024, 1024)))
    assert not list(default_groups(product, GPUS["sm_90"], lanes=True, tiled=True))


@one_in(3)
@pytest.mark.parametrize("target", ["emulator", "opencl"])
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (NORM, ((300, 130), (300, 130))),
        (SCALED, ((3, 5, 700), (3, 5))),
        (WEIGHTS, ((5, 3, 11, 12), (5, 2, 13, 14))),
        (WEIGHTS, ((24, 3, 5, 5), (24, 2, 7, 7))),
        (PRODUCT, ((19, 613), (613, 21))),
        (PRODUCT, ((70, 1042), (1042, 66))),
        (MASKED, ((5, 600), (600, 7), (5, 7, 600))),
    ],
)
def test_values_are_those_of_the_definition(text: str, shapes: Shapes, target: str) -> None:
    require(target)
    f = tc.define(text).single()
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    found = f(*arrays, target=target)
    results = found if isinstance(found, tuple) else (found,)
    for (name, expected), value in zip(f.oracle(*arrays).items(), results, strict=True):
        assert compare(expected, np.asarray(value)).ok, name


def test_numbers_of_blocks_that_were_asked_for_hold_for_every_group() -> None:
    f = tc.define(NORM).single()
    kernel = f.compile((300, 130), (300, 130), target="cuda:sm_90", options=tc.GpuOptions(split_k_blocks=3))
    assert isinstance(kernel.options, tc.GpuOptions)
    assert kernel.options.split_k_blocks == 3
    text = kernel.source
    assert text.count("_parts[") > 0
    assert Group().steps == ()


SUMS: Final = """
def f(float(N,D) x) -> (s, q, m) {
    s(n) +=! x(n,d)
    q(n) +=! x(n,d) * x(n,d)
    m(n) max=! x(n,d)
}"""


def test_reductions_of_the_same_rows_are_one_kernel() -> None:
    """Though nothing hands their totals over to each other."""
    pytest.importorskip("cuda.bindings")
    kernel = tc.define(SUMS).single().compile((400, 1024), target="cuda:sm_90")
    assert len(kernel.resources.grids) == 1
    assert kernel.source.count("__syncthreads();") == 1


@pytest.mark.parametrize("shape", [(255, 515), (3, 1000), (1, 600)])
def test_reductions_of_the_same_rows_agree_with_the_oracle(shape: tuple[int, int]) -> None:
    f, x = tc.define(SUMS).single(), np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    found = f(x, target="emulator")
    assert isinstance(found, tuple)
    for expected, values in zip(f.oracle(x).values(), found, strict=True):
        assert compare(expected, np.asarray(values)).ok
