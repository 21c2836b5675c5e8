"""Blocks: what their names mean, which values their statements share, and what must have been written before."""

from __future__ import annotations

import pytest

import tc
from tc.base.errors import RangeError, SemanticError
from tc.language.program.program import Role
from tc.language.text.canonical import canonical_text
from tc.language.text.print_program import program_text
from tests.language.support import body, complaints, definition, lower, ranges, shape

RNN = """
def rnn(float(T,B,I) x, float(I,H) W, float(H,H) U, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i) where i in 0:H
    for t in 0:T {
        z(t,b,i) +=! x(t,b,k) * W(k,i)
        z(t,b,i) += h(t,b,j) * U(j,i)
        h(t+1,b,i) = tanh(z(t,b,i))
    }
}
"""


def test_iterators_of_blocks_come_first_and_all_statements_share_one_value() -> None:
    program = lower(RNN)
    assert [statement.blocks for statement in program.statements] == [(), (0,), (0,), (0,)]
    assert ranges(program.statements[2]) == {"t": "0:T", "b": "0:B", "i": "0:H", "j": "0:H"}
    assert [tensor.name for tensor in program.tensors if tensor.role is not Role.INPUT] == ["h", "z"]
    assert shape(program, "h") == ["T + 1", "B", "H"]
    assert program.tensor("h").role is Role.OUTPUT


@pytest.mark.parametrize(
    "text",
    [
        RNN,
        definition("for s in 0:3 { for t in s:M { a(s) +=! A(t,n) O(t) = a(s) where t > s } O(0) = a(s) }"),
        definition("O(m) = A(m,0) for t in 0:3 { O(m) = (m >= 1 ? O(m-1) : O(m+1)) where m in 0:M-1 }"),
        definition("O(m) = A(m,0) for k in 0:N { O(m) min= A(m,k) + O(0) } for k in 0:N { O(m) += A(m,k) }"),
        RNN
        + "def two(float(T,B,H) t, float(H,H) W, float(B,H) h0) -> (O) { h = rnn(t, W, W, h0)\n O(s) +=! h(s,b,j) }",
    ],
)
def test_programs_with_blocks_print_as_texts_that_mean_the_same(text: str) -> None:
    program = lower(text)
    printed = lower(program_text(program))
    assert printed == program
    assert canonical_text(lower(canonical_text(program))) == canonical_text(program)


def test_the_canonical_text_tells_blocks_apart() -> None:
    one = body("for k in 0:N { a(m) = A(m,k) O(m,k) = a(m) }")
    two = body("for k in 0:N { a(m,k) = A(m,k) } for k in 0:N { O(m,k) = a(m,k) }")
    assert canonical_text(one) != canonical_text(two)
    assert canonical_text(one) == canonical_text(body("for q in 0:N { c(r) = A(r,q) O(r,q) = c(r) }"))


def test_ranges_of_other_iterators_may_depend_on_the_step() -> None:
    program = body("for t in 0:M { O(t) +=! A(t,n) where n in 0:min(t, N) }")
    assert ranges(program.statements[0]) == {"t": "0:M", "n": "0:min(t, N)"}


# --- what a step reads -----------------------------------------------------------------------------------------------


def test_what_a_step_may_overwrite_is_copied_before() -> None:
    program = body("O(i,j) = A(i,j) where j in 0:M for k in 0:M { O(i,j) min= O(i,k) + O(k,j) }", "float(M,M) A")
    lines = program_text(program).split("\n")
    assert [line.strip() for line in lines[2:6]] == [
        "for k in 0:M {",
        "O_before(i) = O(i, k) where i in 0:M",
        "O_before_1(j) = O(k, j) where j in 0:M",
        "O(i, j) min= O_before(i) + O_before_1(j) where i in 0:M, j in 0:M",
    ]


def test_a_read_on_a_condition_of_all_steps_is_copied_on_it() -> None:
    # As a condition of the copy, it would be one that every call has to meet.
    program = body("O(i) = A(i) for t in 0:M { O(i) += M == 7 ? A(i) : O(0) }", "float(M) A")
    text = program_text(program)
    assert "O_before() = !(M == 7) ? O(0) : 0.0\n" in text
    assert tc.define(text).single().program == program


def test_all_of_the_target_is_copied_where_indices_choose_what_is_read() -> None:
    program = body("O(i) = A(i) for t in 0:T { O(i) = O(I(i)) + O(i) }", "float(M) A, int32(M) I, float(T) x")
    assert "O_before(i) = O(i) where i in 0:M\n        O(i) = O_before(I(i)) + O(i)" in program_text(program)


def test_elements_of_other_steps_are_read_where_they_are_also_behind_a_remainder() -> None:
    text = "for t in 0:T { h(t+1,(i+1)%N) += h(t,i) * x(t,i) where i in 0:N }"
    program = (
        tc.define(f"def f(float(T,N) x) -> (h) {{ h(t,i) = 0 where t in 0:T+1, i in 0:N  {text} }}").single().program
    )
    assert len(program.statements) == 2


def test_elements_of_other_steps_are_read_where_they_are() -> None:
    program = body("O(0,i) = A(0,i) for t in 1:M { O(t,i) +=! O(t-1,j) * A(t,i) where j in 0:N }")
    assert len(program.statements) == 2


def test_a_result_that_a_block_overwrites_comes_in() -> None:
    assert body("for t in 0:M { O(i) = O(i) + A(t,i) }").tensor("O").role is Role.IN_OUT
    assert body("for t in 0:M { O(i) = O(i-1) + A(t,i) where i in 1:N }").tensor("O").role is Role.IN_OUT
    assert body("for t in 0:M { O(t) = t > 0 ? O(t-1) + A(t,0) : A(t,0) }").tensor("O").role is Role.OUTPUT


def test_what_an_earlier_step_wrote_may_be_read_further_up() -> None:
    program = body("for t in 0:M { O(t) = t > 0 ? a(t-1) : float(0) a(t) = A(t,0) }")
    assert program.tensor("a").role is Role.TEMPORARY


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            "for t in 0:M { O(t+1) = O(t) + A(t,0) }",
            (
                "`O(0)` is read at t = 0 before it is written [write these elements of `O` before the block, or read "
                "them only where they are written: `t > 0 ? O(t) : 0`]"
            ),
        ),
        (
            "for t in 0:M { O(t) = a(t) a(t) = A(t,0) }",
            (
                "`a(0)` is read at t = 0 before it is written [write these elements of `a` before the block, or let "
                "the statement that writes them in this step come first]"
            ),
        ),
        (
            "O(0) = A(0,0) O(1) = A(0,1) for t in 2:M { O(t) = O(t-1) + O(t-3) where t in 3:M }",
            (
                "`O(2)` is read at t = 3 before it is written [write these elements of `O` before the block, or read "
                "them only where they are written: `t > 0 ? O(t - 1) : 0`]"
            ),
        ),
        (
            "for s in 0:M { for t in 0:N { a(t) = A(s,t) O(s,t) = s > 0 ? a(t+1) : a(0) where t in 0:N-1 } }",
            None,
        ),
        (
            "for s in 0:M { for t in 0:N { O(s,t) = a(t) } a(t) = A(s,t) }",
            (
                "`a(0)` is read at s = 0, t = 0 before it is written [write these elements of `a` before the block, or "
                "read them only where they are written: `t > 0 ? a(t) : 0`]"
            ),
        ),
    ],
)
def test_what_nothing_wrote_before_is_refused_with_the_step(statements: str, message: str | None) -> None:
    text = definition(statements)
    if message is None:
        lower(text)
    else:
        assert message in complaints(text, SemanticError)


def test_what_only_some_sizes_leave_unwritten_is_refused_for_these() -> None:
    text = "def f(float(N) x, int S) -> (y) { y(i) = x(i) where i in 0:3 for t in S:N { y(t) = y(t-1) + x(t) } }"
    f = tc.define(text).single()
    assert f.output_shapes((6,), 3) == {"y": (6,)}
    f.specialize((6,), 3)
    with pytest.raises(RangeError, match=r"`y\(3\)` is read at t = 4 before it is written"):
        f.specialize((6,), 4)


# --- names and ranges ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("for M in 0:3 { O(m) +=! A(m,n) }", "`M` has a meaning already [choose another name]"),
        ("for A in 0:3 { O(m) +=! A(m,n) }", "`A` has a meaning already [choose another name]"),
        (
            "for t in 0:3 { for t in 0:2 { O(t) +=! A(t,n) } }",
            "`t` counts the steps of a block around this one [rename it]",
        ),
        (
            "for t in 0:m { O(t) +=! A(t,n) }",
            (
                "unknown name `m`: the range of a block depends on sizes, integer scalars, and the iterators of blocks "
                "around it [did you mean the size `M`? Else declare it: `int m` among the parameters; an index needs a "
                "range: `where m in 0:N`]"
            ),
        ),
        (
            "for t in 0:A(0,0) { O(t) +=! A(t,n) }",
            "a subscript or a range needs an integer, this is float32 [cast it: `int64(...)`]",
        ),
        (
            "for t in 0:int64(A(0,0)) { O(t) +=! A(t,n) }",
            (
                "a `where` must not read tensors, this one reads `A` [choose inside the value instead: "
                "`condition ? value : 0`]"
            ),
        ),
        ("for t in 0:3 { O(m) = A(m,t) where t = 2 }", "`t` has a meaning already [choose another name]"),
        (
            "a = g(A) for t in 0:3 { b = g(A) O(m) = a(m) + b(m) }",
            "`g` is called in a block, where each step would call it [write its statements in its place]",
        ),
    ],
)
def test_names_of_blocks_are_their_own(statements: str, message: str) -> None:
    other = "def g(float(M,N) A) -> (O) { O(m) +=! A(m,n) }\n"
    found = complaints((other if "g(A)" in statements else "") + definition(statements), SemanticError)
    assert message in found
    assert len(found) == len(set(found))


def test_a_range_below_zero_is_refused_once() -> None:
    (message,) = complaints(definition("for t in -1:M { a(0) = A(0,0) O(t+1) = a(0) }"), RangeError)
    assert message.startswith("the range of `t` begins at -1; iterators are never negative")


def test_elements_outside_of_blocks_are_still_written_once() -> None:
    messages = complaints(definition("O(m) = A(m,0) O(m) = A(m,1)"), SemanticError)
    assert "`O(0)` is written twice" in messages[0]
    lower(definition("O(m) = A(m,0) for t in 0:N { O(m) = A(m,t) }"))
    (message,) = complaints(definition("for t in 0:3 { O(m) = A(m,n) where n in 0:N, m >= n }"), SemanticError)
    assert "a reduction without an operator" in message
