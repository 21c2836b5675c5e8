"""Scans of every kind against NumPy, the oracle and the reductions that they stand for, on all targets."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.schedule.scan import scan_reductions
from tc.reference.compare import compare
from tests.opencl import missing
from tests.turns import one_in

Array: TypeAlias = npt.NDArray[Any]

TARGETS: dict[str, tuple[str, tc.CpuOptions | tc.GpuOptions]] = {
    "cpu": ("cpu", tc.CpuOptions()),
    "cpu, small tiles": ("cpu", tc.CpuOptions(tc.ScheduleOptions(tile=(2,), fusion=tc.Fusion.MAXIMAL), threads=2)),
    "emulator": ("emulator", tc.GpuOptions()),
    **({} if missing() else {"opencl": ("opencl", tc.GpuOptions())}),
}


def numbers(shape: tuple[int, ...], type: npt.DTypeLike = np.float32) -> Array:
    rng = np.random.default_rng(3)
    found = rng.integers(-5, 6, shape) if np.dtype(type).kind in "iu" else rng.uniform(-1.5, 1.5, shape)
    return np.asarray(found).astype(type)


# The definition of a body over float(M,N) x, and what NumPy says.
CASES: dict[str, tuple[str, Any]] = {
    "along rows": ("y(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1", lambda x: np.cumsum(x, 1)),
    "along columns": ("y(i,n) +=! x(j,n) where i in 0:M, j in 0:i+1", lambda x: np.cumsum(x, 0)),
    "products": ("y(m,i) *=! x(m,j) where i in 0:N, j in 0:i+1", lambda x: np.cumprod(x, 1)),
    "greatest": ("y(m,i) max=! x(m,j) where i in 0:N, j in 0:i+1", lambda x: np.maximum.accumulate(x, 1)),
    "least": ("y(i,n) min=! x(j,n) where i in 0:M, j in 0:i+1", lambda x: np.minimum.accumulate(x, 0)),
    "reversed": ("y(m,i) +=! x(m,j) where i in 0:N, j in i:N", lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1]),
    "exclusive": ("y(m,i) +=! x(m,j) where i in 0:N, j in 0:i", lambda x: np.cumsum(x, 1) - x),
    "reversed and exclusive": (
        "y(m,i) +=! x(m,j) where i in 0:N, j in i+1:N",
        lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1] - x,
    ),
    "an expression of reads": (
        "y(m,i) +=! x(m,j) * x(0,j) + 1 where i in 0:N, j in 0:i+1",
        lambda x: np.cumsum(x * x[0] + 1, 1),
    ),
    "a mask": ("y(m,i) +=! x(m,j) > 0 ? x(m,j) : 0 where i in 0:N, j in 0:i+1", lambda x: np.cumsum(x * (x > 0), 1)),
    "a triangle as a mask": ("y(m,i) +=! j <= i ? x(m,j) : 0 where i in 0:N, j in 0:N", lambda x: np.cumsum(x, 1)),
    "the other branch": ("y(m,i) *=! j > i ? 1 : x(m,j) where i in 0:N, j in 0:N", lambda x: np.cumprod(x, 1)),
    "strided": ("y(m,i) +=! x(m,2*j) where i in 0:N/2, j in 0:i+1", lambda x: np.cumsum(x[:, :-1:2], 1)),
    "an update": ("y(m,i) = x(m,i)  y(m,i) += x(m,j) where i in 0:N, j in 0:i", lambda x: np.cumsum(x, 1)),
    "a turned result": ("y(i,m) +=! x(m,j) where i in 0:N, j in 0:i+1", lambda x: np.cumsum(x, 1).T),
    "what precedes and follows": (
        "a(m,j) = exp(x(m,j))  s(m,i) +=! a(m,j) where i in 0:N, j in 0:i+1  y(m,i) = log(s(m,i))",
        lambda x: np.log(np.cumsum(np.exp(x), 1)),
    ),
    "several": (
        "a(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1  y(k,n) +=! a(l,n) where k in 0:M, l in 0:k+1",
        lambda x: np.cumsum(np.cumsum(x, 1), 0),
    ),
    "logcumsumexp": (
        "g(m) max=! x(m,j)  s(m,i) +=! exp(x(m,j) - g(m)) where i in 0:N, j in 0:i+1  y(m,i) = log(s(m,i)) + g(m)",
        lambda x: np.log(np.cumsum(np.exp(x), 1)),
    ),
}  # fmt: skip


def definition(body: str, type: str = "float") -> tc.Comprehension:
    return tc.define(f"def f({type}(M,N) x) -> (y) {{ {body} }}").single()


@one_in(11)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, target: str) -> None:
    body, expected = CASES[name]
    f, x = definition(body), numbers((5, 37))
    place, options = TARGETS[target]
    found = np.asarray(f(x, target=place, options=options))
    assert compare(f.oracle(x)["y"], found).ok
    np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_a_scan(name: str) -> None:
    with isl_context() as context:
        changed, scans = scan_reductions(definition(CASES[name][0]).specialize((5, 37)), context)
    assert len(scans) == (2 if name == "several" else 1)
    assert "y_carry" in changed.layouts or "s_carry" in changed.layouts


@one_in(12)
@pytest.mark.parametrize("type", ["float16", "bfloat16", "float64", "int32", "uint8", "int64"])
@pytest.mark.parametrize("operator", ["+=!", "*=!", "max=!", "min=!"])
@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_types(type: str, operator: str, target: str) -> None:
    import ml_dtypes

    f = definition(f"y(m,i) {operator} x(m,j) where i in 0:N, j in 0:i+1", type)
    x = numbers((3, 41), ml_dtypes.bfloat16 if type == "bfloat16" else type)
    assert compare(f.oracle(x)["y"], np.asarray(f(x, target=target))).ok


def test_booleans_add_up_to_or() -> None:
    f = definition("y(m,i) max=! x(m,j) where i in 0:N, j in 0:i+1", "bool")
    x = np.random.default_rng(5).uniform(size=(4, 9)) > 0.8
    np.testing.assert_array_equal(np.asarray(f(x)), np.logical_or.accumulate(x, 1))


@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (5, 0), (1, 129)])
def test_sizes(shape: tuple[int, int]) -> None:
    for name in ("along rows", "reversed"):
        body, expected = CASES[name]
        x = numbers(shape)
        np.testing.assert_allclose(np.asarray(definition(body)(x)), expected(x), rtol=1e-5, atol=1e-6)


def test_nan_and_infinity_go_on() -> None:
    x = np.array([[1, np.inf, 2, np.nan, 1]], np.float32)
    for name in ("along rows", "greatest"):
        body, expected = CASES[name]
        np.testing.assert_array_equal(np.asarray(definition(body)(x)), expected(x))


@one_in(5)
@pytest.mark.parametrize("name", ["along rows", "least", "reversed", "exclusive", "products", "a turned result"])
@pytest.mark.parametrize("length", [300, 512, 1031])
def test_threads_of_a_gpu_scan_in_blocks(name: str, length: int) -> None:
    body, expected = CASES[name]
    x = numbers((2, length)) if name != "least" else numbers((length, 2))
    x = np.sign(x) * np.sqrt(np.abs(x)) if name == "products" else x
    f = definition(body)
    kernel = f.compile(x, target="emulator")
    assert "scan in blocks" in next(stage.text for stage in kernel.stages if stage.name == "scans")
    found = np.asarray(kernel(x))
    assert compare(f.oracle(x)["y"], found).ok
    np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


def test_cores_scan_a_long_row_in_blocks() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N, j in i:N }").f
    x = numbers(((1 << 17) + 5,))
    kernel = f.compile(x)
    assert "in blocks" in next(stage.text for stage in kernel.stages if stage.name == "scans")
    found = np.asarray(kernel(x))
    assert compare(f.oracle(x)["y"], found).ok
    np.testing.assert_array_equal(np.asarray(f(x, options=tc.CpuOptions(threads=1))), found)


def test_an_open_size() -> None:
    f = definition(CASES["along rows"][0])
    kernel = f.compile((tc.dynamic(50), 33))
    for rows in (1, 7, 50):
        x = numbers((rows, 33))
        np.testing.assert_allclose(np.asarray(kernel(x)), np.cumsum(x, 1), rtol=1e-4, atol=1e-5)


def test_what_the_first_element_has_beside_an_open_size() -> None:
    f = tc.define("def f(float(N,M) x) -> (y) { y(l) max=! x(k,i) where l in 0:4, i in l+1:M, k in 0:N }").f
    kernel = f.compile((tc.dynamic(1), 8))
    x = numbers((1, 8))
    np.testing.assert_array_equal(np.asarray(kernel(x)), [x[0, n + 1 :].max() for n in range(4)])


def test_a_result_in_the_memory_of_an_argument_is_written_when_that_is_read() -> None:
    f = tc.define("def f(float16(N) x) -> (y) { y(m) +=! x(i) where m in 0:N, i in 0:N, i > m }").f
    x = np.arange(1, 6, dtype=np.float16)
    f(x, out=x)
    np.testing.assert_array_equal(x, [14, 12, 9, 5, 0])


def test_long_sums_are_as_good_as_those_in_float64() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N, j in 0:i+1 }").f
    x = np.full(1 << 20, 0.1, np.float32)
    exact = np.cumsum(x.astype(np.float64))
    assert np.abs(np.asarray(f(x)) - exact).max() <= np.abs(exact).max() * 2.0**-24


def test_they_can_be_turned_off() -> None:
    f = definition(CASES["along rows"][0])
    for target, kind in (("cpu", tc.CpuOptions), ("emulator", tc.GpuOptions)):
        kernel = f.compile((3, 7), target=target, options=kind(tc.ScheduleOptions(scans=False)))
        assert "_carry" not in kernel.source
        assert "scans" not in [stage.name for stage in kernel.stages]


def test_the_same_bits_for_any_number_of_threads() -> None:
    f, x = definition(CASES["along rows"][0]), numbers((64, 700))
    first, *others = (np.asarray(f(x, options=tc.CpuOptions(threads=threads))) for threads in (1, 2, 3))
    assert all(np.array_equal(first, other) for other in others)


def test_explain_says_which_reductions_are_scans() -> None:
    said = "S0 is a scan along i, from its last element to its first; y_carry is carried from step to step"
    assert said in definition(CASES["reversed"][0]).explain((3, 7))
    assert "is a scan" not in definition("y(m) +=! x(m,n)").explain((3, 7))
