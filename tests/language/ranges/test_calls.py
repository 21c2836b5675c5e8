"""Calls of other definitions: inlined, with their sizes bound to the arguments."""

from __future__ import annotations

import pytest

from tc.base.errors import RangeError, SemanticError
from tc.language.program.program import DerivedOrigin, Program, Role
from tc.language.text.expression_text import expression_text
from tests.language.support import complaints, lower, places, ranges, shape, value

MLP1 = "def MLP1(float(B,M) I, float(O,N) W1, float(O) B1) -> (O1) { O1(b,n) = B1(n) O1(b,n) += I(b,m) * W1(n,m) } "
LUT = "def lut(float(E,D) T, int(B,L) I) -> (O) { O(i,j) +=! T(I(i,k),j) } "


def _statements(program: Program) -> list[str]:
    return [f"{s.target} <- {value(s)}" for s in program.statements]


def test_a_call_becomes_the_statements_of_its_callee() -> None:
    program = lower(MLP1 + "def f(float(X,Y) a, float(Z,Y) w, float(Z) b) -> (r) { r = MLP1(a, w, b) }")
    assert _statements(program) == ["r <- b(n)", "r <- a(b_1, m) * w(n, m)"]
    assert shape(program, "r") == ["X", "Z"]
    assert ranges(program.statements[1]) == {"b_1": "0:X", "n": "0:Z", "m": "0:Y"}
    assert isinstance(program.statements[0].origin, DerivedOrigin)
    assert program.preconditions == ()


def test_several_results_and_order_of_definition() -> None:
    program = lower(
        "def f(float(N) x) -> (p, q) { (p, q) = g(x) }"
        "def g(float(M) x) -> (a, b) { t(i) = 2 * x(i) a(i) = t(i) b(i) = t(i) * x(i) }",
        "f",
    )
    assert _statements(program) == ["t <- 2.0 * x(i)", "p <- t(i)", "q <- t(i) * x(i)"]
    assert program.tensor("t").role is Role.TEMPORARY


def test_temporaries_and_iterators_get_names_that_are_free() -> None:
    program = lower(
        "def g(float(M) x) -> (y) { t(i) = x(i) y(i) = t(i) }"
        "def f(float(i) x) -> (z) { t = g(x) u = g(t) z(k) = t(k) + u(k) }"
    )
    assert [s.target for s in program.statements] == ["t_1", "t", "t_2", "u", "z"]
    assert ranges(program.statements[0]) == {"i_1": "0:i"}


def test_scalar_arguments_are_expressions() -> None:
    program = lower(
        "def pool(int s, float a, float(N) x) -> (y) { y(i) = a * x(s*i) }"
        "def f(float(N) x, int s, float(2) w) -> (y, z) { y = pool(2, 0.5, x) z = pool(s, float(w.0 * N), x) }"
    )
    assert _statements(program) == ["y <- 0.5 * x(2 * i)", "z <- float32(2 * N) * x(s * i)"]
    assert shape(program, "y") == ["(N + 1) / 2"]
    assert shape(program, "z") == ["(N + s - 1) / s"]
    assert [expression_text(p.condition) for p in program.preconditions] == ["s >= 1"]


def test_sizes_that_may_differ_become_preconditions() -> None:
    program = lower(MLP1 + "def f(float(X,Y) a, float(Z,U) w, float(V) b) -> (r) { r = MLP1(a, w, b) }")
    assert [expression_text(p.condition) for p in program.preconditions] == ["V == Z"]
    assert program.preconditions[0].message == "`MLP1` needs `b.0` to be Z, it is V"


def test_arguments_may_be_results_of_other_statements() -> None:
    program = lower(LUT + "def f(float(E,D) T, int(B,L) I) -> (C) { A = lut(T, I) C(b,d) = A(b,d) + 1 }")
    assert ranges(program.statements[1]) == {"b": "0:B", "d": "0:D"}


def test_a_result_may_replace_an_argument() -> None:
    program = lower(
        "def relu(float(N) x) -> (y) { y(i) = max(x(i), 0) } def f(float(N) x) -> (C) { C(i) = x(i) C = relu(C) }"
    )
    assert _statements(program) == ["C_1 <- x(i)", "C <- max(C_1(i), 0.0)"]


def test_results_that_the_callee_updates_go_in_and_out() -> None:
    add = "def add(float(N) x) -> (y) { y(i) += x(i) } "
    program = lower(add + "def f(float(N) x) -> (C) { C(i) = 2 * x(i) (C) = add(x) }")
    assert _statements(program) == ["C <- 2.0 * x(i)", "C <- x(i)"]
    assert program.tensor("C").role is Role.OUTPUT
    assert lower(add + "def f(float(N) x) -> (C) { C = add(x) }").tensor("C").role is Role.IN_OUT


def test_results_that_the_callee_read_count_as_read() -> None:
    program = lower(
        "def g(float(N) x) -> (p, q) { p(i) = x(i) q(i) = p(i) }"
        "def f(float(N) x) -> (a, b) { (a, b) = g(x) a(i) = a(i) * 2 b(i) = b(i) * 2 }"
    )
    assert [s.target for s in program.statements] == ["a_1", "b", "a", "b"]


def test_functions_hidden_by_names_of_the_caller_keep_their_meaning() -> None:
    program = lower(
        "def g(float(N) x) -> (y) { y(i) = exp(x(i)) } def f(float(N) exp) -> (z) { y = g(exp) z(i) = y(i) + exp(i) }"
    )
    assert value(program.statements[0]) == "exp(exp(i))"


@pytest.mark.parametrize(
    ("statement", "message", "place"),
    [
        ("r = MPL1(a, w, b)", "unknown name `MPL1` [did you mean `MLP1`?]", "MPL1"),
        ("(r) = MPL1(a, w, b)", "unknown definition `MPL1` [did you mean `MLP1`?]", "MPL1"),
        ("r = MLP1(a, w)", "`MLP1` takes 3 arguments (I, W1, B1), 2 given", "r = MLP1(a, w)"),
        ("(r, t) = MLP1(a, w, b)", "`MLP1` has 1 result (O1), 2 taken", "(r, t) = MLP1(a, w, b)"),
        (
            "r = MLP1(a, w, 3)",
            "argument `B1` of `MLP1` is a tensor and needs the name of one [write the expression to a tensor first]",
            "3",
        ),
        ("r = MLP1(a, w, w)", "argument `B1` of `MLP1` has rank 1, `w` has rank 2", "w"),
        (
            "r = MLP1(a, w, c)",
            (
                "argument `B1` of `MLP1` is float32, `c` is int32 "
                "[convert it to a tensor of its own first, with `float32(...)`]"
            ),
            "c",
        ),
        (
            "r(i) = MLP1(a, w, b) + b(i)",
            "`MLP1` is a definition, which only a statement of its own can call [write `T = MLP1(...)` and use `T`]",
            "MLP1",
        ),
    ],
)
def test_refused(statement: str, message: str, place: str) -> None:
    text = MLP1 + f"def f(float(X,Y) a, float(Z,Y) w, float(Z) b, int(Z) c) -> (r) {{ {statement} }}"
    assert complaints(text, SemanticError) == [message]
    assert places(text, SemanticError) == [place]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("2.5", "argument `s` of `g` needs int32, this is a floating-point number"),
        ("a", "argument `s` of `g` needs int32, this is float32 [cast it: `int32(...)`]"),
        ("x(0)", "argument `s` of `g` is a scalar: it may use sizes, scalars and numbers only"),
        ("k", "argument `s` of `g` is a scalar: it may use sizes, scalars and numbers only"),
        ("3000000000", "the literal 3000000000 does not fit into int32 (-2147483648 to 2147483647)"),
    ],
)
def test_scalars_refused(argument: str, message: str) -> None:
    callee = "def g(int s, float(N) x) -> (y) { y(i) = x(i) * s }"
    text = f"{callee} def f(float a, float(N) x) -> (y) {{ y = g({argument}, x) }}"
    assert complaints(text, SemanticError)[0].startswith(message)


def test_sizes_that_surely_differ_are_refused() -> None:
    callee = "def g(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }"
    text = f"{callee} def f(float(3) a, float(4) b) -> (z) {{ z = g(a, b) }}"
    assert complaints(text, SemanticError) == ["`g` needs `b.0` to be 3, it is 4"]


def test_the_preconditions_of_a_callee_must_be_possible() -> None:
    text = "def g(int s, float(N) x) -> (y) { y(i) = x(s*i) } def f(float(N) x) -> (y) { y = g(0, x) }"
    assert complaints(text, SemanticError) == ["the factor of `i` in a subscript must be positive"]


def test_accesses_that_the_arguments_lead_outside_are_refused() -> None:
    text = "def g(int s, float(N) x) -> (y) { y(i) = x(i+s) where i in 0:N } def f(float(N) x) -> (y) { y = g(2, x) }"
    assert complaints(text, RangeError) == [
        (
            "`x(i + 2)` leaves `x` at i = 0, N = 1: dimension 0 has N elements, inside the call "
            "[narrow the ranges with a `where`, or guard the read with a condition]"
        )
    ]
    assert places(text, RangeError) == ["y = g(2, x)"]


def test_ranges_that_the_arguments_make_empty_stay_so() -> None:
    program = lower(
        "def conv(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i+x) }"
        "def f(float(2) a, float(5) b) -> (y) { y = conv(a, b) }"
    )
    assert ranges(program.statements[0]) == {"i": "0:0", "x": "0:5"}
    assert shape(program, "y") == ["0"]


def test_recursion_is_refused() -> None:
    text = "def f(float(N) x) -> (y) { y = g(x) } def g(float(N) x) -> (y) { y = f(x) }"
    assert complaints(text, SemanticError) == ["definitions must not call themselves: f -> g -> f"]


def test_a_callee_in_error_is_reported_once() -> None:
    text = "def g(float(N) x) -> (y) { y(i) = x(i-1) } def f(float(N) x) -> (y) { t = g(x) y(i) = t(i) }"
    assert len(complaints(text, RangeError)) == 1


def test_an_argument_must_not_be_updated_by_the_call() -> None:
    text = "def add(float(N) x) -> (y) { y(i) += x(i) } def f(float(N) x) -> (C) { C(i) = x(i) C = add(C) }"
    assert complaints(text, SemanticError) == [
        "`C` is an argument of `add` and also its result `y`, which is updated [copy it to another name first]"
    ]


def test_chains_of_calls_may_be_long() -> None:
    count = 400
    calls = "".join(f"def f{k}(float(N) x) -> (y) {{ y = f{k - 1}(x) }} " for k in range(count, 0, -1))
    program = lower(calls + "def f0(float(N) x) -> (y) { y(i) = x(i) }", f"f{count}")
    assert _statements(program) == ["y <- x(i)"]


@pytest.mark.parametrize(("argument", "calls"), [("s + s", 40), ("s % 7 + 1", 120)])
def test_arguments_must_not_grow_without_end_from_call_to_call(argument: str, calls: int) -> None:
    text = "def f0(int s, float(N) x) -> (y) { y(i) = x(i) * s } "
    text += " ".join(f"def f{k}(int s, float(N) x) -> (y) {{ y = f{k - 1}({argument}, x) }}" for k in range(1, calls))
    (found,) = complaints(text, SemanticError)
    assert "makes an expression of more than 100000 operations or 200 levels" in found
