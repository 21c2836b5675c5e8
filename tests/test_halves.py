"""Sums of halves that leave the range of halves before they come back, on all targets, against the oracle."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.reference.compare import compare
from tests.gpu_cases import OPTIONS, run
from tests.opencl import missing
from tests.turns import one_in

HALVES: dict[str, npt.DTypeLike] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
M, N = 5, 1031
TEXTS = {
    "mean": "def f(half(M,N) X) -> (O) { s(i) +=! X(i,j)  O(i) = s(i) / N }",
    "two operators": (
        "def f(half(M,N) X) -> (O, P) { s(i) +=! X(i,j)  s(i) += X(i,j)  m(i) max=! X(i,j) * X(i,j)  "
        "O(i) = s(i) / N  P(i) = m(i) / 1000 }"
    ),
    "sum of sums": "def f(half(M,N) X) -> (O) { s(i) +=! X(i,j)  O +=! s(i) / N }",
    "layer norm": (
        "def f(half(M,N) X) -> (O) { s(i) +=! X(i,j)  m(i) = s(i) / N  v(i) +=! (X(i,j) - m(i)) * (X(i,j) - m(i))  "
        "O(i,j) = (X(i,j) - m(i)) * rsqrt(v(i) / N + 1e-5) }"
    ),
    "softmax": (
        "def f(half(M,N) X) -> (O) { m(i) max=! X(i,j)  e(i,j) = exp((X(i,j) - m(i)) / 100)  s(i) +=! e(i,j)  "
        "O(i,j) = e(i,j) / s(i) }"
    ),
    "attention": (
        "def f(half(M,N) X) -> (O) { p(i,k) +=! X(i,j) * X(k,j)  q(i,k) = p(i,k) / (N * 3000)  e(i,k) = exp(q(i,k))  "
        "s(i) +=! e(i,k)  O(i,j) +=! e(i,k) / s(i) * X(k,j) }"
    ),
    "calls": (
        "def mean(half(M,N) X) -> (m) { s(i) +=! X(i,j)  m(i) = s(i) / N } "
        "def spread(half(M,N) X) -> (v) { m = mean(X)  v(i) +=! (X(i,j) - m(i)) * (X(i,j) - m(i)) } "
        "def f(half(M,N) X) -> (O) { v = spread(X)  O(i) = sqrt(v(i) / N) }"
    ),
    "a name used again": "def f(half(M,N) X) -> (O) { O(i) +=! X(i,j)  t(i) = O(i) / N  O(i) = t(i) * 2 }",
}
SCHEDULES = {str(fusion): tc.ScheduleOptions(fusion=fusion) for fusion in tc.Fusion}
TARGETS: dict[str, tuple[str, tc.CpuOptions | tc.GpuOptions]] = {
    "cpu": ("cpu", tc.CpuOptions()),
    **{f"cpu, fusion {name}": ("cpu", tc.CpuOptions(schedule)) for name, schedule in SCHEDULES.items()},
    "cpu, small tiles": ("cpu", tc.CpuOptions(tc.ScheduleOptions(tile=(3, 4)), threads=2)),
    **{f"emulator, {name}": ("emulator", options) for name, options in OPTIONS.items()},
    **({} if missing() else {"opencl": ("opencl", tc.GpuOptions())}),
}


def case(name: str, type: str) -> tuple[tc.Comprehension, npt.NDArray[Any]]:
    """A definition, and an argument whose sums leave the range of float16."""
    definitions = tc.define(TEXTS[name].replace("half(", f"{type}("))
    x = np.random.default_rng(7).uniform(100, 300, (M, N)).astype(HALVES[type])
    return definitions["f"], x


def check(name: str, type: str, target: str) -> None:
    f, x = case(name, type)
    place, options = TARGETS[target]
    if isinstance(options, tc.GpuOptions):
        found: object = run(f, (x,), None, options, place)
    else:
        found = f(x, target=place, options=options)
    for expected, result in zip(f.oracle(x).values(), found if isinstance(found, tuple) else (found,), strict=True):
        values = np.asarray(result)
        assert values.dtype == x.dtype
        assert np.isfinite(expected.error).all()
        comparison = compare(expected, values)
        assert comparison.ok, comparison
        # Nothing but the result was rounded to a half.
        near = np.abs(values.astype(np.float64) - expected.values)
        assert (near <= np.abs(expected.values) * (1.1 * expected.type.unit_roundoff) + 1e-6).all()


@one_in(4)
@pytest.mark.parametrize("name", TEXTS)
def test_sums_beyond_the_range_of_halves(name: str) -> None:
    place = list(TEXTS).index(name)
    check(name, "float16", "cpu")
    check(name, list(HALVES)[place % 2], list(TARGETS)[1 + place % (len(TARGETS) - 1)])


def test_terms_of_partial_results_are_not_rounded() -> None:
    check("attention", "float16", "emulator, partial results")


@pytest.mark.slow
@pytest.mark.parametrize("type", HALVES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_targets(name: str, target: str, type: str) -> None:
    check(name, type, target)


def scratch(kernel: Kernel) -> set[tc.ScalarType]:
    """The types of what a kernel keeps in memory beside its arguments and results."""
    assert kernel.compilation is not None
    return {buffer.layout.type for buffer in kernel.compilation.mapped.loops.temporaries}


@pytest.mark.parametrize("name", ["mean", "attention"])
def test_the_text_for_cuda_compiles(name: str) -> None:
    f, x = case(name, "float16")
    assert tc.ScalarType.FLOAT16 not in scratch(f.compile(x, target="cuda:sm_90"))


def test_temporaries_have_room_for_float32() -> None:
    f, x = case("softmax", "float16")
    kernel = f.compile(x, options=tc.CpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL)))
    assert scratch(kernel) == {tc.ScalarType.FLOAT32}


def test_a_temporary_that_is_returned_is_rounded_once() -> None:
    f = tc.define("def f(half(M,N) X) -> (O) { s(i) +=! X(i,j)  t(i) = s(i) - 2048  O(i) = t(i) }").f
    x = np.zeros((1, 3), np.float16)
    x[0] = 2048, 1, 0
    assert np.asarray(f(x)).tolist() == [1.0]  # 2,049 is no half


@pytest.mark.parametrize("type", HALVES)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize(
    "body",
    [
        "S(j) +=! int({type}(X(i,j) * X(i,j)) == B(j))",
        "T(i,j) = X(i,j) * X(i,j)  E(i,j) = T(i,j) == B(j)  S(j) +=! int(E(i,j))",
        "S(j) = {type}(X(0,j) * X(0,j)) == B(j) ? 1 : 0",
    ],
)
def test_what_is_made_a_half_is_compared_as_one(body: str, target: str, type: str) -> None:
    text = f"def f({type}(N,M) X, {type}(M) B) -> (S) {{ {body} }}".replace("{type}", type)
    x = np.random.default_rng(3).uniform(1, 2, (1, 40)).astype(HALVES[type])
    squares = (x[0].astype(np.float32) ** 2).astype(HALVES[type])
    f = tc.define(text).f
    found = np.asarray(f(x, squares, target=target))
    assert found.tolist() == [1] * 40
    assert compare(f.oracle(x, squares)["S"], found).ok
