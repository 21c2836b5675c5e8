"""``op=!`` whose left-hand side several points share: every element starts once, on every target, at every size."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.turns import every_row, one_in

OPERATORS = ("+=!", "*=!", "min=!", "max=!")
TYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")
# Of A(N,M): each element takes several points of every one of these.
FORMS = ("i + j", "2*i + j", "i - j + M - 1", "i/2, j", "i%3, j/2", "max(i, j)", "N - 1 - i")
SHAPE = (7, 5)


def whole(shape: tuple[int, ...], type: str = "float32") -> np.ndarray[Any, Any]:
    """Small numbers, of which most types hold every sum exactly."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 % 4).astype(numpy_dtype(tc.ScalarType(type)))


def agree(f: tc.Comprehension, *arrays: np.ndarray[Any, Any], **how: Any) -> None:
    """The results of a call against the oracle."""
    results = f(*arrays, **how)
    expected = f.oracle(*arrays)
    for name, result in zip(expected, results if isinstance(results, tuple) else (results,), strict=True):
        comparison = compare(expected[name], np.asarray(result))
        assert comparison.ok, f"{name}: {comparison}"


def results_of(kernel: tc.Kernel, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    results = kernel(*arrays)
    assert isinstance(results, tuple)
    return tuple(np.asarray(result) for result in results)


def scattering(operator: str, type: str, form: str) -> tc.Comprehension:
    return tc.define(f"def f({type}(N,M) A) -> (y) {{ y({form}) {operator} A(i,j) }}").single()


@one_in(2)
@pytest.mark.parametrize(
    ("operator", "type", "form", "target"),
    every_row(23, product(OPERATORS, TYPES, FORMS, ("cpu", "emulator"))),
)
def test_operators_types_and_subscripts(operator: str, type: str, form: str, target: str) -> None:
    agree(scattering(operator, type, form), whole(SHAPE, type), target=target)


@pytest.mark.parametrize(("form", "fusion", "threads"), every_row(7, product(FORMS, tc.Fusion, (1, 2))))
def test_fusion_and_threads(form: str, fusion: tc.Fusion, threads: int) -> None:
    options = tc.CpuOptions(tc.ScheduleOptions(fusion=fusion), threads=threads)
    agree(scattering("+=!", "float32", form), whole((33, 17)), options=options)


PROGRAMS = {
    "a temporary": "def f(float(N,M) A) -> (z) { y(i+j) +=! A(i,j)  z(k) = 2 * y(k) }",
    "a second version": (
        "def f(float(N,M) A) -> (y, z) { y(i,j) = A(i,j)  z(i) +=! y(i,j)  y(i+j, 0) max=! z(i) * A(0,j) }"
    ),
    "one after another": "def f(float(N,M) A) -> (y, z) { y(i+j) +=! A(i,j)  z(k/2) min=! y(k)  y(i+j) += A(i,j) }",
    "holes": "def f(float(N,M) A) -> (y) { y(2*i+4*j) +=! A(i,j)  y(2*i+1) = 3 where i in 0:N+2*M-3 }",
    "conditions on both sides": "def f(float(N,M) A) -> (y) { y(i+j) +=! A(i,j) where i + j < 9, j >= 0 }",
    "conditions on what is reduced": (
        "def f(float(N,M) A) -> (y) { y(i+j) +=! A(i,j) * A(k,0) where i in 0:N, j in 0:M, k in 0:N, k > i }"
    ),
    "called": (
        "def g(float(N,M) A) -> (y) { y(i/2, j%2) +=! A(i,j) }"
        "def f(float(N,M) A) -> (z) { t = g(A)  z(i+j) max=! t(i,j) }"
    ),
    "one place for all": "def f(float(N,M) A) -> (y) { y(0*i, 0) +=! A(i,j) }",
}


@pytest.mark.parametrize(
    ("target", "name"), every_row(1, zip(("cpu", "emulator") * len(PROGRAMS), PROGRAMS, strict=False))
)
def test_programs(target: str, name: str) -> None:
    agree(tc.define(PROGRAMS[name])["f"], whole(SHAPE), target=target)


@pytest.mark.parametrize("type", ["float32", "float16"])
def test_updates_of_what_comes_in(type: str) -> None:
    """Halves are loaded and stored once for every element, too."""
    f = tc.define(f"def f({type}(N) a) -> (y) {{ y(i%3) += a(i) }}").single()
    for target in ("cpu", "emulator"):
        y = np.array([1, 2, 3], type)
        f(whole((8,), type), out=y, target=target)
        np.testing.assert_array_equal(y, np.array([1, 2, 3]) + [whole((8,))[turn::3].sum() for turn in range(3)])


def test_a_result_in_the_memory_of_an_argument() -> None:
    text = "def g(float(N) a, float(M) b, float(K) c) -> (y) { t(i+j) +=! a(i) * b(j)  y(k) = t(k) + c(k) }"
    g = tc.define(text).single()
    a, b, c = whole((7,)), whole((5,)), whole((11,))
    expected = np.convolve(a, b) + c
    assert g(a, b, c, out=c) is c
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_open_sizes(target: str) -> None:
    f = tc.define("def f(float(N) a, float(M) b) -> (y, z) { y(i+j) +=! a(i) * b(j)  z(0) max=! y(i) }").single()
    kernel = f.compile((tc.dynamic(20),), (tc.dynamic(9),), target=target)
    for n, m in ((2, 1), (1, 9), (7, 5), (20, 9)):
        y, z = results_of(kernel, whole((n,)), whole((m,)))
        np.testing.assert_array_equal(y, np.convolve(whole((n,)), whole((m,))))
        np.testing.assert_array_equal(z, [y.max()])


@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_nothing_to_add(target: str) -> None:
    """No batch, so no elements; and no terms, so all elements are neutral."""
    f = tc.define("def f(float(B,N,M) A, float(K) w) -> (y) { y(b, i+j) +=! A(b,i,j) * w(k) }").single()
    assert np.asarray(f(whole((0, 3, 4)), whole((2,)), target=target)).shape == (0, 6)
    np.testing.assert_array_equal(f(whole((2, 3, 4)), whole((0,)), target=target), np.zeros((2, 6)))


def test_what_the_error_of_an_assignment_says_works() -> None:
    f = tc.define("def f(float(N) a) -> (y) { y(i/2) = a(i) }").single()
    np.testing.assert_array_equal(f(whole((1,))), whole((1,)))
    with pytest.raises(tc.RangeError) as caught:
        f(whole((7,)))
    assert "`y(0)` is written by more than one instance of the statement" in str(caught.value)
    assert str(caught.value).endswith("hint: reduce with `+=!`, `*=!`, `min=!` or `max=!`")
    for operator in OPERATORS:
        agree(tc.define(f"def f(float(N) a) -> (y) {{ y(i/2) {operator} a(i) }}").single(), whole((7,)))


def test_an_update_that_reads_its_target_is_told_to_combine() -> None:
    f = tc.define("def f(float(N) a) -> (y) { y(i/2) +=! a(i)  y(i/2) = y(i/2) + a(i) }").single()
    with pytest.raises(tc.RangeError) as caught:
        f(whole((7,)))
    assert str(caught.value).endswith(
        "hint: combine with `+=`, `*=`, `min=` or `max=` what does not read `y`, or read a copy of it"
    )
    agree(tc.define("def f(float(N) a) -> (y) { y(i/2) +=! a(i)  y(i/2) += a(i) }").single(), whole((7,)))
