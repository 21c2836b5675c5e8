"""Programs built in Python obey the rules of the language and equal those of a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tc.base.errors import RangeError, SemanticError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.lower.builder import ProgramBuilder, TensorHandle
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Expression,
    IteratorReference,
    Literal,
    PythonOrigin,
    Read,
    Reduction,
    Role,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
)
from tc.language.text.print_program import program_text
from tests.language.support import F32, lower, ranges

ROW, COLUMN, INNER = (IteratorReference(name) for name in "ijk")


def _times(left: Expression, right: Expression) -> Expression:
    return Binary(BinaryOperator.MULTIPLY, left, right, left.type)


def _plus(left: Expression, right: Expression) -> Expression:
    return Binary(BinaryOperator.ADD, left, right, left.type)


def _vector() -> tuple[ProgramBuilder, TensorHandle, TensorHandle]:
    """A builder with an argument x(N) and a tensor y of rank 1."""
    builder = ProgramBuilder("f")
    return builder, builder.argument("x", F32, [builder.size("N")]), builder.tensor("y", F32, 1)


def test_a_built_program_equals_that_of_the_text() -> None:
    builder = ProgramBuilder("mm")
    m, k, n = (builder.size(name) for name in "MKN")
    a, b = builder.argument("A", F32, (m, k)), builder.argument("B", F32, (k, n))
    c = builder.tensor("C", F32, 2)
    builder.statement(c(ROW, COLUMN), _times(a(ROW, INNER), b(INNER, COLUMN)), reduction=Reduction.ADD, initialize=True)
    program = builder.build(["C"])
    assert program == lower("def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }")
    origin = program.statements[0].origin
    assert isinstance(origin, PythonOrigin)
    assert Path(origin.file) == Path(__file__)
    assert lower(program_text(program)) == program


def test_ranges_conditions_and_scalars() -> None:
    builder, x, y = _vector()
    s = builder.scalar("s", ScalarType.INT64)
    condition = Binary(BinaryOperator.LESS, _plus(ROW, INNER), SizeReference("N"), ScalarType.BOOL)
    positive = Binary(BinaryOperator.GREATER, s, Literal(0, INDEX_TYPE), ScalarType.BOOL)
    builder.statement(
        y(ROW),
        x(_plus(ROW, INNER)),
        reduction=Reduction.MAXIMUM,
        initialize=True,
        ranges={"i": (0, SizeReference("N")), "k": (0, s)},
        conditions=[condition, positive],
        required=[x(ROW)],
    )
    program = builder.build(["y"])
    text = (
        "def f(float(N) x, int64 s) -> (y) { y(i) max=! x(i+k) where i in 0:N, k in 0:s, i+k < N, s > 0, exists x(i) }"
    )
    assert program == lower(text)


def test_sizes_stand_in_the_order_of_the_arguments() -> None:
    builder = ProgramBuilder("f")
    builder.size("M")
    x = builder.argument("x", F32, [builder.size("N")])
    z = builder.argument("z", F32, [builder.size("M")])
    builder.statement(builder.tensor("y", F32, 1)(ROW), _plus(x(ROW), z(ROW)))
    assert builder.build(["y"]) == lower("def f(float(N) x, float(M) z) -> (y) { y(i) = x(i) + z(i) }")


def test_updates_and_results_that_come_in() -> None:
    builder, x, y = _vector()
    builder.statement(y(ROW), _plus(y(ROW), x(ROW)))
    program = builder.build(["y"])
    assert program.tensor("y").role is Role.IN_OUT
    assert ranges(program.statements[0]) == {"i": "0:N"}


def test_temporaries_need_not_be_results() -> None:
    builder, x, y = _vector()
    t = builder.tensor("t", F32, 1)
    builder.statement(t(ROW), x(ROW))
    builder.statement(y(ROW), t(ROW))
    assert [tensor.role for tensor in builder.build(["y"]).tensors] == [Role.INPUT, Role.TEMPORARY, Role.OUTPUT]


Wrong = Callable[[ProgramBuilder, TensorHandle, TensorHandle], object]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda b, x, y: b.argument("x", F32, []), "`x` is declared already"),
        (lambda b, x, y: b.statement(y(ROW), x(ROW, COLUMN)), "`x` has 1 dimension, read with 2 subscripts"),
        (lambda b, x, y: b.statement(y(ROW), Read("z", (ROW,), F32)), "unknown tensor `z`"),
        (lambda b, x, y: b.statement(y(ROW), Read("x", (ROW,), ScalarType.INT8)), "`x` is float32, read as int8"),
        (lambda b, x, y: b.statement(y(ROW), x(x(ROW))), "a subscript of `x` is float32, not int64"),
        (lambda b, x, y: b.statement(y(ROW), ROW), "`y` is float32, the value is int64; cast it"),
        (lambda b, x, y: b.statement(y(ROW), _plus(x(ROW), ROW)), "`+` of float32 and int64 does not give float32"),
        (
            lambda b, x, y: b.statement(y(ROW), Binary(BinaryOperator.AND, x(ROW), x(ROW), F32)),
            "`&&` of float32 and float32 does not give float32",
        ),
        (
            lambda b, x, y: b.statement(y(ROW), Binary(BinaryOperator.LESS, x(ROW), x(ROW), F32)),
            "`<` of float32 and float32 does not give float32",
        ),
        (
            lambda b, x, y: b.statement(y(ROW), Unary(UnaryOperator.NOT, x(ROW), F32)),
            "`!` of float32 does not give float32",
        ),
        (
            lambda b, x, y: b.statement(y(ROW), Select(x(ROW), x(ROW), x(ROW), F32)),
            "a choice by float32 between float32 and float32 does not give float32",
        ),
        (lambda b, x, y: b.statement(y(ROW), Call("exq", (x(ROW),), F32)), "unknown function `exq`"),
        (lambda b, x, y: b.statement(y(ROW), Call("exp", (x(ROW), x(ROW)), F32)), "`exp` takes 1 argument, 2 given"),
        (lambda b, x, y: b.statement(y(ROW), Call("exp", (ROW,), F32)), "`exp` of int64 does not give float32"),
        (
            lambda b, x, y: b.statement(y(ROW), x(Call("exp", (ROW,), INDEX_TYPE))),
            "`exp` needs floating-point operands",
        ),
        (lambda b, x, y: b.statement(y(ROW), Literal(1, F32)), "1 is no literal of float32"),
        (
            lambda b, x, y: b.statement(y(Literal(2**63, INDEX_TYPE)), x(ROW)),
            "9223372036854775808 does not fit into int64",
        ),
        (lambda b, x, y: b.statement(y(ROW), x(SizeReference("M"))), "unknown size `M`"),
        (
            lambda b, x, y: b.statement(y(ROW), ScalarReference("a", F32)),
            "there is no scalar argument `a` of type float32",
        ),
        (lambda b, x, y: b.statement(x(ROW), x(ROW)), "`x` is an argument, and arguments are never written"),
        (lambda b, x, y: b.statement(y(ROW), x(ROW), conditions=[ROW]), "a condition must be bool"),
        (lambda b, x, y: b.statement(y(ROW), x(ROW), initialize=True), "only a reduction has a neutral element"),
        (
            lambda b, x, y: b.statement(y(IteratorReference("N")), x(IteratorReference("N"))),
            "the iterator `N` has the name of something else",
        ),
        (
            lambda b, x, y: b.statement(y(ROW), _times(x(ROW), x(INNER))),
            "a reduction without an operator: `k` stands only",
        ),
        (lambda b, x, y: b.build(["y"]), "the result `y` is never written"),
    ],
)
def test_rules_are_those_of_the_language(wrong: Wrong, message: str) -> None:
    with pytest.raises(SemanticError) as caught:
        wrong(*_vector())
    assert str(caught.value).startswith(message)


def test_a_new_value_needs_a_new_tensor() -> None:
    builder, x, y = _vector()
    z = builder.tensor("z", F32, 1)
    builder.statement(y(ROW), x(ROW))
    builder.statement(z(ROW), y(ROW))
    with pytest.raises(SemanticError, match="`y` was read already: a new value needs a tensor of its own"):
        builder.statement(y(ROW), z(ROW))


def test_what_only_the_whole_shows() -> None:
    builder, x, y = _vector()
    t = builder.tensor("t", F32, 1)
    builder.size("M")
    builder.statement(y(ROW), _plus(x(ROW), t(ROW)))
    with pytest.raises(SemanticError) as caught:
        builder.build(["y"])
    assert str(caught.value).splitlines() == [
        "no argument has the size `M` as an extent",
        "temporary `t` is read before it is written",
    ]
    builder, x, y = _vector()
    builder.statement(y(_plus(ROW, Literal(1, INDEX_TYPE))), x(ROW))
    with pytest.raises(RangeError, match=r"`y\(0\)` is never written"):
        builder.build(["y"])
