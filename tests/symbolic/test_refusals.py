"""What cannot stay open says why."""

from __future__ import annotations

import pytest

import tc
from tc.language.program.specialization import ArraySpec
from tests.symbolic.programs import FLOAT, MM

REFUSED: dict[str, tuple[str, tuple[object, ...], type[Exception], str]] = {
    "another dimension": (
        MM,
        ((7, tc.dynamic(13)), (13, 5)),
        tc.ArgumentError,
        "argument A of mm: dimension 1 cannot stay open, because strides would depend on it; only a first dimension",
    ),
    "a size that is another dimension elsewhere": (
        MM,
        ((7, 13), (tc.dynamic(13), 5)),
        tc.ArgumentError,
        "mm: the size `K` cannot stay open, because the strides of `A` depend on its dimension 1; open only sizes of",
    ),
    "an extent of a result": (
        "def f(float(N) a) -> (B) { B(i,j) = a(i) * a(j) }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the strides of `B` depend on its dimension 1",
    ),
    "a number": (
        "def f(float(4) a) -> (b) { b(i) = a(i) }",
        ((tc.dynamic(4),),),
        tc.ArgumentError,
        "argument a of f: its first dimension is declared as a number; it cannot be tc.dynamic",
    ),
    "different sizes": (
        "def f(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }",
        ((tc.dynamic(9),), (8,)),
        tc.ArgumentError,
        "f: the size `N` is 9 in `a.0` and 8 in `b.0`",
    ),
    "reversed rows": (
        "def f(float(N) a) -> (c) { c(i) = a(i) }",
        (ArraySpec((tc.dynamic(9),), FLOAT, (-1,)),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the rows of `a` are reversed, and where they begin depends on it",
    ),
    "gathers along it": (
        "def f(float(N) a, int(M) I) -> (c) { c(i) = a(I(i)) }",
        ((tc.dynamic(9),), (4,)),
        tc.ArgumentError,
        "f: `a` is gathered from along a dimension that would stay open; pass a number for it",
    ),
    "extents that are products": (
        "def f(float(N) a) -> (c) { c(i) = a(0) where i in 0:N*N }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "`c` has an extent of N * N, which is not quasi-affine in it: sums, multiples, quotients and remainders by",
    ),
    "extents with conditions on many multiples": (
        "def f(float(N) a) -> (c) { c(i%4) +=! a(i) where 7 * i % N < 3 }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "`c` has an extent c.0 which, by the subscripts, ranges and conditions that give it, is not quasi-affine in it",
    ),
    "extents of other dimensions": (
        "def f(float(N) a) -> (c) { c(i/2, i%2) +=! a(i) }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the strides of `c` depend on its dimension 1, whose extent depends",
    ),
    "subscripts that are below 0 for some sizes": (
        "def f(float(N) a) -> (c) { c((i+N-3)%N) = a(i) }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`c` would be written at subscript -1, below 0, at i = 0, N = 2(?s:.*)shift the subscript `\(i \+ N - 3\) %",
    ),
    "elements that are missing for some sizes": (
        "def f(float(N) a) -> (c) { c(abs(i-2)) +=! a(i) }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`c\(0\)` is never written for N = 1",
    ),
    "remainders with many quotients": (
        "def f(float(N) a) -> (c) { c(i) = a((7*i)%N) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"which make a kernel for each size; remainders and quotients by an open size have quotients of 4 at most, as",
    ),
    "accesses that leave small arrays": (
        "def f(float(N) a) -> (c) { c(i) = a(i) + a(2) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`a\(2\)` leaves `a` at i = 0, N = 1: dimension 0 has N elements",
    ),
    "subscripts that are not affine": (
        "def f(float(N) a) -> (c) { c(i) = a(N * i / N) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"are not affine while sizes stay open(?s:.*)pass numbers in place of tc.dynamic",
    ),
    "ranges that begin below 0": (
        "def f(float(N) a) -> (c) { c() +=! a(i) where i in N-2:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        "the range of `i` begins below 0 for some sizes; iterators are never negative",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_stay_open_says_why(what: str) -> None:
    text, arguments, error, message = REFUSED[what]
    (comprehension,) = tc.define(text).values()
    with pytest.raises(error, match=message if error is tc.RangeError else None) as caught:
        comprehension.compile(*arguments)
    if error is tc.ArgumentError:
        assert message in str(caught.value)


@pytest.mark.parametrize("most", [0, -3, True, 2.5, "9", None])
def test_a_bound_is_a_positive_integer(most: object) -> None:
    with pytest.raises(tc.ArgumentError, match=r"takes the greatest size that is to be served, such as 512, got"):
        tc.dynamic(most)  # type: ignore[arg-type]
    assert repr(tc.dynamic(512)) == "tc.dynamic(512)"
