"""Ranges that read tensors, ``where j in R(i):R(i+1)``: sparse matrices, segments, ragged batches, on every target."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tc
from tc.language.text.print_program import program_text
from tc.reference.compare import compare
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.opencl import require
from tests.turns import every_row, one_in

Array = np.ndarray[Any, Any]

SPMV = tc.define("""
def spmv(int32(P) R, int32(Z) col, float(Z) v, float(M) x) -> (y) {
    y(i) +=! v(j) * x(col(j)) where j in R(i):R(i+1)
}""").single()
SPMM = tc.define("""
def spmm(int32(P) R, int32(Z) col, float(Z) v, float(M,K) X) -> (Y) {
    Y(i,k) +=! v(j) * X(col(j),k) where j in R(i):R(i+1)
}""").single()
OPERATORS = ("+=!", "*=!", "min=!", "max=!")
TYPES = ("float32", "float16", "float64", "int32", "uint8", "int64")
TARGETS = ("cpu", "emulator")


def rows(count: int, total: int) -> Array:
    """Where rows begin and end, empty ones among them."""
    random = np.random.default_rng(count)
    chosen = random.choice(count, max(1, count // 2)) if count else np.zeros(0, int)
    lengths = np.bincount(chosen[random.integers(0, len(chosen), total)], minlength=count) if count else chosen
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def matrix(count: int, columns: int, total: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(total)
    column = random.integers(0, columns, total).astype(np.int32)
    return rows(count, total), column, random.standard_normal(total).astype(np.float32)


def agree(f: tc.Comprehension, *arrays: Array, **how: Any) -> None:
    results = f(*arrays, **how)
    expected = f.oracle(*arrays)
    for name, result in zip(expected, results if isinstance(results, tuple) else (results,), strict=True):
        comparison = compare(expected[name], np.asarray(result))
        assert comparison.ok, f"{name}: {comparison}"


@one_in(4)
@pytest.mark.parametrize(
    ("count", "total", "target"), list(product((1, 13, 70), (1, 40, 333), (*TARGETS, "reference")))
)
def test_a_sparse_matrix_times_a_vector(count: int, total: int, target: str) -> None:
    bounds, column, v = matrix(count, 17, total)
    x = np.random.default_rng(0).standard_normal(17).astype(np.float32)
    dense = np.zeros((count, 17))
    np.add.at(dense, (np.repeat(np.arange(count), np.diff(bounds)), column), v)
    reference = target == "reference"
    y = SPMV.reference(bounds, column, v, x) if reference else SPMV(bounds, column, v, x, target=target)
    np.testing.assert_allclose(np.asarray(y), dense @ x, rtol=1e-4, atol=1e-5)


@one_in(3)
@pytest.mark.parametrize("columns", [1, 5, 64, 67])
@pytest.mark.parametrize("target", TARGETS)
def test_a_sparse_matrix_times_a_matrix(columns: int, target: str) -> None:
    bounds, column, v = matrix(23, 17, 140)
    agree(SPMM, bounds, column, v, np.ones((17, columns), np.float32), target=target)


def test_long_rows_are_added_up_in_runs() -> None:
    """Partial sums start where a row does, which is in the middle of a run of the loop."""
    bounds = np.array([0, 5, 5, 3000, 3001, 40_000], np.int32)
    column, v = np.zeros(40_000, np.int32), np.full(40_000, 0.1, np.float32)
    agree(SPMV, bounds, column, v, np.ones(1, np.float32))
    agree(SPMM, bounds, column, v, np.ones((1, 64), np.float32))
    y = SPMV(bounds, column, v, np.ones(1, np.float32))
    exact = np.diff(bounds).astype(np.float64) * float(np.float32(0.1))
    np.testing.assert_allclose(np.asarray(y), exact, rtol=3e-7)


@one_in(3)
@pytest.mark.parametrize(("operator", "type", "target"), every_row(18, product(OPERATORS, TYPES, TARGETS)))
def test_segments_in_every_type(operator: str, type: str, target: str) -> None:
    f = tc.define(f"def f(int64(P) R, {type}(Z) v) -> (y) {{ y(i) {operator} v(j) where j in R(i):R(i+1) }}").single()
    v = (np.arange(50) * 7 % 4).astype(numpy_dtype(tc.ScalarType(type)))
    agree(f, rows(19, 50).astype(np.int64), v, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_ragged_batches_masks_and_ranges_in_ranges(target: str) -> None:
    lengths = tc.define("""
def mean(float(B,N,D) x, int32(B) n) -> (y) {
    y(b,d) +=! x(b,t,d) where t in 0:n(b)
    y(b,d) = n(b) > 0 ? y(b,d) / n(b) : 0.0
}""").single()
    x = np.random.default_rng(0).standard_normal((5, 11, 7)).astype(np.float32)
    agree(lengths, x, np.array([0, 11, 3, 1, 7], np.int32), target=target)
    nested = tc.define("""
def f(int32(P) R, int32(Q) S, float(Z) v) -> (y) {
    y(i) +=! v(k) where j in R(i):R(i+1), k in S(j):S(j+1)
}""").single()
    agree(nested, rows(6, 9), rows(9, 31), np.arange(31, dtype=np.float32), target=target)
    masked = tc.define("""
def f(int32(P) R, float(Z) v, float(Z) w) -> (y) {
    y(i) max=! v(j) > 0.0 ? w(j) : -1.0 where j in R(i):R(i+1), j in 3:Z
}""").single()
    v, w = np.random.default_rng(1).standard_normal((2, 40)).astype(np.float32)
    agree(masked, rows(8, 40), v, w, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_of_segments(target: str) -> None:
    softmax = tc.define("""
def f(int32(P) R, int32(Z) segment, float(Z) x) -> (y) {
    m(i) max=! x(j) where j in R(i):R(i+1)
    e(j) = exp(x(j) - m(segment(j)))
    s(i) +=! e(j) where j in R(i):R(i+1)
    y(j) = e(j) / s(segment(j))
}""").single()
    bounds = rows(9, 60)
    segment = np.repeat(np.arange(9), np.diff(bounds)).astype(np.int32)
    agree(softmax, bounds, segment, np.random.default_rng(0).standard_normal(60).astype(np.float32), target=target)


OPTIONS = (
    tc.CpuOptions(tc.ScheduleOptions(tile=(8, 16))),
    tc.CpuOptions(tc.ScheduleOptions(tile=(4, 4, 4), unroll=4)),
    tc.CpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL, unroll=16), vectorize=False),
    tc.CpuOptions(register_tile=(4, 16)),
    tc.CpuOptions(threads=2, packed_operands=0),
    tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8)), block=(4, 4)),
    tc.GpuOptions(tc.ScheduleOptions(tile=(4, 16, 8), unroll=4), block=(16,)),
    tc.GpuOptions(shared_memory=0, register_accumulators=0),
)


@one_in(2)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options: tc.CpuOptions | tc.GpuOptions) -> None:
    target = "cpu" if isinstance(options, tc.CpuOptions) else "emulator"
    bounds, column, v = matrix(37, 17, 210)
    agree(SPMM, bounds, column, v, np.ones((17, 35), np.float32), target=target, options=options)


def test_bounds_are_checked_as_indices_are() -> None:
    bounds, column, v = matrix(13, 17, 40)
    x = np.ones(17, np.float32)
    for wrong in (41, -1, 2**31 - 1):
        changed = bounds.copy()
        changed[3] = wrong
        for target in TARGETS:
            with pytest.raises(
                tc.ArgumentError, match=r"^spmv: R gives a bound of a range that is outside of 0\.\.40 "
            ):
                SPMV(changed, column, v, x, target=target)
        place = rf"R gives {wrong} as a bound of a range, at i = \d, j = \d+; bounds must be at least 0 and at most 40"
        with pytest.raises(tc.ArgumentError, match=place):
            SPMV.reference(changed, column, v, x)
    falling = bounds.copy()
    falling[4], falling[5] = 30, 10  # an empty range, and one that overlaps others
    agree(SPMV, falling, column, v, x)


def test_open_sizes() -> None:
    kernel = SPMV.compile((tc.dynamic(100),), (tc.dynamic(500),), (tc.dynamic(500),), (17,))
    # The runs of a sum have iterations wherever there are runs.
    assert kernel.source.count("tc_first_iteration(") >= 2
    for count, total in ((3, 10), (99, 500), (1, 1)):
        bounds, column, v = matrix(count, 17, total)
        x = np.ones(17, np.float32)
        result = kernel(bounds, column, v, x)
        assert compare(SPMV.oracle(bounds, column, v, x)["y"], np.asarray(result)).ok
    bounds[1] = 2
    with pytest.raises(tc.ArgumentError, match="a bound of a range that is outside of its iterator's range"):
        kernel(bounds, column, v, x)


@pytest.mark.parametrize("target", ["cuda:sm_90", "opencl"])
def test_kernels_of_gpus_are_compiled(target: str) -> None:
    require(target)
    source = SPMV.compile((13,), (40,), (40,), (17,), target=target).source
    assert "tc_first_iteration" in source


def test_loops_begin_and_end_with_their_range() -> None:
    source = SPMV.compile((13,), (40,), (40,), (17,)).source
    assert source.count("tc_first_iteration(") >= 2
    assert " ? " not in source[source.index("tc_kernel_body(") :]


def test_texts_parse_back() -> None:
    for f in (SPMV, SPMM):
        assert tc.define(program_text(f.program)).single().program == f.program
    assert "where i in 0:P - 1, j in 0:Z, j in R(i):R(i + 1)" in program_text(SPMV.program)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y(j) = v(j) where j in R(0):R(1)", "the range of `j` reads a tensor, so a statement may only reduce over it"),
        ("y(j) +=! v(j) * v(i) where j in R(i):R(i+1)", "the range of `j` reads a tensor, so a statement may only red"),
        ("y(i) +=! v(j) where j in R(j):R(i+1)", "the range of `j` depends on itself"),
        ("y(i) +=! v(j) where j in v(i):v(i+1)", "a subscript or a range needs an integer, this is float32"),
        ("y(i) +=! 1 where j in R(i):R(i+1)", "the range of `j` is undetermined: no access of a tensor bounds it"),
        ("y(i) +=! v(j) where 2*j in R(i):R(i+1)", "a `where` must not read tensors, this one reads `R`"),
    ],
)
def test_what_is_refused(statement: str, message: str) -> None:
    with pytest.raises(tc.SemanticError) as raised:
        tc.define(f"def f(int32(P) R, float(Z) v) -> (y) {{ {statement} }}")
    assert message in str(raised.value)


def test_bounds_are_not_read_where_open_sizes_leave_no_instance() -> None:
    """The temporary has no element where ``M`` is 2; what ``X`` says then is of no importance."""
    text = "def f(float(M) B, int32(N) X) -> (Y) { D(i) +=! B(i + 2)  Y(j) min=! D(i) where i in 0:X(j) }"
    f = tc.define(text).single()
    for target in ("cpu", "emulator"):
        f.compile((tc.dynamic(17),), (3,), target=target)
        for extent in (3, 17):
            b, x = np.arange(extent, dtype=np.float32), np.array([0, 1, extent - 2], np.int32)
            wanted = [np.inf, 2, 2]
            np.testing.assert_array_equal(np.asarray(f(b, x, target=target)), wanted)


@pytest.mark.parametrize("bounds", [[4, 1], [1, -1], [0, 4], [5, 5], [4, 1, 0]])
def test_bounds_that_are_wrong_are_noticed_where_ranges_are_empty_too(bounds: list[int]) -> None:
    f = tc.define("def f(float(N) B, int32(M) W) -> (O) { O(i) max=! B(k) where k in W(i):W(i + 1) }").single()
    values, given = np.ones(3, np.float32), np.array(bounds, np.int32)
    with pytest.raises(tc.ArgumentError, match="bound"):
        f.oracle(values, given)
    for target in ("cpu", "emulator"):
        with pytest.raises(tc.ArgumentError, match="bound"):
            f(values, given, target=target)


def test_parts_of_a_scatter_that_have_no_index_read_no_bounds() -> None:
    """67 terms in 16 parts of 5: the last parts are empty, and no loop begins where a range is read for nothing."""
    text = """
    def f(int32(P) R, int32(Z) c, double(Z) v, double(M) d) -> (x) {
        x(c(j)) +=! d(i) * v(j) where c(j) in 0:5, i in 0:P-1, j in R(i):R(i+1), M == P-1
    }"""
    f = tc.define(text).single()
    generator = np.random.default_rng(0)
    bounds = np.sort(generator.integers(0, 68, 14)).astype(np.int32)
    column = generator.integers(0, 5, 67).astype(np.int32)
    v, d = generator.integers(-3, 4, 67).astype(np.float64), generator.integers(-3, 4, 13).astype(np.float64)
    for target in ("cpu", "emulator"):
        np.testing.assert_array_equal(f(bounds, column, v, d, target=target), f.reference(bounds, column, v, d))
