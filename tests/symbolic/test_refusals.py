"""What cannot stay open says why."""

from __future__ import annotations

import pytest

import tc
from tc.language.program.specialization import ArraySpec
from tests.symbolic.programs import FLOAT

REFUSED: dict[str, tuple[str, tuple[object, ...], type[Exception], str]] = {
    "a number": (
        "def f(float(N,4) a) -> (b) { b(n,i) = a(n,i) }",
        ((3, tc.dynamic(4)),),
        tc.ArgumentError,
        "argument a of f: dimension 1 is declared as a number; it cannot be tc.dynamic",
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
        "f: the size `N` cannot stay open, because dimension 0 of `a` is reversed, and where it begins depends on the",
    ),
    "reversed columns": (
        "def f(float(M,N) a) -> (c) { c(i,j) = a(i,j) }",
        (ArraySpec((3, tc.dynamic(9)), FLOAT, (9, -1)),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because dimension 1 of `a` is reversed, and where it begins depends on the",
    ),
    "gathers where there may be nothing": (
        "def f(float(N) a, int(M) I) -> (b, c) { b(i) = a(i+2)  c(i) = b(I(i)) }",
        ((tc.dynamic(9),), (4,)),
        tc.ArgumentError,
        "f: `b` is gathered from along a dimension that may have no elements for some sizes: N - 2; pass",
    ),
    "scatters where there may be nothing": (
        "def f(float(N) a, int(M) I) -> (b) { b(i) = a(i+1)  b(I(j)) += 1 }",
        ((tc.dynamic(9),), (4,)),
        tc.ArgumentError,
        "f: `b` is scattered to along a dimension that may have no elements for some sizes: N - 1; pass numbers, which",
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
    "extents of other dimensions that are products": (
        "def f(float(N) a) -> (c) { c(j,i) = a(0) where j in 0:2, i in 0:N*N }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "`c` has an extent of N * N, which is not quasi-affine in it: sums, multiples, quotients and remainders by",
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
