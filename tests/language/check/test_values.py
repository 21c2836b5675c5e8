"""Versions of names, updates in place, results that come in, and what is refused about them."""

from __future__ import annotations

import pytest

from tc.base.errors import RangeError, SemanticError
from tc.language.lower.specialize import specialize
from tc.language.program.program import DerivedOrigin, Role
from tests.language.support import (
    array,
    body,
    complaints,
    definition,
    lower,
    places,
    ranges,
    shape,
    signature,
    value,
)


def _targets(text: str, results: str = "O") -> list[str]:
    return [f"{s.target} <- {value(s)}" for s in body(text, results=results).statements]


def test_writes_without_a_read_between_them_make_one_value() -> None:
    assert _targets("O(i) = 0 O(i) += A(i,k)") == ["O <- float32(0.0)", "O <- A(i, k)"]


def test_an_assignment_after_a_read_starts_a_new_value() -> None:
    program = body("T(i) +=! A(i,k) O(i) = T(i) T(k) +=! A(i,k) P(k) = T(k)", results="O, P")
    assert [s.target for s in program.statements] == ["T_1", "O", "T", "P"]
    assert [value(s) for s in program.statements] == ["A(i, k)", "T_1(i)", "A(i, k)", "T(k)"]
    assert (shape(program, "T_1"), shape(program, "T")) == (["M"], ["N"])


def test_the_last_value_of_a_result_keeps_its_name() -> None:
    program = body("O(i) +=! A(i,k) P(i) = O(i) O(i) = O(i) * P(i) Q(i) = O(i) O(i) = Q(i)", results="O")
    assert [s.target for s in program.statements] == ["O_1", "P", "O_2", "Q", "O"]
    assert value(program.statements[2]) == "O_1(i) * P(i)"
    roles = {t.name: t.role for t in program.tensors}
    assert roles["O"] is Role.OUTPUT
    assert roles["O_1"] is Role.TEMPORARY


def test_a_new_value_may_read_the_old_one_at_other_subscripts() -> None:
    program = lower("def f(float(N,N) x) -> (a, s) { a(i,j) = x(i,j) s +=! a(i,j) a(i,j) = a(j,i) }")
    assert value(program.statements[2]) == "a_1(j, i)"


def test_fresh_names_avoid_those_of_the_text() -> None:
    program = body("O(i) +=! A(i,k) O_1(i) = O(i) O(i) = O_1(i)", results="O, O_1")
    assert [s.target for s in program.statements] == ["O_2", "O_1", "O"]


def test_statements_are_not_called_like_tensors() -> None:
    assert [s.name for s in body("O(i) +=! A(i,k) O(i) *= 2").statements] == ["S0", "S1"]
    assert [s.name for s in body("S1(i) +=! A(i,k) O(i) = S1(i)").statements] == ["S_0", "S_1"]


def test_updates_in_place() -> None:
    program = body("O(i) +=! A(i,k) O(i) = max(O(i), 0) O(0+i) *= O(i)")
    assert [s.target for s in program.statements] == ["O"] * 3
    assert value(program.statements[2]) == "O(0 + i)"


def test_new_values_may_change_their_rank() -> None:
    program = body("T(i) +=! A(i,k) O(i) = T(i) T = 1.0 P = T", results="O, P")
    assert [shape(program, name) for name in ("T_1", "T")] == [["M"], []]


# --- results that come in ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statements",
    ["O(i) += A(i,k)", "O(i) = O(i) * 2 where i in 0:M", "P(i) = O(i) O(i) += A(i,k)", "P +=! O(i) O(i) = P + A(i,0)"],
)
def test_a_result_that_is_read_first_comes_in(statements: str) -> None:
    program = body(statements, results="O, P" if "P" in statements else "O")
    assert program.tensor("O").role is Role.IN_OUT
    assert [s.target for s in program.statements if s.target.startswith("O_")] == []


def test_a_result_that_comes_in_needs_no_copy_unless_it_is_read_after_the_write() -> None:
    program = lower("def f(float(N) x) -> (C) { D(i) = C(i) C(i) = x(i) E(i) = C(i) }")
    assert [s.target for s in program.statements] == ["D", "C", "E"]
    assert value(program.statements[0]) == "C(i)"


def test_the_value_that_comes_in_is_saved_where_its_storage_is_reused() -> None:
    program = lower("def f(float(N,N) x) -> (C, s) { s +=! C(i,j) C(i,j) = C(j,i) + x(i,j) }")
    first = program.statements[0]
    assert (first.target, value(first)) == ("C_in", "C(i, i_1)")
    assert ranges(first) == {"i": "0:N", "i_1": "0:N"}
    assert isinstance(first.origin, DerivedOrigin)
    assert [value(s) for s in program.statements[1:]] == ["C_in(i, j)", "C_in(j, i) + x(i, j)"]
    assert program.tensor("C").role is Role.IN_OUT
    assert program.tensor("C_in").role is Role.TEMPORARY


def test_a_middle_value_has_its_own_tensor_between_incoming_and_outgoing() -> None:
    program = lower(
        "def f(float(N) x) -> (C) { D(i) = C(i) C(i) = C(N-1-i) E(i) = C(i) C(i) = E(i) + x(i) where i in 0:N }"
    )
    assert [s.target for s in program.statements] == ["D", "C_1", "E", "C"]
    assert value(program.statements[1]) == "C(N - 1 - i)"
    assert program.tensor("C").role is Role.IN_OUT


# --- refused -------------------------------------------------------------------------------------------------

IN_PLACE = (
    "an update in place must read `O` with the subscripts that it writes: other instances would see some elements "
    "before and some after the update [write the result to another name]"
)


@pytest.mark.parametrize(
    ("statements", "message", "place"),
    [
        ("O(i,j) = O(j,i) where i in 0:N, j in 0:N", IN_PLACE, "O(j,i)"),
        ("O(i) = A(i,0) O(i) += O(i+1)", IN_PLACE, "O(i+1)"),
        (
            "O(i) +=! O(i) * A(i,0)",
            "`O` is set to its neutral element before it is read here [write the result to another name]",
            "O(i)",
        ),
        (
            "O(i) += O(i) * A(i,k)",
            (
                "`O` would change while the reduction over `k` still reads it "
                "[reduce into another name first, then update `O`]"
            ),
            "O(i)",
        ),
        (
            "O(i) = T(i) T(i) = A(i,0)",
            (
                "temporary `T` is read before it is written "
                "[write it first, or list `T` among the results to pass its value in through `out=`]"
            ),
            "T(i)",
        ),
        ("O(i) = A(i,0) O(i,j) += A(i,j)", "`O` is written with 2 subscripts here and with 1 before", "O"),
        # What the first statement writes follows the second one, which has a subscript more.
        ("O(i) = O(i) O(i,j) = 0.5", "`O` is written with 2 subscripts here and with 1 before", "O"),
        (
            "O(i,j) += A(i,j) T(i) = O(i,0) O(i) = T(i)",
            (
                "`O` comes in through `out=` with 2 dimensions and goes out with 1, but it is one array "
                "[write the result to another name]"
            ),
            "O",
        ),
        (
            "O(i) = A(i,k)",
            (
                "a reduction without an operator: `k` stands only on the right of `=` "
                "[write `+=!` to sum, or `*=!`, `min=!`, `max=!`]"
            ),
            "=",
        ),
        (
            "O(i) = A(j,k)*i",
            (
                "a reduction without an operator: `j`, `k` stand only on the right of `=` "
                "[write `+=!` to sum, or `*=!`, `min=!`, `max=!`]"
            ),
            "=",
        ),
        (
            "O(i*j) = A(i,j)",
            (
                "a subscript on the left-hand side must be affine in the iterators: integer multiples and sums, "
                "divided by constants [give each iterator a dimension of its own, `O(i, j)`, or divide and take "
                "remainders by constants]"
            ),
            "i*j",
        ),
        (
            "O(I(i)) = A(i,0)",
            (
                "`=` writes `O` where data say, which may be one element for several `i` "
                "[reduce with `+=`, `*=`, `min=` or `max=`, or say that no index comes twice: `where distinct I`]"
            ),
            "I(i)",
        ),
        (
            "O(j) +=! A(i,j) where j in 0:i+1",
            (
                "the range of `j` depends on `i`, which is reduced: it does not say which elements of `O` are "
                "initialized [let the range of the reduced iterator depend on the other one]"
            ),
            "j in 0:i+1",
        ),
    ],
)
def test_refused(statements: str, message: str, place: str) -> None:
    text = definition(statements, "float(M,N) A, int(M) I")
    assert complaints(text, SemanticError) == [message]
    assert places(text, SemanticError) == [place]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(float(N) x) -> (x) { x(i) = 1 }", "`x` is an argument, and arguments are never written"),
        ("def f(float(N) x) -> (y) { x(i) = 1 y(i) = x(i) }", "`x` is an argument, and arguments are never written"),
        ("def f(float(N) x, float a) -> (a) { a = 1 }", "`a` is an argument, and arguments are never written"),
        ("def f(float(N) x, float a) -> (y) { a = 1 y(i) = x(i) }", "`a` is a scalar argument and cannot be written"),
        ("def f(float(N) x) -> (N) { N = 1 }", "`N` is a size and cannot be written"),
        ("def f(float(N) x) -> (y, z) { y(i) = x(i) }", "the result `z` is never written"),
        ("def f(float(N) x) -> (y, z) { y(i) = x(i) + z(i) }", "the result `z` is never written"),
        ("def f(float(N) x) -> (y, y) { y(i) = x(i) }", "the result `y` is listed twice"),
        ("def f(float(N) x, int x) -> (y) { y(i) = x(i) }", "two arguments are called `x`"),
        ("def f(float(N) x, int N) -> (y) { y(i) = x(i) }", "`N` is both an argument and a size"),
        ("def f(float(N) x) -> (float32) { float32(i) = x(i) }", "`float32` names a type and cannot name a tensor"),
        ("def f(floot(N) x) -> (y) { y(i) = x(i) }", "unknown type `floot` [did you mean `float`?]"),
        ("def f(float(N) x) -> (y) { y(i) = x(i) } def f(float(N) x) -> (y) { y(i) = x(i) }", "`f` is defined twice"),
    ],
)
def test_declarations_refused(text: str, message: str) -> None:
    assert complaints(text, SemanticError)[0].startswith(message)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("N = 1", "`N` has a meaning already [choose another name]"),
        ("x = 1, x = 2", "`x` is defined twice"),
        ("x = x + 1", "`x` is defined by itself"),
        ("x = y, y = x", "`x` is defined by itself"),
        ("i in 0:I(0)", "the range of `i` reads a tensor, so a statement may only reduce over it"),
        ("A(i,0) > 0", "a `where` must not read tensors, this one reads `A`"),
        ("i * i < N", "a `where` must be affine in the iterators"),
        ("i < 2.5", "a `where` must be affine in the iterators"),
        ("exists i(0)", "unknown name `i`"),
        ("exists exp(1)", "`exists` needs the access of a tensor [write `exists T(i)`]"),
    ],
)
def test_where_refused(where: str, message: str) -> None:
    text = definition(f"O(i) +=! A(i,k) where {where}", "float(M,N) A, int(M) I")
    assert complaints(text, SemanticError)[0].startswith(message)


def test_lets_that_explode_are_refused() -> None:
    lets = ", ".join(f"x{k} = x{k - 1} * x{k - 1}" for k in range(1, 40))
    found = complaints(definition(f"O(i) = x39 where x0 = A(i,0), {lets}"), SemanticError)
    message = "stands for more than 10000 operations or 200 levels of them [give parts of it a statement of their own]"
    assert found == [f"`x11` {message}"]
    chain = ", ".join(f"x{k} = x{k - 1} + 1" for k in range(1, 400))
    assert complaints(definition(f"O(i) = x399 where x0 = A(i,0), {chain}"), SemanticError) == [f"`x100` {message}"]


def test_lets_may_not_deepen_an_expression_without_end() -> None:
    text = definition(f"O(i) = y{' + 1' * 120} where y = A(i,0){' + 1' * 120}")
    message = "the expression stands for more than 10000 operations or 200 levels of them"
    assert complaints(text, SemanticError) == [f"{message} [give parts of it a statement of their own]"]


def test_lets_stand_for_expressions() -> None:
    program = body("O(i) = (y - x) / 2 where x = A(i,0), y = x * 2, n = N, i in 0:n")
    assert value(program.statements[0]) == "(A(i, 0) * 2.0 - A(i, 0)) / 2.0"
    assert ranges(program.statements[0]) == {"i": "0:N"}


# --- every element once --------------------------------------------------------------------------------------


def test_parts_that_make_a_whole() -> None:
    program = body("O(0) = 0 O(i+1) = A(i,0)")
    assert shape(program, "O") == ["M + 1"]
    body("O(i) = 0.0 where i in 0:1 O(i) = A(i-1,0) where i in 1:M+1")
    body("O(i,j) = A(i,j) where i in 0:M, j in 0:N, j < i+1 O(i,j) = 0 where i in 0:M, j in 0:N, j >= i+1")
    body("O(2*i) = A(i,0) O(2*i+1) = A(i,1)")


@pytest.mark.parametrize(
    ("statements", "kind", "message"),
    [
        (
            "O(i/2) = 1.0 where i in 0:2*M",
            SemanticError,
            "`O(0)` is written by more than one instance of the statement",
        ),
        ("O(i) = A(i,0) O(i) = A(i,1)", SemanticError, "`O(0)` is written twice: here and by an earlier statement"),
        ("O(i) +=! A(i,k) O(i) *=! A(i,k)", SemanticError, "`O(0)` is written twice: here and by an earlier statement"),
        ("O(i,j) = 3 where i in 4:8, j in 3:20", RangeError, "`O(0, 0)` is never written"),
        ("O(i) +=! A(i,k) where i in 0:M, i >= 1", RangeError, "`O(0)` is never written"),
        ("O(2*i+N) = A(i,0) where i in 0:8", RangeError, "`O(0)` is never written"),
        # One element for one size, and another one for the next.
        ("O(max(N,i) - 2*i) +=! A(i,0) where i in 0:8, i != 7", RangeError, "`O(0)` is never written for N = 1"),
    ],
)
def test_elements_written_twice_or_never(statements: str, kind: type[SemanticError], message: str) -> None:
    found = complaints(definition(statements), kind)
    assert [complaint.split(" [")[0] for complaint in found] == [message]


def test_a_witness_may_stand_for_one_value_of_a_scalar_of_either_sign() -> None:
    with pytest.raises(SemanticError) as caught:
        lower("def f(int s, float(N) x) -> (y) { y(i/2 + s) = x(0) where i in 0:4 }")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "`y(0)` is written by more than one instance of the statement for s = 0"


@pytest.mark.parametrize(
    ("statements", "fits", "fails", "message"),
    [
        ("O(2*i) = A(i,0)", (1, 1), (2, 1), "`O(1)` is never written"),
        ("O(i) = A(i,0) where i in 3:M-1", (1, 1), (5, 1), "`O(0)` is never written"),
        ("O(i,j) = A(i,j) where i in 0:M, j in 0:i+1", (1, 1), (2, 2), "`O(0, 1)` is never written"),
        ("O(i) = A(i,0) where i in N-1:M", (5, 1), (5, 3), "`O(0)` is never written"),
        ("O(i/2) = A(i,0)", (1, 3), (2, 1), "`O(0)` is written by more than one instance of the statement"),
        ("O(i+k) = A(i,k)", (5, 1), (5, 3), "`O(1)` is written by more than one instance of the statement"),
        ("O(i+k) = A(i,k)", (0, 0), (2, 2), "`O(1)` is written by more than one instance of the statement"),
        ("O(i%3) = A(i,0)", (3, 1), (4, 1), "`O(0)` is written by more than one instance of the statement"),
        ("O(i) = A(i,0) O(i+1) = A(i,0)", (1, 1), (2, 1), "`O(1)` is written twice: here and by an earlier statement"),
    ],
)
def test_what_is_wrong_for_some_sizes_is_refused_for_those(
    statements: str, fits: tuple[int, int], fails: tuple[int, int], message: str
) -> None:
    program = body(statements)
    specialize(program, signature(A=array(*fits)))
    with pytest.raises(RangeError) as caught:
        specialize(program, signature(A=array(*fails)))
    assert caught.value.diagnostics[0].message == message


def test_sums_may_write_an_element_many_times() -> None:
    program = body("O(i+k) +=! A(i,k)")
    assert shape(program, "O") == ["M + N - 1"]


def test_names_may_begin_with_a_digit_where_isl_proves() -> None:
    program = lower("def 2g(float(3N) 1x) -> (0y) { 0y(0) = 0 0y(5i+1) = 1x(5i) }")
    assert shape(program, "0y") == ["3N + 1"]
