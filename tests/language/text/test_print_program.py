"""Programs as text: lowering the text gives an equal program; names do not reach the canonical text."""

from __future__ import annotations

import re

import pytest

from tc.base.errors import RangeError
from tc.language.program.program import Role
from tc.language.text.canonical import canonical, canonical_text
from tc.language.text.print_program import program_text
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.language.support import complaints, definition, lower, lower_all
from tests.turns import every, one_in

PARAMETERS = (
    "float(N) f, double(N) d, half(N) h, bfloat16(N) g, int(N) i, int8(N) c, uint64(N) u, bool(N) t, int(2) z, "
    "float s, int n, int m"
)


def test_ranges_and_conversions_are_explicit() -> None:
    program = lower(
        "def fcrelu(float(B,I) in, float(O,I) weight, float(O) bias) -> (out) {"
        " out(i,j) = bias(j) out(b,o) += in(b,i) * weight(o,i) out(i,j) = fmaxf(out(i,j), 0) }"
    )
    assert program_text(program) == (
        "def fcrelu(float32(B, I) in, float32(O, I) weight, float32(O) bias) -> (out) {\n"
        "    out(i, j) = bias(j) where i in 0:B, j in 0:O\n"
        "    out(b, o) += in(b, i) * weight(o, i) where b in 0:B, o in 0:O, i in 0:I\n"
        "    out(i, j) = fmax(out(i, j), 0.0) where i in 0:B, j in 0:O\n"
        "}\n"
    )


@one_in(2)
@pytest.mark.parametrize("case", every(3, CASES), ids=lambda case: case.name)
def test_the_corpus_survives_printing(case: Case) -> None:
    for name, program in lower_all(case.text).items():
        printed = program_text(program)
        assert lower(printed, name) == program
        assert program_text(lower(printed, name)) == printed


@pytest.mark.parametrize(
    "statements",
    [
        "O(k) = f(k) * 2 + 0.1",
        "O(k) = h(k) * 0.1 + g(k)",
        "O(k) = u(k) + 18446744073709551615",
        "O(k) = int8(300) + c(k)",
        "O(k) = k < n && n * k < N + m || !t(k) ? f(k) : -1",
        "O(k) = n < m ? f(k) : d(k)",
        "O(k) = int32(n) < 3 ? f(k) : 0",
        "O(k) = bool(1) ? f(k) : 0",
        "O(k) = k == 0 ? 1 : -0.0 + f(k)",
        "O(k) = float(1e300) + f(k)",
        "O(k) = max(k, n) > 3 ? f(k) : 0",
        "O(k) = float(N) / f(k) + sqrt(N) + fmaxf(f(k), 1)",
        "O(k) = f(i(k) + z(0)) + f(int8(n)) + f(int32(f(k)))",
        "O(k) = f(k < 3 ? 0 : 1) + f(min(k, N-1))",
        "O(k) = -9223372036854775808",
        "O(k) = 1 O(k) += f(k)",
        "O = 1.5",
        "O() +=! f(k)",
        "S +=! f(k) O(k) = f(k) / S",
        "O(j) +=! f(j) * f(k) where k in 0:j+1, exists f(j+1), 2*j+k < N, n >= 1, n > m",
        "O(j) +=! f(n*j + m*x) where x in 0:3",
        "O(j) = O(j) + f(j)",
        "T(j) = f(j) O(j) = T(j) T(j) = O(j) * O(j) P(j) = T(j)",
        "P +=! O(j) O(j) = O(N-1-j) + f(j)",
        "O() max=! t(k)",
        "O() +=! 1 where k in 0:N",
        "O(k) = f(k)/2 O(k) *= 2 O(k) min= 3 O(k) max= 1",
        "O(k) = y where y = f(k) * x, x = n",
    ],
)
def test_statements_survive_printing(statements: str) -> None:
    where = " where k in 0:N" if "(k)" in statements.split("=", maxsplit=1)[0] and "where" not in statements else ""
    results = "O, P" if " P" in statements or statements.startswith("P") else "O"
    program = lower(definition(statements + where, PARAMETERS, results))
    printed = program_text(program)
    assert lower(printed) == program, printed


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) x) -> (y) { t(i) = x(i) y(i) = (100 || y(i)) ? x(i) : 0 where i in 0:t.0 }",
        "def g(int n, float(N) x) -> (y) { y(i) = n > 3 ? x(i) : y(i) } def f(float(N) x) -> (z) { z = g(4, x) }",
    ],
    ids=["the size of a temporary", "a scalar of a call"],
)
def test_results_that_come_in_do_so_in_the_printed_text_too(text: str) -> None:
    program = lower(text, "f")
    assert program.tensor(program.results[0]).role is Role.IN_OUT
    assert lower(program_text(program), "f") == program


@pytest.mark.parametrize(
    "statement",
    [
        "O(i) = D(i) where i in 0:max(6, D.0), i < D.0",
        "O(i) = D(i % D.0) where i in 0:max(max(6, D.0), max(D.0, N))",
        "E(i, j) = D(i) where i in 0:D.0, j in 0:N O(i, j, n) = E(n, n) + E(i, E.1 - 1 - j)",
        "E(i % 5, j % 7) +=! D(i) where i in 0:D.0, j in 0:N O(i, j, n) = E(n, n) + E(i, E.1 - 1 - j)",
        "O(i) = D(0) where i in 0:min(min(6, D.0), min(D.0 + 1, N))",
        "D(i + 1) += 1 where i in 0:D.0 - 1 O(i) = D(i)",
        "O(i) = 3 >= 31 ? D(i) : i where i in 0:2 * D.0, i < D.0",
        "P(i) = D(i) P(i + D.0) = D(i) where i in 0:D.0 O(i) = 3 >= 31 ? P(i) : i",
    ],
)
@pytest.mark.parametrize("first", ["D(k % 4) +=! x(k)", "D(k % 4) +=! x(k) D(k + 4) = x(k)", "D(k) = x(k)"])
def test_extents_that_only_a_call_knows_print_as_their_names(first: str, statement: str) -> None:
    program = lower(definition(f"{first} {statement}", "float(N) x"))
    printed = program_text(program)
    assert lower(printed) == program
    assert program_text(lower(printed)) == printed


@pytest.mark.parametrize(
    "statement",
    [
        "D(i + D.0) = 1 where i in 0:D.0",
        "D(D.0) = 1",
        "E(i) = 1 where i in 0:D.0 D(k + 4) = x(k)",
        "D(k + 4) = x(k) D(i + D.0/2) = 1 where i in 0:D.0",
    ],
)
def test_what_goes_on_behind_an_end_that_only_a_call_knows(statement: str) -> None:
    text = definition(f"D(k % 4) +=! x(k) {statement} O(i) = D(i)", "float(N) x")
    (found,) = complaints(text, RangeError)
    assert found == (
        "`D.0` is used before all of `D` is written, and only a call knows it [write all of `D` first, or write what "
        "follows to another tensor that begins with a copy of it]"
    )


@pytest.mark.parametrize(
    "statements", ["T(i + D.0) = 1 where i in 0:D.0", "T(T.0) = 1", "T(i) += 1 where i in 0:T.0/2"]
)
def test_a_copy_goes_on_behind_such_an_end(statements: str) -> None:
    program = lower(definition(f"D(k % 4) +=! x(k) T(i) = D(i) {statements} O(i) = T(i)", "float(N) x"))
    assert lower(program_text(program)) == program


def test_preconditions_print_as_conditions_of_the_first_statement() -> None:
    program = lower("def f(int s, float(N) x) -> (y) { y(i) = x(s*i) }")
    assert program_text(program).splitlines()[1].endswith("where i in 0:(N + s - 1) / s, s >= 1")


def test_preconditions_about_an_extent_print_behind_what_gives_it() -> None:
    """The extent of `B` is no linear one, and the callee wants it to be `M`, as the columns of `A`."""
    program = lower(
        "def helper(float(K,L) C, float(L) D) -> (X) { X(i) +=! C(i,j) * D(j) } "
        "def f(float(N,M) A) -> (y) { B(max(i,j)) +=! A(i,j)  y = helper(A, B) }",
        "f",
    )
    (precondition,) = program.preconditions
    assert precondition.message == "`helper` needs `B.0` to be M"
    printed = program_text(program)
    assert printed.splitlines()[2].endswith("B.0 == M")
    assert lower(printed).statements == program.statements
    assert [p.condition for p in lower(printed).preconditions] == [precondition.condition]


@pytest.mark.parametrize("first", ["", "C(i) = A(i)"])
def test_products_of_what_is_computed_print_in_one_order(first: str) -> None:
    """Whichever factor the text names first: the condition on `s` comes before the range in the printed text."""
    results = "(C, D)" if first else "(D)"
    text = f"def f(float(N) A, int64(M) B, int s) -> {results} {{ {first} D(k) +=! A(s * i + k) where i in 0:M / 2 }}"
    program = lower(text)
    printed = program_text(program)
    assert "k in 0:N + s - M / 2 * s" in printed
    assert lower(printed) == program


def test_functions_that_a_tensor_hides_print_in_their_other_spelling() -> None:
    program = lower(
        "def g(float(N) x) -> (y) { y(i) = exp(x(i)) } def f(float(N) exp) -> (z) { y = g(exp) z(i) = y(i) + exp(i) }"
    )
    assert "expf(exp(i))" in program_text(program)
    assert lower(program_text(program)) == program


def test_names_do_not_reach_the_canonical_text() -> None:
    text = (
        "def conv(int s, float(N,C,H) In, float(F,C,K) Wt) -> (Out) {"
        " T(n,f,h) +=! In(n,c,s*h+k) * Wt(f,c,k) Out(n,f,h) = max(T(n,f,h), 0) }"
    )
    renamed = text
    for old, new in {
        "conv": "q", "In": "zz", "Wt": "aa", "Out": "b", "T": "y", "N": "Z", "C": "Y", "H": "X", "F": "B", "K": "A",
        "n": "z", "c": "x", "f": "w", "h": "v", "k": "u", "s": "t",
    }.items():  # fmt: skip
        renamed = re.sub(rf"\b{old}\b", f"{new}_", renamed)
    first, second = lower(text), lower(renamed)
    assert first != second
    assert canonical_text(first) == canonical_text(second)
    assert canonical_text(first) == (
        "def f(int32 s0, float32(n0, n1, n2) t0, float32(n3, n1, n4) t1) -> (t3) {\n"
        "    t2(i0, i1, i2) +=! t0(i0, i3, s0 * i2 + i4) * t1(i1, i3, i4) where i0 in 0:n0, i1 in 0:n3, "
        "i2 in 0:(n2 + s0 - n4) / s0, i3 in 0:n1, i4 in 0:n4, s0 >= 1\n"
        "    t3(i0, i1, i2) = max(t2(i0, i1, i2), 0.0) where i0 in 0:n0, i1 in 0:n3, i2 in 0:(n2 + s0 - n4) / s0\n"
        "}\n"
    )


@one_in(2)
@pytest.mark.parametrize("case", every(3, CASES), ids=lambda case: case.name)
def test_canonical_programs_are_canonical(case: Case) -> None:
    for program in lower_all(case.text).values():
        once = canonical(program)
        assert canonical(once) == once
        assert lower(program_text(once)) == once


def test_programs_that_differ_have_different_canonical_texts() -> None:
    texts = [
        "def f(float(N) x) -> (y) { y(i) = x(i) }",
        "def f(double(N) x) -> (y) { y(i) = x(i) }",
        "def f(float(4) x) -> (y) { y(i) = x(i) }",
        "def f(float(N) x) -> (y) { y(i) = x(N-1-i) }",
        "def f(float(N) x) -> (y) { y(i) += x(i) }",
        "def f(float(N) x) -> (y) { y(i) +=! x(i) }",
        "def f(float(N) x) -> (y) { y(i) max=! x(i) }",
        "def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:N/2 }",
        "def f(float(N) x) -> (y) { y(i) = x(i) + 1 }",
        "def f(float(N) x) -> (y) { y(i) = x(i) + 2 }",
        "def f(float(N) x) -> (y, z) { y(i) = x(i) z(i) = x(i) }",
    ]
    assert len({canonical_text(lower(text)) for text in texts}) == len(texts)
