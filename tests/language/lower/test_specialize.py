"""Specialization: arguments checked, sizes put in, accesses and coverage proven with witnesses."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.errors import ArgumentError, RangeError
from tc.base.types import ScalarType
from tc.language.lower.specialize import output_shapes, specialize, structural_scalars
from tc.language.program.program import Literal, ScalarReference, SizeReference, walk
from tc.language.program.specialization import ArraySpec, Layout, Signature
from tests.language.support import array, body, definition, lower, ranges, shape, signature, value

MM = lower("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }")
CONV = lower("def conv(int s, float(H) I, float(K) W, float a) -> (O) { O(h) +=! a * I(s*h + k) * W(k) }")


def test_sizes_become_literals() -> None:
    result = specialize(MM, signature(A=array(7, 13), B=array(13, 129)))
    assert ranges(result.program.statements[0]) == {"m": "0:7", "n": "0:129", "k": "0:13"}
    assert result.program.sizes == ()
    assert result.layouts == {
        "A": Layout(ScalarType.FLOAT32, (7, 13), (13, 1)),
        "B": Layout(ScalarType.FLOAT32, (13, 129), (129, 1)),
        "C": Layout(ScalarType.FLOAT32, (7, 129), (129, 1)),
    }
    assert shape(result.program, "C") == ["7", "129"]


def test_strides_come_from_the_signature() -> None:
    given = Signature(
        (("A", array(7, 13, strides=(1, 7))), ("B", array(13, 5))), results=(("C", array(7, 5, strides=(1, -7))),)
    )
    layouts = specialize(MM, given).layouts
    assert layouts["A"].strides == (1, 7)
    assert layouts["C"].strides == (1, -7)


def test_structural_scalars_become_literals_and_others_stay() -> None:
    assert structural_scalars(CONV) == ("s",)
    result = specialize(CONV, signature({"s": 2}, I=array(9), W=array(3)))
    statement = result.program.statements[0]
    assert value(statement) == "a * I(2 * h + k) * W(k)"
    assert ranges(statement) == {"h": "0:4", "k": "0:3"}
    leaves = {leaf for e in (statement.value, *statement.subscripts) for leaf in walk(e)}
    assert ScalarReference("a", ScalarType.FLOAT32) in leaves
    assert not any(isinstance(leaf, SizeReference) for leaf in leaves)
    one = specialize(CONV, signature({"s": 1}, I=array(9), W=array(3)))
    assert value(one.program.statements[0]) == "a * I(h + k) * W(k)"


def test_structural_scalars_of_guards_count() -> None:
    program = lower("def f(int p, int q, float(N) x) -> (y) { y(i) = i >= p ? q * x(i-p) : 0 where i in 0:N }")
    assert structural_scalars(program) == ("p",)
    specialize(program, signature({"p": 3}, x=array(7)))


def test_sizes_in_values_become_literals_of_their_type() -> None:
    program = body("O(i) = A(i,0) / N", "float(M,N) A")
    result = specialize(program, signature(A=array(2, 5)))
    assert Literal(5.0, ScalarType.FLOAT32) in walk(result.program.statements[0].value)


def test_empty_ranges_give_empty_shapes() -> None:
    program = lower("def conv(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i+x) }")
    assert specialize(program, signature(I=array(2), K=array(5))).layouts["O"].shape == (0,)
    assert specialize(program, signature(I=array(2), K=array(0))).layouts["O"].shape == (3,)
    assert specialize(MM, signature(A=array(0, 3), B=array(3, 0))).layouts["C"].shape == (0, 0)
    assert specialize(MM, signature(A=array(2, 0), B=array(0, 3))).layouts["C"].shape == (2, 3)


@pytest.mark.parametrize(("divisor", "shape"), [(0, (1,)), (-2, (1,)), (1, (5,)), (2, (3,)), (7, (1,))])
def test_the_extent_of_quotients_is_right_for_any_divisor(divisor: int, shape: tuple[int, ...]) -> None:
    """Quotients by 0 are 0, so that there is one; those of small numbers by negative ones are 0, too."""
    program = lower("def f(float(N) x, int s) -> (y) { y(i / s) +=! x(i) }")
    extent = 2 if divisor < 0 else 5
    assert output_shapes(program, signature({"s": divisor}, x=array(extent))) == {"y": shape}


def test_output_shapes_prove_nothing() -> None:
    program = lower("def f(float(I) B, float(L) C, float(J) D) -> (A) { A(i,j) = B(i) * C(i+j) * D(j) }")
    assert output_shapes(program, signature(B=array(7), C=array(1), D=array(3))) == {"A": (7, 3)}
    assert output_shapes(CONV, signature({"s": 2}, I=array(9), W=array(3))) == {"O": (4,)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (signature(A=array(2, 3)), "mm: argument `B` is missing"),
        (
            signature(A=array(2, 3), B=array(3, 4, dtype=ScalarType.FLOAT64)),
            "mm: argument `B` is declared float32, got float64",
        ),
        (
            signature(A=array(2, 3, 1), B=array(3, 4)),
            "mm: argument `A` is declared (M, K), with 2 dimensions, got shape (2, 3, 1)",
        ),
        (signature(A=array(2, 3), B=array(4, 5)), "mm: the size `K` is 3 in `A.1` and 4 in `B.0`"),
        (
            Signature((("A", array(2, 3)), ("B", array(3, 4))), results=(("C", array(2, 5)),)),
            "mm: result `C` has shape (2, 4), got (2, 5)",
        ),
        (
            Signature((("A", array(2, 3)), ("B", array(3, 4))), results=(("C", array(2, 4, dtype=ScalarType.INT8)),)),
            "mm: result `C` is float32, got int8",
        ),
        (
            signature(A=array(2**40, 1), B=array(1, 2**40)),
            (
                "mm: `C` with shape (1099511627776, 1099511627776) spans more than 9223372036854775807 bytes, "
                "beyond 64-bit indexing"
            ),
        ),
    ],
)
def test_arguments_that_do_not_fit(given: Signature, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        specialize(MM, given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("scalars", "message"),
    [
        ({}, "conv: the value of `s` is missing: it decides shapes or subscripts"),
        ({"s": 2**31}, "conv: argument `s` is int32, 2147483648 does not fit"),
        (
            {"s": 0},
            "conv: `s >= 1` does not hold for s = 0: the factor of `h` in a subscript must be positive",
        ),
    ],
)
def test_scalars_that_do_not_fit(scalars: dict[str, int], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        specialize(CONV, signature(scalars, I=array(9), W=array(3)))
    assert str(caught.value) == message


def test_shapes_may_depend_on_scalars_of_any_exact_type() -> None:
    program = lower(
        "def f(bool wide, uint8 n, int8 c, float(N) x) -> (y) {"
        " y(i) = x(0) where i in 0:(wide ? int32(n * 2 + 1) : abs(c) + min(N, n)) }"
    )
    assert structural_scalars(program) == ("wide", "n", "c")
    given = {"n": 200, "c": -100}
    assert output_shapes(program, signature({"wide": 1, **given}, x=array(5))) == {"y": (145,)}
    assert output_shapes(program, signature({"wide": 0, **given}, x=array(5))) == {"y": (105,)}


def test_extents_beyond_64_bits_are_refused_before_they_wrap() -> None:
    program = lower("def f(float(M,N) x) -> (y) { y(i) = x(0,0) where i in 0:M*N }")
    with pytest.raises(ArgumentError) as caught:
        specialize(program, signature(x=array(2**32, 2**32, strides=(0, 0))))
    assert str(caught.value) == (
        "f: `x` with shape (4294967296, 4294967296) spans more than 9223372036854775807 bytes, beyond 64-bit indexing"
    )
    program = lower("def f(float(M) x, float(N) z) -> (y) { y(i) = x(0) + z(0) where i in 0:M*N }")
    with pytest.raises(ArgumentError) as caught:
        specialize(program, signature(x=array(2**32, strides=(0,)), z=array(2**32, strides=(0,))))
    assert str(caught.value) == (
        "f: dimension 0 of `y` would have 18446744073709551616 elements, beyond 64-bit indexing"
    )


def test_declared_numbers_must_agree() -> None:
    program = lower("def f(float(3) x) -> (y) { y(i) = x(i) }")
    with pytest.raises(ArgumentError, match=r"f: argument `x` is declared with 3 as `x.0`, got shape \(4,\)"):
        specialize(program, signature(x=array(4)))


def test_requirements_of_a_where_must_hold() -> None:
    program = lower("def f(float(N) x) -> (y) { y(i) = x(i) where N >= 3, N % 2 == 0 }")
    specialize(program, signature(x=array(4)))
    with pytest.raises(ArgumentError) as caught:
        specialize(program, signature(x=array(5)))
    assert str(caught.value) == ("f: `N % 2 == 0` does not hold for N = 5: the statement asks for it in its `where`")


# --- accesses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "arrays", "message"),
    [
        (
            "def f(float(I) B, float(L) C, float(J) D) -> (A) { A(i,j) = B(i) * C(i+j) * D(j) }",
            {"B": 2, "C": 3, "D": 3},
            "`C(i + j)` leaves `C` at i = 1, j = 2: dimension 0 has 3 elements",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = x(i-1) where i in 0:N/2 }",
            {"x": 7},
            "`x(i - 1)` leaves `x` at i = 0: dimension 0 has 7 elements",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:N/2+1, exists x(2*i) }",
            {"x": 2},
            "`x(2 * i)` leaves `x` at i = 1: dimension 0 has 2 elements",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = i >= 1 ? x(i-2) : 0 where i in 0:N }",
            {"x": 3},
            "`x(i - 2)` leaves `x` at i = 1: dimension 0 has 3 elements",
        ),
        (
            "def f(float(N) x, int(N) k) -> (y) { y(i) = x(k(i+1)) where i in 0:N/2 + 1 }",
            {"x": 2, "k": 2},
            "`k(i + 1)` leaves `k` at i = 1: dimension 0 has 2 elements",
        ),
        (
            "def f(float(N) x) -> (y) { y(k % 4) +=! x(k) y(i + 1) += 1 where i in 0:y.0 }",
            {"x": 9},
            "`y(i + 1)` leaves `y` at i = 3: dimension 0 has 4 elements",
        ),
        ("def f(float(N) x) -> (y) { y = x(5) }", {"x": 3}, "`x(5)` leaves `x`: dimension 0 has 3 elements"),
        (
            "def f(float(N) x, float(M) z) -> (y) { y(i) = x(i) y(i) += z(i) }",
            {"x": 3, "z": 4},
            "`y(3)` is never written",
        ),
        (
            "def f(float(N) x, float(M) z) -> (y) { y(i) = x(i) y(i+2) = z(i) }",
            {"x": 3, "z": 4},
            "`y(2)` is written twice: here and by an earlier statement",
        ),
        (
            "def f(int s, float(N,N) x) -> (y) { y(s*i + j) = x(i,j) where i in 0:N, j in 0:2 }",
            {"x": (3, 3)},
            "`y(1)` is written by more than one instance of the statement",
        ),
        (
            "def f(float(N) x, float(M) y) -> (z) { z(i) = x(i) where i in N-M:N  z(i) = y(i) where i in 0:N-M }",
            {"x": 2, "y": 4},
            "the range of `i` begins at -2; iterators are never negative",
        ),
    ],
)
def test_what_leaves_or_misses_is_shown_with_a_witness(
    text: str, arrays: dict[str, int | tuple[int, ...]], message: str
) -> None:
    program = lower(text)
    specs = {
        name: ArraySpec(
            extents if isinstance(extents, tuple) else (extents,),
            program.tensor(name).type,
        )
        for name, extents in arrays.items()
    }
    with pytest.raises(RangeError) as caught:
        specialize(program, Signature(tuple(specs.items()), scalars=(("s", 1),)))
    assert caught.value.diagnostics[0].message == message
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert text[span.start : span.end] in text


@pytest.mark.parametrize(
    ("statements", "parameters", "arrays"),
    [
        ("O(i,j) = i + j < M ? A(i+j, j) : 0 where i in 0:M, j in 0:N", "float(M,N) A", {"A": (5, 3)}),
        ("O(i) +=! A(i-k, k) where i in 0:M, k in 0:N, k <= i", "float(M,N) A", {"A": (5, 9)}),
        ("O(i) +=! A(i,j) where j in 0:i+1, j < N", "float(M,N) A", {"A": (5, 3)}),
        ("O(i) = A(i % M, (i / M) % N) where i in 0:2*M*N", "float(M,N) A", {"A": (5, 3)}),
        ("O(i,j) = A(min(i+1, M-1), max(j-1, 0)) where i in 0:M, j in 0:N", "float(M,N) A", {"A": (5, 3)}),
        ("O(i,j) = (i > 0 && j < N-1) ? A(i-1,j+1) : A(i,j) where i in 0:M, j in 0:N", "float(M,N) A", {"A": (5, 3)}),
        ("O(i) = !(i < 2 || A(i-2,0) < 0) ? A(i-2,1) : 0 where i in 0:M+2", "float(M,N) A", {"A": (5, 3)}),
        ("O(i) = A(i,0) where i in 0:M-7", "float(M,N) A", {"A": (5, 3)}),
    ],
)
def test_guarded_accesses_are_proven(statements: str, parameters: str, arrays: dict[str, tuple[int, ...]]) -> None:
    program = lower(definition(statements, parameters))
    specialize(program, Signature(tuple((name, array(*extents)) for name, extents in arrays.items())))


def test_all_complaints_of_a_specialization_come_together() -> None:
    program = lower("def f(float(N) x) -> (y, z) { y(i) = x(2*i) where i in 0:N/2+1 z(i) = x(i+1) where i in 0:N/2+1 }")
    with pytest.raises(RangeError) as caught:
        specialize(program, signature(x=array(2)))
    assert [diagnostic.message for diagnostic in caught.value.diagnostics] == [
        "`x(2 * i)` leaves `x` at i = 1: dimension 0 has 2 elements",
        "`x(i + 1)` leaves `x` at i = 1: dimension 0 has 2 elements",
    ]


def test_writes_that_leave_are_left_out_as_the_hint_says() -> None:
    text = "def f(float(N) x) -> (y) { y(k % 4) +=! x(k) y(i + 1) += 1 where i in 0:y.0 }"
    with pytest.raises(RangeError, match=r"add `i \+ 1 < y\.0` to the `where`"):
        specialize(lower(text), signature(x=array(9)))
    specialize(lower(text.replace("0:y.0", "0:y.0, i + 1 < y.0")), signature(x=array(9)))


@pytest.mark.parametrize("condition", ["N == 1", "!(N > 1)", "N % 1 == 0"])
def test_a_change_in_place_stays_one_where_its_condition_is_known(condition: str) -> None:
    f = tc.define(f"def f(float(N) x) -> (y) {{ y(i) = x(i)  y(i) = {condition} ? 2.0 : y(i) }}")
    assert np.asarray(f(np.ones(1, np.float32))).tolist() == [2.0]
