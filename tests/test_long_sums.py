"""Long float32 sums are as near as PyTorch's, whatever their length, on every target and with all options."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch

import tc
from tc.polyhedral.generate.serial_chains import MOST
from tc.reference.compare import compare
from tests.arrays import array
from tests.turns import every, every_row, one_in

Floats: TypeAlias = npt.NDArray[np.float32]

SUMS: Final = tc.define(
    """
    def full(float(N) x) -> (s) { s +=! x(i) }
    def mean(float(N) x) -> (m) { s +=! x(i)
                                  m = s / N }
    def rows(float(M,N) x) -> (s) { s(m) +=! x(m,n) }
    def columns(float(M,N) x) -> (s) { s(n) +=! x(m,n) }
    def squares(float(M,N) x) -> (s) { s(m) +=! x(m,n) * x(m,n) }
    def moments(float(M,N) x) -> (s, q) { s(m) +=! x(m,n)
                                          q(m) +=! x(m,n) * x(m,n) }
    def channels(float(A,C,B) x) -> (s) { s(c) +=! x(a,c,b) }
    def below(float(N,N) x) -> (s) { s(j) +=! x(i,j) where i in j:N }
    def more(float(N) x, float s0) -> (s) { s() = s0
                                            s() += x(i) }
    def halves(half(N) x) -> (s) { s +=! float(x(i)) }
    def product(float(M,K) a, float(K,N) b) -> (c) { c(m,n) +=! a(m,k) * b(k,n) }
    def turned(float(K,M) a, float(N,K) b) -> (c) { c(m,n) +=! a(k,m) * b(n,k) }
    def batched(float(B,M,K) a, float(B,K,N) b) -> (c) { c(z,m,n) +=! a(z,m,k) * b(z,k,n) }
    def vector(float(M,K) a, float(K) b) -> (c) { c(m) +=! a(m,k) * b(k) }
    def dot(float(K) a, float(K) b) -> (c) { c +=! a(k) * b(k) }
    def convolution(float(N,C,H,W) a, float(F,C,KH,KW) b) -> (c) { c(n,f,h,w) +=! a(n,ch,h+kh,w+kw) * b(f,ch,kh,kw) }
    def layer(float(M,K) a, float(K,N) b) -> (c) { t(m,n) = 0.5
                                                   t(m,n) += a(m,k) * b(k,n)
                                                   c(m,n) = fmax(t(m,n), 0) }
    def pair(float(M,K) a, float(K,N) b, float(K,N) d) -> (c, e) { c(m,n) +=! a(m,k) * b(k,n)
                                                                   e(m,n) +=! a(m,k) * d(k,n) }
    """
)
ULP: Final = 2.0**-24  # relative error of one rounding

DISTRIBUTIONS: Final[dict[str, Callable[[np.random.Generator, tuple[int, ...]], npt.NDArray[np.floating]]]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "tenths": lambda rng, shape: np.full(shape, 0.1),
    "1/255": lambda rng, shape: np.full(shape, 1 / 255),
    "ones": lambda rng, shape: np.ones(shape),
    "lognormal": lambda rng, shape: np.exp(2 * rng.standard_normal(shape)),
    "alternating": lambda rng, shape: (rng.random(shape) + 1) * (1 - 2 * (np.indices(shape).sum(axis=0) % 2)),
    "sorted": lambda rng, shape: np.sort(rng.random(shape), axis=0),
    "image": lambda rng, shape: np.round(rng.random(shape) * 255) / 255,
    "offset": lambda rng, shape: rng.random(shape) + 1e4,
}
CASES: Final = {
    "full": ((20_011,), None),
    "rows": ((3, 5_003), 1),
    "columns": ((4_099, 20), 0),
    "squares": ((3, 5_003), 1),
}


def error(found: object, terms: npt.NDArray[np.float64], axis: int | None) -> float:
    """The greatest distance from the sum of the terms, relatively to the sum of their magnitudes."""
    distance = np.abs(array(found).astype(np.float64) - terms.sum(axis=axis))
    return float(np.max(distance / np.abs(terms).sum(axis=axis)))


SLOW: Final = pytest.mark.slow


@pytest.mark.parametrize("name", ["full", *(pytest.param(name, marks=SLOW) for name in ("columns", "rows", "squares"))])
def test_errors_are_those_of_pytorch(name: str) -> None:
    shape, axis = CASES[name]
    for make in DISTRIBUTIONS.values():
        ours, theirs = [], []
        for seed in range(20):
            x = make(np.random.default_rng(seed), shape).astype(np.float32)
            tensor = torch.from_numpy(x) ** 2 if name == "squares" else torch.from_numpy(x)
            terms = x.astype(np.float64) ** (2 if name == "squares" else 1)
            ours.append(error(SUMS[name](x), terms, axis))
            theirs.append(error((tensor.sum() if axis is None else tensor.sum(axis)).numpy(), terms, axis))
        assert max(ours) <= 2 * max(*theirs, ULP)


def available(target: str) -> str:
    if not tc.targets()[target].startswith("available"):
        pytest.skip(f"no {target} here")
    return target


EQUAL: Final = [
    ("full", (100_003,), None),
    ("rows", (3, 30_001), (1,)),
    ("columns", (30_001, 2), (0,)),
    ("columns", (9_001, 33), (0,)),
    ("channels", (40, 5, 701), (0, 2)),
]


@pytest.mark.parametrize(
    ("case", "target"),
    [
        *every_row(5, list(itertools.product(EQUAL, ["cpu", "emulator"]))),
        *(pytest.param(case, "opencl", marks=SLOW) for case in EQUAL),
    ],
    ids=str,
)
def test_equal_terms(case: tuple[str, tuple[int, ...], tuple[int, ...] | None], target: str) -> None:
    name, shape, axes = case
    for value in (0.1, 1 / 255):
        x = np.full(shape, value, np.float32)
        exact = x.astype(np.float64).sum(axis=axes)
        assert np.max(np.abs(array(SUMS[name](x, target=available(target))) / exact - 1)) < 1e-6


OPTIONS: Final[dict[str, tc.CpuOptions | tc.GpuOptions]] = {
    "cpu-untiled": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=())),
    "cpu-tiles": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(7, 50))),
    "cpu-scalar": tc.CpuOptions(vectorize=False, register_accumulators=0, packed_operands=0, local_temporaries=0),
    "cpu-unrolled": tc.CpuOptions(schedule=tc.ScheduleOptions(unroll=8)),
    "gpu-one": tc.GpuOptions(split_k_threads=()),
    "gpu-memory": tc.GpuOptions(split_k_threads=(), register_accumulators=0, shared_memory=0),
    "gpu-many": tc.GpuOptions(split_k_threads=(64, 8), split_k_blocks=3),
    "gpu-tiles": tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(5, 40)), split_k_threads=()),
}


@pytest.mark.parametrize(
    ("name", "options"),
    every_row(
        8,
        [
            (name, options)
            for options in OPTIONS
            for name in ("rows", "columns", "moments", "below")
            if (name, options) != ("below", "gpu-many")  # the range of its reduction has no one length
        ],
    ),
)
def test_no_options_make_sums_worse(name: str, options: str) -> None:
    shape = {"columns": (4_099, 5), "below": (701, 701)}.get(name, (3, 4_099))
    target = "emulator" if options.startswith("gpu") else "cpu"
    x = np.full(shape, 0.1, np.float32)
    terms = np.tril(x) if name == "below" else x
    found = SUMS[name](x, target=target, options=OPTIONS[options])
    sums = [array(one).astype(np.float64) for one in (found if isinstance(found, tuple) else (found,))]
    for power, one in enumerate(sums, 1):
        exact = (terms.astype(np.float64) ** power).sum(axis=1 if name in ("rows", "moments") else 0)
        assert np.max(np.abs(one / exact - 1)) < 1e-6


def test_sums_in_place_and_of_halves() -> None:
    x = np.full(200_001, 0.1, np.float32)
    assert abs(float(array(SUMS.more(x, 1000.0))) / (1000.0 + x.astype(np.float64).sum()) - 1) < 1e-6
    half = x.astype(np.float16)
    assert abs(float(array(SUMS.halves(half))) / half.astype(np.float64).sum() - 1) < 1e-6


@SLOW
@pytest.mark.parametrize("steps", [5_000, 20_000])
def test_long_products_are_as_good_as_those_of_pytorch(steps: int) -> None:
    ours, theirs = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = rng.random((5, steps), np.float32), rng.random((steps, 17), np.float32)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        ours.append(np.max(np.abs(array(SUMS.product(a, b)) / exact - 1)))
        theirs.append(np.max(np.abs((torch.from_numpy(a) @ torch.from_numpy(b)).numpy() / exact - 1)))
    assert max(ours) <= 2 * max(*theirs, ULP)


PRODUCTS: Final[dict[str, tuple[tuple[int, ...], ...]]] = {
    "product": ((4, 200), (200, 6)),
    "turned": ((200, 4), (6, 200)),
    "batched": ((2, 4, 200), (2, 200, 6)),
    "vector": ((6, 200), (200,)),
    "dot": ((200,), (200,)),
    "convolution": ((1, 23, 6, 7), (3, 23, 3, 3)),
    "layer": ((4, 200), (200, 6)),
    "pair": ((4, 200), (200, 6), (200, 6)),
}
PRODUCT_OPTIONS: Final[dict[str, tc.CpuOptions | tc.GpuOptions]] = {
    "cpu": tc.CpuOptions(),
    "cpu-scalar": tc.CpuOptions(vectorize=False, register_accumulators=0, packed_operands=0, local_temporaries=0),
    "cpu-unpacked": tc.CpuOptions(packed_operands=0),
    "cpu-untiled": tc.CpuOptions(register_tile=()),
    "cpu-memory": tc.CpuOptions(register_tile=(), packed_operands=0, register_accumulators=0),
    "cpu-steps": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(4, 6, 7))),
    "cpu-unrolled": tc.CpuOptions(schedule=tc.ScheduleOptions(unroll=8)),
    "gpu": tc.GpuOptions(split_k_threads=()),
    "gpu-split": tc.GpuOptions(),
    "gpu-memory": tc.GpuOptions(split_k_threads=(), register_accumulators=0, shared_memory=0),
    "gpu-unshared": tc.GpuOptions(split_k_threads=(), shared_memory=0),
    "gpu-private": tc.GpuOptions(split_k_threads=(), register_accumulators=0),
    "gpu-across": tc.GpuOptions(split_k_threads=(), split_k_blocks=2),
    "gpu-points": tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(4, 8)), block=(2, 2), split_k_threads=()),
    "gpu-steps": tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(4, 8, 8)), block=(2, 2), split_k_threads=()),
}
# Tiles and blocks of more loops than these have.
FEW_LOOPS: Final = {"cpu-steps", "gpu-points", "gpu-steps"}


@one_in(3)
@pytest.mark.parametrize(
    ("name", "options"),
    every_row(
        13,
        [
            (name, options)
            for options in PRODUCT_OPTIONS
            for name in PRODUCTS
            if not (name in ("vector", "dot") and options in FEW_LOOPS)
        ],
    ),
)
def test_chains_of_products_are_short(name: str, options: str) -> None:
    """All that is added to one great term, as long as it is in one chain with it, is lost."""
    target = "emulator" if options.startswith("gpu") else "cpu"
    first, *others = (np.ones(shape, np.float32) for shape in PRODUCTS[name])
    for place in (0, first.size * 2 // 5):
        great = first.copy()
        great.reshape(-1)[place] = 2.0**25
        found = SUMS[name](great, *others, target=target, options=PRODUCT_OPTIONS[options])
        exact = SUMS[name].reference(great, *others)
        pairs = zip(found, exact, strict=True) if isinstance(found, tuple) else ((found, exact),)
        for one, other in pairs:
            lost = np.abs(array(one).astype(np.float64) - array(other))
            # Where runs are added to it, it is rounded to a multiple of 4.
            assert np.max(lost) <= MOST + 2 * (200 // MOST + 1)


@pytest.mark.parametrize("distribution", every(5, DISTRIBUTIONS))
@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_errors_of_products_are_those_of_pytorch(distribution: str, target: str) -> None:
    options = tc.GpuOptions(split_k_threads=()) if target == "emulator" else None
    ours, theirs = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = (DISTRIBUTIONS[distribution](rng, shape).astype(np.float32) for shape in ((2, 1_000), (1_000, 3)))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        spread = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        found = array(SUMS.product(a, b, target=target, options=options)).astype(np.float64)
        other = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy().astype(np.float64)
        ours.append(np.max(np.abs(found - exact) / spread))
        theirs.append(np.max(np.abs(other - exact) / spread))
    assert max(ours) <= 2 * max(*theirs, ULP)


@one_in(2)
@pytest.mark.parametrize(
    ("shapes", "tile", "block", "sums", "lies", "resident"),
    [
        (((512, 500), (500, 512)), None, None, 8, "", 1),
        (((2_048, 1_000), (1_000, 2_048)), None, None, 64, "", 1),
        (((2_048, 1_000), (1_000, 2_048)), (64, 128, 16), (16, 16), 32, "", 2),
        (((2_048, 1_000), (1_000, 2_048)), (128, 256, 16), (32, 32), 32, "total_private0_C", 1),
        (((4_096, 8_192), (8_192, 4_096)), None, None, 64, "grand_total_private0_C", 1),
    ],
)
def test_totals_are_in_registers_where_there_is_room(
    shapes: tuple[tuple[int, ...], ...],
    tile: tuple[int, ...] | None,
    block: tuple[int, ...] | None,
    sums: int,
    lies: str,
    resident: int,
) -> None:
    """A thread's own memory is written through to the second-level cache; those in float64 seldom grow."""
    text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    options = tc.GpuOptions(schedule=tc.ScheduleOptions(tile=tile), block=block)
    source = tc.define(text).mm.compile(*shapes, target="cuda:sm_90", options=options).source
    threads = 256 if block is None else block[0] * block[1]
    assert f"float total_private0_C[{sums}]" in source
    assert f"__launch_bounds__({threads}, {resident})" in source
    assert set(re.findall(r'asm volatile\("" :: "l"\((\w+)\) : "memory"\);', source)) == ({lies} if lies else set())
    assert ("double grand_total_private0_C" in source) == (shapes[0][1] > MOST * MOST)


def test_infinities_and_nan_come_through() -> None:
    for values, wanted in (
        ((np.inf,), np.inf),
        ((-np.inf,), -np.inf),
        ((np.inf, -np.inf), np.nan),
        ((np.nan,), np.nan),
    ):
        x = np.ones((2, 6_007), np.float32)
        x[0, 100 : 100 + 1_001 * len(values) : 1_001] = values
        rows = array(SUMS.rows(x))
        np.testing.assert_array_equal(rows, [wanted, 6_007])
        np.testing.assert_array_equal(array(SUMS.columns(np.ascontiguousarray(x.T))), rows)
    x = np.full((1, 6_007), 3e38, np.float32)
    assert array(SUMS.rows(x))[0] == np.inf


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    x = np.random.default_rng(1).random((67, 9_001), np.float32)
    try:
        found = []
        for threads in (1, 2, 4):
            tc.set_threads(threads)
            found.append([array(SUMS[name](x)) for name in ("rows", "columns")])
    finally:
        tc.set_threads(None)
    for one in found[1:]:
        for first, other in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(first, other)


def test_the_bound_of_the_oracle_refuses_a_sum_in_one_chain() -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    result = SUMS.full.oracle(x)["s"]
    assert compare(result, array(SUMS.full(x))).ok
    assert not compare(result, np.cumsum(x)[-1]).ok


@pytest.mark.parametrize("terms", [3, 33, 100, 12_345, 1 << 22])
def test_the_bound_of_equal_terms_does_not_grow_with_the_length(terms: int) -> None:
    result = SUMS.full.oracle(np.broadcast_to(np.float32(1 / 3), (terms,)))["s"]
    assert np.max(result.error / result.values) < 1e-6


def test_the_bound_of_uneven_terms_is_wider() -> None:
    x = np.zeros(5_000, np.float32)
    x[::40] = 1 / 3
    result = SUMS.full.oracle(x)["s"]
    assert 1.9e-6 < np.max(result.error / result.values) < 2.2e-6


def test_short_sums_are_left_alone() -> None:
    assert "total" not in SUMS.rows.compile((8, 384)).source
    assert "total" not in SUMS.product.compile((8, MOST), (MOST, 8)).source
    assert "total" in SUMS.product.compile((8, MOST + 1), (MOST + 1, 8)).source


def test_explanations_say_how_sums_are_added_up() -> None:
    text = SUMS.full.explain(np.zeros(20_000, np.float32))
    assert "== sums ==\nS0: partial sums of a few terms, added up in float64" in text
    assert "== sums ==" not in SUMS.full.explain(np.zeros(20, np.float32))
    a, b = np.zeros((8, 200), np.float32), np.zeros((200, 8), np.float32)
    said = SUMS.product.explain(a, b, target="emulator", options=tc.GpuOptions(split_k_threads=()))
    assert "== sums ==\nS0: partial sums of a few terms, added up in float32" in said
    said = SUMS.product.explain(a, b, options=PRODUCT_OPTIONS["cpu-memory"])
    assert "== sums ==\nS0: every term is added in float64" in said


@SLOW
@pytest.mark.parametrize("name", ["full", "mean", "columns"])
def test_four_thousand_million_terms_of_one_element(name: str) -> None:
    shape = (1 << 28, 16) if name == "columns" else (1 << 32,)
    found = array(SUMS[name](np.broadcast_to(np.float32(0.1), shape))).astype(np.float64)
    exact = float(np.float32(0.1)) * (1 if name == "mean" else shape[0])
    assert np.max(np.abs(found / exact - 1)) < 1e-6


@SLOW
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_errors_of_very_long_sums(distribution: str) -> None:
    x = DISTRIBUTIONS[distribution](np.random.default_rng(0), (1 << 26,)).astype(np.float32)
    terms = x.astype(np.float64)
    theirs = error(torch.from_numpy(x).sum().numpy(), terms, None)
    assert error(SUMS.full(x), terms, None) <= 2 * max(theirs, ULP)
    turned = x.reshape(-1, 16)
    theirs = error(torch.from_numpy(turned).sum(0).numpy(), turned.astype(np.float64), 0)
    assert error(SUMS.columns(turned), turned.astype(np.float64), 0) <= 2 * max(theirs, ULP)


def test_a_scatter_may_round_as_often_as_its_chains_are_long() -> None:
    """Each of 289 places adds a sum of 17 terms; in memory 4,096 additions may follow each other."""
    text = """
    def f(float(N, N) A, uint16(N, N) B, uint16(N, N) D) -> (C) {
        C(D(j, n), B(j, n)) +=! A(j, ii) where B(j, n) in 0:N, D(j, n) in 0:N
    }"""
    f = tc.define(text).single()
    generator = np.random.default_rng(0)
    a = generator.standard_normal((17, 17), np.float32)
    b, d = (generator.integers(0, 17, (17, 17)).astype(np.uint16) for _ in range(2))
    options = tc.CpuOptions(tc.ScheduleOptions(unroll=64, scatter_owners=3))
    comparison = compare(f.oracle(a, b, d)["C"], np.asarray(f(a, b, d, options=options)))
    assert comparison.ok, str(comparison)


@pytest.mark.parametrize("target", ["emulator", "cuda:sm_90"])
def test_totals_of_arrays_are_added_to_inside_of_loops_whose_lanes_would_keep_the_sum(target: str) -> None:
    """The gradient of a convolution by its weights: the sum of an element goes through tiles, rows and lanes."""
    statement = "K(p,q) +=! d(n,c,h,w) * J(n,c,h+p,w+q) where p in 0:3, q in 0:2"
    f = tc.define(f"def f(float(N,C,H,W) d, float(N,C,R,T) J) -> (K) {{ {statement} }}").single()
    generator = np.random.default_rng(0)
    d, j = generator.standard_normal((2, 3, 4, 13), np.float32), generator.standard_normal((2, 3, 6, 14), np.float32)
    if target != "emulator":
        assert f.compile(d, j, target=target).source
        return
    comparison = compare(f.oracle(d, j)["K"], np.asarray(f(d, j, target=target)))
    assert comparison.ok, str(comparison)
