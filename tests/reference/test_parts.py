"""Temporaries that the oracle computes in parts, as it has no room for them: the same values within less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tc
from tc.reference import evaluate, memory, parts, windows
from tc.reference.memory import Plan, need_of
from tc.reference.parts import candidates
from tests.turns import every

X = "float(N) x"
ALL = {
    "rows": (
        "float(N,M) x",
        "m(i) max=! x(i,j)  e(i,j) = exp(x(i,j)-m(i))  l(i) +=! e(i,j)  y(i,j) = e(i,j)/l(i)",
        "mel",
        (9, 12),
    ),
    "chain": (X, "a(i) = x(i)*2  b(i) = a(i)+1  c(i) = b(i)*b(i)  y(i) = c(i)", "abc", (50,)),
    "total": (X, "a(i) = x(i)*2  b(i) = a(i)*a(i)  y +=! b(i)", "ab", (50,)),
    "mirrored": (X, "a(i) = x(i)*2  y(i) = a(N-1-i) + a(i)", "a", (50,)),
    "stencils": (
        X,
        "a(i) = x(i)+x(i+1)  b(i) = a(i)-a(i+2)  y(i) = b(i)+b(i+1)+a(i)",
        "ab",
        (50,),
    ),
    "guarded": (X, "a(i) = x(i)*3  y(i) = i > 0 && i < N-1 ? a(i-1) + a(i+1) : 0 where i in 0:N", "a", (50,)),
    "wrapped": (X, "a(i) = x(i)*3  y(i) = a((i+7)%N) - a(i - i%4) + a(i/2) where i in 0:N", "a", (50,)),
    "transposed": ("float(N,M) x", "a(i,j) = x(i,j)*3  y(j,i) = a(i,j)", "a", (11, 13)),
    "products": ("float(N,M) x", "p(i,j) +=! x(i,k)*x(j,k)  y(i,j) +=! p(i,k)*x(k,j)", "p", (12, 7)),
    "in pieces": (
        X,
        "a(i) = x(i) where i in 0:N  a(i) += 2*x(i)  a(2*i) *= 3 where i in 0:N/2  y(i) = a(i)",
        "a",
        (50,),
    ),
    "upper half": (
        X,
        "a(i) = x(i)  b(i) = a(i)  y(i,j) = j >= i ? b(j)-a(i) : 0 where i in 0:N, j in 0:N",
        "ab",
        (23,),
    ),
    "overlapping": ("float(N) x, float(M) w", "a(i+k) +=! x(i)*w(k)  y(i) = a(i) + a(i+1)", "a", (31, 4)),
    "halves": ("half(N,M) x", "s(i) +=! x(i,j)  m(i) = s(i)/M  y(i,j) = x(i,j) - m(i)", "sm", (9, 12)),
    "integers": (
        "int(N) x",
        "a(i) = x(i)/3  b(i) max=! a(i)*(j+1) where j in 0:4, i in 0:N  y(i) = b(i)-a(i)",
        "ab",
        (50,),
    ),
}


def defined(name: str) -> tuple[tc.Comprehension, list[np.ndarray]]:
    inputs, statements, _, shape = ALL[name]
    random = np.random.default_rng(1)
    f = tc.define(f"def f({inputs}) -> (y) {{ {statements} }}").f
    shapes = [(size,) for size in shape] if "," in inputs.replace("(N,M)", "") else [shape]
    dtype = {"float": np.float32, "half": np.float16, "int": np.int32}[inputs.partition("(")[0]]
    return f, [random.integers(-9, 9, given).astype(dtype) for given in shapes]


@pytest.mark.parametrize("name", ALL)
def test_parts_change_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, arguments = defined(name)
    specialization = f.specialize(*arguments)
    assert candidates(specialization.program) == frozenset(ALL[name][2])
    given = dict(zip((a.name for a in f.program.tensors), arguments, strict=False))
    whole = evaluate.evaluate(specialization, given)["y"]
    np.testing.assert_array_equal(f.oracle(*arguments)["y"].values, whole.values)
    monkeypatch.setattr(evaluate, "STEP", 16)
    monkeypatch.setattr(parts, "PART_ELEMENTS", 40)
    monkeypatch.setattr(windows, "_MOST", 20)
    found = evaluate.evaluate(specialization, given, plan=Plan(frozenset(ALL[name][2]), shared=15))["y"]
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(found.error, whole.error, rtol=1e-9)
    np.testing.assert_array_equal(found.ambiguous, whole.ambiguous)


@pytest.mark.parametrize(
    "statements",
    [
        "a(i) = y(i)  y(i) += x(i)  z(i) = a(i)",  # what it is computed from changes
        "a(i) = x(i)  a(i) = a(i)*a(i)  z(i) = a(i)  y(i) += a(i)",  # it is read before it is complete
    ],
)
def test_what_is_kept_whole(statements: str) -> None:
    f = tc.define(f"def f(float(N) x) -> (y, z) {{ {statements} }}").f
    assert "a" not in candidates(f.specialize((5,)).program)


LARGE = {
    "chain": (X, "a(i) = x(i)*2  b(i) = a(i)+1  c(i) = b(i)*b(i)  y(i) = c(i)*c(N-1-i)", (80_000,), 17),
    "total": (X, "a(i) = x(i)*2  b(i) = a(i)*a(i)  c(i) = b(i)-a(i)  y +=! c(i)", (80_000,), 0),
    "rows": (
        "float(N,M) x",
        "m(i) max=! x(i,j)  e(i,j) = exp(x(i,j)-m(i))  l(i) +=! e(i,j)  y(i,j) = e(i,j)/l(i)",
        (500, 500),
        17,
    ),
    "products": ("float(N,M) x", "p(i,j) +=! x(i,k)*x(j,k)  y(i,d) +=! p(i,k)*x(k,d)", (350, 4), 0),
}


@pytest.mark.parametrize("name", every(4, LARGE))
def test_large_temporaries_need_no_memory_of_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With steps of a 256th, so that temporaries are large already where the test is short."""
    for module, constant in (
        *((module, "STEP") for module in (evaluate, memory, windows)),
        *((module, "PART_ELEMENTS") for module in (memory, parts)),
        (memory, "_REDUCED_ELEMENTS"),
        (evaluate, "_CONTRACTION_STEP"),
        (windows, "_MOST"),
    ):
        monkeypatch.setattr(module, constant, getattr(module, constant) // 256)
    inputs, statements, shape, each = LARGE[name]
    f = tc.define(f"def f({inputs}) -> (y) {{ {statements} }}").f
    x = np.ones(shape, np.float32)
    specialization = f.specialize(x)
    whole = need_of(specialization).bytes
    least = need_of(specialization, parts=candidates(specialization.program)).bytes
    assert least < 0.8 * whole
    assert least <= each * x.size + 3_000_000
    tracemalloc.start()
    try:
        found = f.oracle(x, memory=least)["y"].values
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= least
    np.testing.assert_allclose(found, f.oracle(x)["y"].values, rtol=1e-9)
    with pytest.raises(tc.TooLargeError, match="choose smaller sizes"):
        memory.plan_within(specialization, least // 2)
