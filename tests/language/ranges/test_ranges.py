"""Range inference: the worked examples of the paper and the rules behind them."""

from __future__ import annotations

import pytest

from tc.base.errors import RangeError, SemanticError
from tc.language.text.expression_text import expression_text
from tests.language.support import body, complaints, definition, lower, places, ranges, shape


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(float(I) B) -> (A) { A(i) = B(2*i) }", {"i": "0:(I + 1) / 2"}),
        ("def f(float(I) B) -> (A) { A(i) = B(2*i) + B(2*i+1) }", {"i": "0:I / 2"}),
        ("def f(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i+x) }", {"i": "0:M - N + 1", "x": "0:N"}),
        (
            "def f(float(I) B, float(L) C, float(J) D) -> (A) { A(i,j) = B(i) * C(i+j) * D(j) }",
            {"i": "0:I", "j": "0:J"},
        ),
        ("def f(float(M) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }", {"i": "0:min(M, N)"}),
        ("def f(float(M) A, float(M) B) -> (C) { C(i) = A(i) * B(i) }", {"i": "0:M"}),
        ("def f(float(N) x) -> (y) { y(i) = i >= 1 ? x(i-1) : 0 }", {"i": "0:N + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = i < 1 ? 0 : x(i-1) }", {"i": "0:N + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = !(i < 1) && x(i-1) > 0 ? 1 : 0 }", {"i": "0:N + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = i < 1 || x(i-1) > 0 ? 1 : 0 }", {"i": "0:N + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = x(i) + (i >= 1 ? x(i-1) : 0) }", {"i": "0:N"}),
        ("def f(float(N) x) -> (y) { y(i) = 2*i >= 1 ? x(i-1) : 0 }", {"i": "0:N + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = x(i/2) }", {"i": "0:2 * N"}),
        ("def f(float(N) x) -> (y) { y(i) = x((i+1)/3) }", {"i": "0:3 * N - 1"}),
        ("def f(float(N) x, float(3) w) -> (y) { y(i) = x(i) * w(i%3) }", {"i": "0:N"}),
        ("def f(float(N) x) -> (y) { y(i) = x(N-1-i) }", {"i": "0:N"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(i+k) where k in 1:3 }", {"i": "0:N - 2", "k": "1:3"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(i+k/2) where k in 0:5 }", {"i": "0:N - 2", "k": "0:5"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(i+k%4) where k in 0:9 }", {"i": "0:N - 3", "k": "0:9"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(i+max(k,2)) where k in 0:4 }", {"i": "0:N - 3", "k": "0:4"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(i) where j in 0:i+1 }", {"i": "0:N", "j": "0:i + 1"}),
        ("def f(float(N) x) -> (y) { y(i) +=! x(j) where j in 0:i+1 }", {"i": "0:N", "j": "0:i + 1"}),
        ("def f(float(N) x) -> (y) { y(i) = x(2*i) + x(3*i) }", {"i": "0:min((N + 1) / 2, (N + 2) / 3)"}),
        ("def f(float(N) x) -> (y) { y(i) = 1.0 where exists x(i+1) }", {"i": "0:N - 1"}),
        ("def f(float(N) X, int(A,B) I) -> (Z) { Z(i,j) = X(I(i,j)) }", {"i": "0:A", "j": "0:B"}),
        ("def f(float(N) X, int(A) I) -> (Z) { Z(i) +=! X(I(i)+k) where k in 0:3 }", {"i": "0:A", "k": "0:3"}),
    ],
)
def test_worked_ranges(text: str, expected: dict[str, str]) -> None:
    assert ranges(lower(text).statements[0]) == expected


def test_strided_convolution_takes_the_stride_as_positive() -> None:
    program = lower(
        "def f(int s, int d, float(H) I, float(K) W) -> (O) { O(h) +=! I(s*h + d*k) * W(k) }",
    )
    assert ranges(program.statements[0]) == {"h": "0:(H + d + s - K * d - 1) / s", "k": "0:K"}
    assert [expression_text(p.condition) for p in program.preconditions] == ["d >= 0", "s >= 1"]


def test_guards_of_a_where_grant_what_they_say() -> None:
    program = lower(
        "def f(float(M) dy, float(K) w, float(N) x) -> (dx) { dx(r) +=! dy(r-k) * w(k) where r in 0:N, r-k in 0:M }"
    )
    assert ranges(program.statements[0]) == {"r": "0:N", "k": "0:K"}
    assert shape(program, "dx") == ["N"]


def test_iterators_without_other_accesses_follow_the_other_writers() -> None:
    program = lower(
        "def fcrelu(float(B,I) in, float(O,I) weight, float(O) bias) -> (out) {"
        " out(i,j) = bias(j) out(b,o) += in(b,i) * weight(o,i) out(i,j) = fmaxf(out(i,j), 0) }"
    )
    assert ranges(program.statements[0]) == {"i": "0:B", "j": "0:O"}
    assert ranges(program.statements[2]) == {"i": "0:B", "j": "0:O"}


def test_the_bias_of_the_paper_gives_the_hull_of_both_writers() -> None:
    program = lower(
        "def fcrelu(float(B,I) in, float(O,I) weight, float(I) bias) -> (out) {"
        " out(i,j) = bias(j) out(b,o) += in(b,i) * weight(o,i) out(i,j) = fmaxf(out(i,j), 0) }"
    )
    assert shape(program, "out") == ["B", "max(I, O)"]


def test_an_incoming_value_has_the_extents_of_what_is_written() -> None:
    program = lower(
        "def sgemm(float a, float b, float(N,M) A, float(M,K) B) -> (C) {"
        " C(i,j) = b * C(i,j) C(i,j) += a * A(i,k) * B(k,j) }"
    )
    assert ranges(program.statements[0]) == {"i": "0:N", "j": "0:K"}


def test_followers_use_the_subscripts_of_the_left_hand_side() -> None:
    program = body("O(2*i) = 1.0 O(2*i+1) = 2.0 O(i) += A(i,k)")
    assert ranges(program.statements[0]) == {"i": "0:(M + 1) / 2"}
    assert ranges(program.statements[1]) == {"i": "0:M / 2"}


def test_extents_of_other_tensors() -> None:
    program = body("T(i) +=! A(i,k) O(j) = T(j) / T.0 + A.1 where j in 0:T.0", results="O")
    assert ranges(program.statements[1]) == {"j": "0:M"}
    assert shape(program, "O") == ["M"]


def test_affine_left_hand_sides_extend_the_hull() -> None:
    program = lower("def cat(float(B,C1) X, float(B,C2) Y) -> (O) { O(b,c) = X(b,c) O(b,c+C1) = Y(b,c) }")
    assert shape(program, "O") == ["B", "C2 + C1"]


def test_statements_that_wait_for_each_other_are_solved_in_any_order() -> None:
    program = body("S(i) = 0 D(i) = S(i) S(i) += A(i,k) O(i) = D(i) + S(i)")
    assert [ranges(s)["i"] for s in program.statements] == ["0:M"] * 4


# --- refused -------------------------------------------------------------------------------------------------


def test_undetermined_iterators_are_named_with_the_where_to_write() -> None:
    text = "def pool(float(H) x) -> (y) { y(i) max=! x(2*i + kh) }"
    assert complaints(text, RangeError) == [
        (
            "the range of `i` is undetermined: no access of a tensor bounds it "
            "[give its range, for example `where i in 0:H`]"
        ),
        (
            "the range of `kh` is undetermined: no access of a tensor bounds it "
            "[give its range, for example `where kh in 0:H`]"
        ),
    ]
    assert places(text, RangeError) == ["i", "kh"]


def test_an_undetermined_iterator_may_be_a_misspelled_size() -> None:
    (found,) = complaints("def f(float(NUM) x) -> (y) { y(i) = x(i) + NUN }", SemanticError)
    assert "stands only on the right" in found
    (found,) = complaints("def f(float(NUM) x) -> (y) { y(i) +=! x(i) / NUN }", RangeError)
    assert "did you mean the size `NUM`?" in found


def test_a_range_that_would_start_above_zero() -> None:
    text = "def f(float(N) x) -> (y) { y(i) = x(i-1) }"
    assert complaints(text, RangeError) == [
        (
            "`x(i - 1)` leaves `x` at i = 0, N = 1: dimension 0 has N elements "
            "[guard the read: `(i - 1 >= 0 ? x(i - 1) : 0)`]"
        )
    ]
    assert places(text, RangeError) == ["x(i-1)"]
    (found,) = complaints("def f(float(N) x) -> (y) { y(i) = x(2*i-5) }", RangeError)
    assert "`(2 * i - 5 >= 0 ? x(2 * i - 5) : 0)`" in found
    (found,) = complaints("def f(float(N) x, float(K) w) -> (y) { y(i) +=! x(i-k-1) * w(k) }", RangeError)
    assert "`where i in 0:N + K, i - k - 1 in 0:N`" in found


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) x, float(K) w) -> (y) { y(i) +=! x(i-k) * w(k) }",
        "def f(float(N) x, int s) -> (y) { y(i) = x(i-s) }",
        "def f(float(N) x, int s) -> (y) { y(i+s) = x(i) }",
        "def f(float(N) x, int s) -> (y) { y(max(i-s, i/3)) = x(i) }",
        "def f(float(N) x, float(K) w) -> (y) { y(i) = x(i) where i in K-1:N }",
        "def f(float(N) x, float(K) w) -> (y) { y(i) = x(i) where i in 1-K:N }",
        "def f(float(N) x, float(K) w) -> (y) { y(i) = x(i) where i in 0:N+K-1 }",
        "def f(float(N) n, float(M) x) -> (y) { y(i) = x(0-3*N) where i in 0:4 }",  # of no n
    ],
)
def test_what_some_sizes_fulfil_is_left_to_the_call(text: str) -> None:
    lower(text)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("i in 5:3", "the range 5:3 of `i` is contradictory: it ends before it begins"),
        ("i in 0:3, i in 5:8", "the range 5:3 of `i` is contradictory: it ends before it begins"),
        (
            "i in 0-2:3",
            (
                "the range of `i` begins at -2; iterators are never negative "
                "[start at 0 and shift the subscripts: `i - 2`]"
            ),
        ),
        ("i in 0:i+1", "the range of `i` depends on itself"),
        ("i in 0:M, 2 < 1", "this condition never holds"),
    ],
)
def test_contradictory_ranges(where: str, message: str) -> None:
    assert complaints(definition(f"O(i) = 1.0 where {where}"), RangeError) == [message]


def test_ranges_that_depend_on_each_other() -> None:
    found = complaints(definition("O(i,j) = 1.0 where i in 0:j+1, j in 0:i+1"), RangeError)
    assert found == ["the range of `i` depends on itself", "the range of `j` depends on itself"]


def test_an_access_that_leaves_its_tensor_for_all_sizes() -> None:
    text = definition("O(i) = x(i) where i in 0:N+1", "float(N) x")
    assert complaints(text, RangeError) == [
        "`x(i)` leaves `x` at i = 1, N = 1: dimension 0 has N elements [guard the read: `(i < N ? x(i) : 0)`]"
    ]
    (found,) = complaints(definition("O(i-2) = x(i)", "float(N) x"), RangeError)
    assert (
        found
        == "`O` would be written at subscript -2, below 0, at i = 0, N = 1 [shift the subscript `i - 2` to start at 0]"
    )


def test_conditions_on_sizes_leave_the_proof_to_the_call() -> None:
    lower("def f(float(N,M) x) -> (y) { y(i) = x(i,i) where i in 0:M+N-2, M == 1, N >= 1 }")


def test_tensors_that_wait_for_each_other_for_ever() -> None:
    text = "def f() -> (a, b) { a(i) = b(i) b(i) = a(i) }"
    assert all("undetermined" in found or "depend" in found for found in complaints(text, RangeError))
