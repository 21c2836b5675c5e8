"""Reductions with an index: ``(m(i), k(i)) max=! (x(i,j), j)``, on every target, beside NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tc
from tc.grammar.parser import parse
from tc.grammar.printer import print_text
from tc.language.text.print_program import program_text
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.turns import every_row, one_in

OPERATORS = {"max=!": np.argmax, "min=!": np.argmin}
TYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8", "int64")
SHAPES = ((7, 13), (1, 1), (33, 130), (0, 4))
TARGETS = ("cpu", "emulator", "reference")


def with_ties(shape: tuple[int, ...], type: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(sum(shape))
    return random.integers(0, 6, shape).astype(numpy_dtype(tc.ScalarType(type)))


def run(f: tc.Comprehension, target: str, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    results = f.reference(*arrays) if target == "reference" else f(*arrays, target=target)
    assert isinstance(results, tuple)
    return tuple(np.asarray(result) for result in results)


def rows(operator: str, type: str) -> tc.Comprehension:
    return tc.define(f"def f({type}(N,M) x) -> (m, k) {{ (m(i), k(i)) {operator} (x(i,j), j) }}").single()


@one_in(3)
@pytest.mark.parametrize(
    ("operator", "type", "shape", "target"), every_row(24, product(OPERATORS, TYPES, SHAPES, TARGETS))
)
def test_ties_have_the_least_index(operator: str, type: str, shape: tuple[int, int], target: str) -> None:
    x = with_ties(shape, type)
    m, k = run(rows(operator, type), target, x)
    assert k.dtype == np.int32
    np.testing.assert_array_equal(k, OPERATORS[operator](x.astype(np.float64), axis=1))
    np.testing.assert_array_equal(m, x.max(axis=1) if operator == "max=!" else x.min(axis=1))


@pytest.mark.parametrize(("operator", "target"), list(product(OPERATORS, TARGETS)))
def test_the_first_nan_has_the_index(operator: str, target: str) -> None:
    x = with_ties((5, 37), "float32")
    x[1, 7] = x[1, 20] = x[3, 36] = np.nan
    x[2, 3] = np.inf
    x[4] = -np.inf
    m, k = run(rows(operator, "float32"), target, x)
    np.testing.assert_array_equal(k, OPERATORS[operator](x, axis=1))
    np.testing.assert_array_equal(m, x.max(axis=1) if operator == "max=!" else x.min(axis=1))


@pytest.mark.parametrize("target", TARGETS)
def test_columns_vectors_and_signed_zeros(target: str) -> None:
    columns = tc.define("def f(float(N,M) x) -> (m, k) { (m(j), k(j)) max=! (x(i,j), i) }").single()
    x = with_ties((29, 11), "float32")
    np.testing.assert_array_equal(run(columns, target, x)[1], x.argmax(axis=0))
    vector = tc.define("def f(float(N) x) -> (m, k) { (m, k) min=! (x(i), i) }").single()
    zeros = np.array([1.0, 0.0, -0.0, -0.0], np.float32)
    assert run(vector, target, zeros)[1] == 1 == zeros.argmin()


@pytest.mark.parametrize("target", TARGETS)
def test_indices_of_windows_masks_and_triangles(target: str) -> None:
    pool = tc.define(
        "def f(float(8,10) x) -> (m, k) {"
        " (m(p,q), k(p,q)) max=! (x(2*p+a,2*q+b), (2*p+a)*10 + 2*q+b) where a in 0:2, b in 0:2 }"
    ).single()
    x = with_ties((8, 10), "float32")
    m, k = run(pool, target, x)
    np.testing.assert_array_equal(x.reshape(-1)[k], m)
    windows = x.reshape(4, 2, 5, 2).transpose(0, 2, 1, 3).reshape(4, 5, 4)
    np.testing.assert_array_equal(m, windows.max(axis=2))
    triangle = tc.define("def f(float(N,M) x) -> (m, k) { (m(i), k(i)) max=! (x(i,j), j) where j in 0:i+1 }").single()
    m, k = run(triangle, target, x)
    np.testing.assert_array_equal(k, [x[i, : i + 1].argmax() for i in range(8)])
    masked = tc.define(
        "def f(float(N) x, int32(N) on) -> (m, k) { (m, k) max=! (on(i) > 0 ? x(i) : -1.0, i) }"
    ).single()
    on = (np.arange(10) % 3 == 1).astype(np.int32)
    assert run(masked, target, x[0], on)[1] == np.where(on > 0, x[0], -1).argmax()


@pytest.mark.parametrize("target", TARGETS)
def test_the_best_predecessors_of_a_hidden_markov_model(target: str) -> None:
    """They wait for no step and leave the block: what they read is stored, and copied, behind the steps."""
    viterbi = tc.define("""
        def f(float(S) start, float(S,S) A, float(T,S) E) -> (v, w, k) {
            v(0,s) = start(s)
            for t in 0:T {
                (w(t,s), k(t,s)) max=! (v(t,r) + A(r,s), r)
                v(t+1,s) = w(t,s) + E(t,s)
            }
        }
    """).single()
    start, a, e = with_ties((17,), "float32"), with_ties((17, 17), "float32"), with_ties((9, 17), "float32")
    v, w, k = run(viterbi, target, start, a, e)
    states = [start]
    for t, emission in enumerate(e):
        reached = states[-1][:, None] + a
        np.testing.assert_array_equal(k[t], reached.argmax(axis=0))
        np.testing.assert_array_equal(w[t], reached.max(axis=0))
        states.append(w[t] + emission)
    np.testing.assert_array_equal(v, states)


def test_the_index_is_a_value_like_others() -> None:
    text = """
        def best(float(N,M) s, float(M,D) v) -> (y) { (m(i), k(i)) max=! (s(i,j), j) y(i,d) = v(k(i), d) }
        def twice(float(N,M) s, float(M,D) v) -> (z) { y = best(s, v) z(i,d) = 2.0 * y(i,d) }
    """
    s, v = with_ties((6, 9), "float32"), with_ties((9, 4), "float32")
    twice = tc.define(text).twice
    for target in ("cpu", "emulator"):
        np.testing.assert_array_equal(twice(s, v, target=target), 2 * v[s.argmax(axis=1)])


@pytest.mark.parametrize("type", ["int64", "uint8", "int32"])
def test_a_declared_result_gives_the_type_of_the_index(type: str) -> None:
    f = tc.define(f"def f(float(N,M) x) -> (m, {type}(N) k) {{ (m(i), k(i)) max=! (x(i,j), j) }}").single()
    x = with_ties((3, 200), "float32")
    _, k = run(f, "cpu", x)
    assert k.dtype == np.dtype(type)
    np.testing.assert_array_equal(k, x.argmax(axis=1))
    if type == "uint8":
        with pytest.raises(tc.ArgumentError, match=r"`M <= 256` does not hold for M = 257: the indices in k are uint8"):
            f(with_ties((3, 257), "float32"))


def test_more_indices_than_int32_has_are_refused() -> None:
    long = np.broadcast_to(np.float32(1), (2**31 + 1,))
    f = tc.define("def f(float(N) x) -> (m, k) { (m, k) max=! (x(i), i) }").single()
    with pytest.raises(tc.ArgumentError, match="the indices in k are int32; declare it int64 among the results"):
        f(long)


def test_an_empty_reduction_has_no_index() -> None:
    f = rows("max=!", "float32")
    for target in TARGETS:
        with pytest.raises(tc.ArgumentError, match="without a term, an element of m has no index"):
            run(f, target, np.zeros((3, 0), np.float32))
        assert [r.shape for r in run(f, target, np.zeros((0, 0), np.float32))] == [(0,), (0,)]
    triangle = tc.define(
        "def f(float(N,M) x) -> (m, k) { (m(i), k(i)) max=! (x(i,j), j) where i in 0:N, j in 0:i }"
    ).single()
    with pytest.raises(tc.ArgumentError, match="`N == 0` does not hold for N = 3: without a term"):
        triangle(np.zeros((3, 3), np.float32))


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("(m(i), k(i)) max= (x(i,j), j)", "`max=` gives no index: only `min=!` and `max=!` do", "write `(m(i), k(i))"),
        ("(m(i), k(i)) += (x(i,j), j)", "`+=` gives no index", "write `(m(i), k(i))"),
        ("(m(i), k(i)) max=! (x(i,j), j, i)", "has a value and an index, this has 3", "write `(m(i), k(i))"),
        ("(m(i)) max=! (x(i,j), j)", "has a value and an index, this has 1", "write `(m(i), k(i))"),
        ("(m(i), k(j)) max=! (x(i,j), j)", "`m` and `k` have different subscripts", "with the same subscripts"),
        ("(m(i), m(i)) max=! (x(i,j), j)", "`m` cannot hold both the values and their indices", "rename one"),
        ("(m(i), k(i)) max=! (x(i,j), k(i))", "this reduction reads `k`, which it writes", "write to another name"),
        ("(m(i), k(i)) max=! (x(i,j), x(i,j))", "the index of a reduction consists of iterators", "where the index is"),
        ("(m(i), k(i)) max=! (x(i,j)*x(i,j)+1, j)", "this value is computed twice", "write it to a tensor of its own"),
        ("(m(i), k(i)) max=! (exp(x(i,j)), j)", "this value is computed twice", "write it to a tensor of its own"),
        (
            "(m(i), k(i)) max=! (x(i,j), i*M + j*N)",
            "for which sizes the indices in `k` fit int32",
            "declare it as `int64(...)",
        ),
        ("(m(i), k) = g(x)", "the results of a call are names, without subscripts", "write `m`"),
    ],
)
def test_what_is_refused(statement: str, message: str, hint: str) -> None:
    with pytest.raises(tc.TCError) as raised:
        tc.define(f"def f(float(N,M) x) -> (m, k) {{ {statement} }}")
    assert message in str(raised.value)
    assert hint in str(raised.value)


@pytest.mark.parametrize("value", ["x(i,j) * y(i,j)", "-x(i,j)", "abs(x(i,j) - y(i,j))", "floor(x(i,j) / y(i,j))"])
def test_values_that_every_loop_rounds_alike(value: str) -> None:
    f = tc.define(f"def f(float(N,M) x, float(N,M) y) -> (m, k) {{ (m(i), k(i)) max=! ({value}, j) }}").single()
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((9, 67)).astype(np.float32) for _ in range(2))
    computed = {"x(i,j) * y(i,j)": x * y, "-x(i,j)": -x, "abs(x(i,j) - y(i,j))": abs(x - y)}
    expected = computed.get(value, np.floor(x / y))
    for target in ("cpu", "emulator"):
        m, k = run(f, target, x, y)
        np.testing.assert_array_equal(k, expected.argmax(axis=1))
        np.testing.assert_array_equal(m, expected.max(axis=1))


def test_texts_and_programs_print_and_parse_back() -> None:
    text = "def f(float(N,M) x) -> (m, k) { z(i) = x(i,0); (m(i), k(i)) max=! (x(i,j) * z(i), j) where j in 1:M }"
    parsed = parse(text)
    assert parse(print_text(parsed)) == parsed
    assert "(m(i), k(i)) max=! (x(i, j) * z(i), j) where j in 1:M" in print_text(parsed)
    program = tc.define(text).single().program
    assert tc.define(program_text(program)).single().program == program
