"""What a refused range is told to write: the text with the hint put in runs, and means padding with zeros."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import tc

Index: TypeAlias = Callable[..., int]


def _hints(text: str, *arguments: object) -> list[str]:
    with pytest.raises(tc.RangeError) as caught:
        tc.define(text).single().specialize(*arguments)
    hints = [diagnostic.hint for diagnostic in caught.value.diagnostics]
    return [re.findall(r"`([^`]*)`", hint)[0] for hint in hints if hint is not None]


def _remarks(text: str, *arguments: object) -> list[str]:
    """What stands in quotes in the only hint, but for the last, which is replaced."""
    with pytest.raises(tc.RangeError) as caught:
        tc.define(text).single().specialize(*arguments)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.hint is not None
    return re.findall(r"`([^`]*)`", diagnostic.hint)[:-1]


def _with_where(statement: str, hint: str) -> str:
    """The statement with the clauses of a hint, behind those that it has."""
    clauses = hint.removeprefix("where ")
    return f"{statement}, {clauses}" if " where " in statement else f"{statement} where {clauses}"


def _draw(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def _reference(text: str, *arguments: object) -> list[npt.NDArray[np.float64]]:
    """What the oracle gives for each result."""
    found = tc.define(text).single().reference(*arguments)
    return [np.asarray(values, np.float64) for values in (found if isinstance(found, tuple) else (found,))]


def test_gradients_of_a_convolution() -> None:
    head = "def grad(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(N,M,OH,OW) d_O) -> (d_I, d_W1) "
    first = "d_I(n,c,h,w) +=! d_O(n,m,h-kh,w-kw) * W1(m,c,kh,kw)"
    second = "d_W1(m,c,kh,kw) +=! d_O(n,m,h-kh,w-kw) * I(n,c,h,w)"
    ones = _draw(2, 3, 5, 6), _draw(4, 3, 1, 1), _draw(2, 4, 5, 6)
    data, weights, gradient = _draw(2, 3, 7, 7), _draw(4, 3, 3, 2), _draw(2, 4, 5, 6)
    text = f"{head} {{ {first} {second} }}"
    inner = _reference(text, *ones)
    np.testing.assert_allclose(inner[0], np.einsum("nmhw,mc->nchw", ones[2], ones[1][:, :, 0, 0]), rtol=1e-4, atol=1e-4)
    hints = _hints(text, data, weights, gradient)
    assert hints == [
        "where h in 0:OH + KH - 1, w in 0:OW + KW - 1, h - kh in 0:OH, w - kw in 0:OW",
        "where kh in 0:max(1, H - OH + 1), kw in 0:max(1, W - OW + 1), h - kh in 0:OH, w - kw in 0:OW",
    ]
    mended = f"{head} {{ {_with_where(first, hints[0])} {_with_where(second, hints[1])} }}"
    d_data, d_weights = _reference(mended, data, weights, gradient)
    expected = np.zeros((2, 3, 7, 7)), np.zeros((4, 3, 3, 2))
    for kh in range(3):
        for kw in range(2):
            window = np.s_[:, :, kh : kh + 5, kw : kw + 6]
            expected[0][window] += np.einsum("nmhw,mc->nchw", gradient, weights[:, :, kh, kw])
            expected[1][:, :, kh, kw] = np.einsum("nmhw,nchw->mc", gradient, data[window])
    np.testing.assert_allclose(d_data, expected[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(d_weights, expected[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("y(i) +=! x(i-k) * w(k)", lambda i, k: i - k),
        ("y(i) +=! x(i-k-1) * w(k)", lambda i, k: i - k - 1),
        ("y(i) +=! x(i-2*k) * w(k)", lambda i, k: i - 2 * k),
        ("y(i) +=! x(2*i-k) * w(k)", lambda i, k: 2 * i - k),
        ("y(i) +=! x(i-k) * w(k) where i in 0:N, k in 0:K", lambda i, k: i - k),
        ("y(i) +=! x(i+k-1) * w(k)", lambda i, k: i + k - 1),
        ("y(i) max=! x(i-k/2) * w(k)", lambda i, k: i - k // 2),
        ("y(i) +=! x(i+k) * w(k) where i in 0:N, k in 0:K", lambda i, k: i + k),
    ],
)
def test_reductions_leave_out_what_lies_outside(statement: str, index: Index) -> None:
    x, w = _draw(7), _draw(3)
    head = "def f(float(N) x, float(K) w) -> (y)"
    (hint,) = _hints(f"{head} {{ {statement} }}", x, w)
    (found,) = _reference(f"{head} {{ {_with_where(statement, hint)} }}", x, w)
    is_sum = "+=!" in statement
    assert len(found) > 2
    for i, value in enumerate(found):
        terms = [x[index(i, k)] * w[k] for k in range(3) if 0 <= index(i, k) < 7]
        expected = sum(terms) if is_sum else max(terms, default=-np.inf)
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("statement", "read", "index"),
    [
        ("y(i) = x(i-1)", "x(i-1)", lambda i: i - 1),
        ("y(i) +=! x(i-1)", "x(i-1)", lambda i: i - 1),
        ("y(i) max=! x(i-1)", "x(i-1)", lambda i: i - 1),
        ("y(i) = x(2*i-5)", "x(2*i-5)", lambda i: 2 * i - 5),
        ("y(i) = x(i) where i in 0:N+2", "x(i)", lambda i: i),
        ("y(i) = x(i-K) * 2", "x(i-K)", lambda i: i - 3),
        ("y(i) = x(i/2 - i%2) where i in 0:N", "x(i/2 - i%2)", lambda i: i // 2 - i % 2),
    ],
)
def test_assignments_guard_their_reads(statement: str, read: str, index: Index) -> None:
    x, w = _draw(7), _draw(3)
    head = "def f(float(N) x, float(K) w) -> (y)"
    (hint,) = _hints(f"{head} {{ {statement} }}", x, w)
    (found,) = _reference(f"{head} {{ {statement.replace(read, hint)} }}", x, w)
    factor = 2 if "* 2" in statement else 1
    expected = [x[index(i)] * factor if 0 <= index(i) < 7 else 0 for i in range(len(found))]
    assert len(found) >= 6
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("operator", "neutral"), [("+=", 0), ("*=", 1)])
def test_reductions_into_some_elements_begin_with_all_of_them(operator: str, neutral: int) -> None:
    x, head = _draw(5), "def f(float(N) x) -> (y)"
    (hint, written, instead) = _remarks(f"{head} {{ y(2*i, i%2) {operator}! x(i) }}", x)
    assert (hint, written, instead) == ("y", f"y(i0, i1) = {neutral} where i0 in 0:2 * N - 1, i1 in 0:2", operator)
    (found,) = _reference(f"{head} {{ {written} y(2*i, i%2) {operator} x(i) }}", x)
    expected = np.full((9, 2), neutral, np.float64)
    expected[2 * np.arange(5), np.arange(5) % 2] = x
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_exists_asks_for_has_no_guard() -> None:
    with pytest.raises(
        tc.RangeError, match="hint: `exists` asks for it: pass a larger tensor, or leave that clause out"
    ):
        tc.define("def f(float(N) x) -> (y) { y(i) = x(i) where exists x(i+3), i in 0:N }").f.specialize((4,))


def test_products_are_guarded_with_ones() -> None:
    assert _hints("def f(float(N) x) -> (y) { y(i) *=! x(i-1) }", _draw(7)) == ["(i - 1 >= 0 ? x(i - 1) : 1)"]


def test_one_definition_leaves_the_others_of_its_text_alone() -> None:
    definitions = tc.define(
        "def sum(float(N) x) -> (y) { y +=! x(i) }def grad(float(N) x, float(K) w) -> (y) { y(i) +=! x(i-k) * w(k) }"
    )
    assert definitions.sum(np.ones(5, np.float32)) == 5
    np.testing.assert_array_equal(definitions.grad(np.ones(4, np.float32), np.full(1, 2.0, np.float32)), [2, 2, 2, 2])
    with pytest.raises(tc.RangeError, match=r"`x\(i - k\)` leaves `x` at i = 0, k = 1"):
        definitions.grad(np.ones(4, np.float32), np.ones(2, np.float32))


@pytest.mark.parametrize("read", ["x((i-5)%5)", "x(2 + (i-5)%5)", "x((1-i)%N)"])
def test_remainders_of_negative_numbers(read: str) -> None:
    """Either is followed: the guard, which pads with zeros, or the remainder that is never negative."""
    text = f"def f(float(N) x) -> (y) {{ y(i) = {read} where i in 0:7 }}"
    x = np.arange(7, dtype=np.float32) + 1
    with pytest.raises(tc.RangeError) as caught:
        tc.define(text.replace("x(2", "x(-2")).single().specialize(x)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.hint is not None
    first, negative, dividend, mended = re.findall(r"`([^`]*)`", diagnostic.hint)
    assert diagnostic.hint == (
        f"guard the read: `{first}`; `{negative}` is negative where `{dividend}` is, as in C, and `{mended}` is not"
    )
    assert negative.replace(" ", "") == re.findall(r"\(.-.\)%.", read)[0]
    (wrapped,) = _reference(f"def f(float(N) x) -> (y) {{ y(i) = x({mended}) where i in 0:7 }}", x)
    values = {"i": np.arange(7), "N": 7}
    part = re.findall(r"\((.-.)\)%(.)", read)[0]
    np.testing.assert_array_equal(wrapped, x[eval(part[0], values) % eval(part[1], values)])


def test_left_hand_sides_with_negative_remainders() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y((i-3)%4) +=! x(i) }").f
    with pytest.raises(tc.RangeError) as caught:
        f.specialize((9,))
    assert caught.value.diagnostics[0].hint == (
        "shift the subscript `(i - 3) % 4` to start at 0; `(i - 3) % 4` is negative where `i - 3` is, as in C, and "
        "`((i - 3) % 4 + 4) % 4` is not"
    )
