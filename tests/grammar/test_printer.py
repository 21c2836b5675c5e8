"""What the printer writes reads back as the same tree, and is written in one way only."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from tc.grammar.parser import parse
from tc.grammar.printer import print_definition, print_expression, print_statement, print_text
from tc.grammar.syntax import ConditionClause, Definition, Expression, Number, RangeClause, Statement, Text

from .nodes import (
    NOWHERE,
    apply,
    assign,
    binary,
    call,
    identifiers,
    name,
    negate,
    number,
    parse_definition,
    parse_expression,
    parse_statements,
)
from .strategies import expressions, statements, texts


@given(texts)
@settings(max_examples=50)
def test_texts_read_back_equal(text: Text) -> None:
    assert parse(print_text(text)) == text


@given(expressions)
@settings(max_examples=150)
def test_expressions_read_back_equal(expression: Expression) -> None:
    printed = print_expression(expression)
    parsed = parse_expression(printed)
    assert parsed == expression
    assert print_expression(parsed) == printed


@given(statements)
@settings(max_examples=100)
def test_statements_read_back_equal(statement: Statement) -> None:
    assert parse_statements(print_statement(statement)) == (statement,)


def test_layout() -> None:
    text = (
        "def f(float(N,4)A,int s)->(C,D){C(i)+=!A(i,r)*s where r in 0:4,exists A(i,r);(D)=g(A)}"
        "def h()->(x){x=1}def e() -> (y) { }"
    )
    assert print_text(parse(text)) == (
        "def f(float(N, 4) A, int s) -> (C, D) {\n"
        "    C(i) +=! A(i, r) * s where r in 0:4, exists A(i, r);\n"
        "    (D) = g(A)\n"
        "}\n"
        "\n"
        "def h() -> (x) {\n"
        "    x = 1\n"
        "}\n"
        "\n"
        "def e() -> (y) {\n"
        "}\n"
    )


@pytest.mark.parametrize(
    "canonical",
    [
        "a - b - c",
        "a - (b - c)",
        "(a + b) * c / d % e",
        "a + b * c",
        "-(a + b)",
        "--a",
        "!(!a && b) || c",
        "-f(-a)",
        "-a.0",
        "a < b == c < d",
        "(a == b) < c",
        "(a < b) < c",
        "(a == b) != c",
        "a ? b : c ? d : e",
        "a ? b ? c : d : e",
        "(a ? b : c) ? d : e",
        "(a ? b : c) + d",
        "a || b ? c : d",
        "f((a ? b : c) + 1, T.0, s())",
        "4 + 4.0 + 1e-05 + 1e+16 + 5e-324",
    ],
)
def test_canonical_expressions_stay_as_they_are(canonical: str) -> None:
    assert print_expression(parse_expression(canonical)) == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("((a))", "a"),
        ("(a*b)+(c/d)", "a * b + c / d"),
        ("(a-b)-c", "a - b - c"),
        ("a?b:(c?d:e)", "a ? b : c ? d : e"),
        ("- -(a)", "--a"),
        ("0x10 + 4. + .5f + 1E5", "16 + 4.0 + 0.5 + 100000.0"),
    ],
)
def test_expressions_have_one_spelling(written: str, canonical: str) -> None:
    assert print_expression(parse_expression(written)) == canonical


def test_negative_numbers_print_as_negations() -> None:
    assert print_expression(binary("-", number(-1), number(-2.5))) == "-1 - -2.5"
    assert print_expression(number(-0.0)) == "-0.0"
    assert print_expression(negate(number(-1))) == "--1"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_without_literal_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="has no literal in the language"):
        print_expression(Number(value, NOWHERE))


def test_semicolons_stand_only_before_what_could_be_read_on() -> None:
    definition = parse_definition(
        "def f() -> (a) { a = x; (b) = f(a) c = 1; where(i) = 3 in = 4; in(i) = c exists(i) = c; min = 3 }"
    )
    assert print_definition(definition) == (
        "def f() -> (a) {\n"
        "    a = x;\n"
        "    (b) = f(a)\n"
        "    c = 1;\n"
        "    where(i) = 3;\n"
        "    in = 4;\n"
        "    in(i) = c\n"
        "    exists(i) = c\n"
        "    min = 3\n"
        "}"
    )


def test_deeply_subscripted_targets_read_back() -> None:
    subscript = apply("a", apply("b", apply("c", apply("d", name("i")))))
    for target in ("where", "in", "exists"):
        condition = ConditionClause(name("i"), NOWHERE)
        body = (assign("x", None, name("y"), condition), assign(target, (subscript,), number(1)), call(("z",), "f"))
        text = Text((Definition("f", (), identifiers("x"), body, NOWHERE, NOWHERE),))
        assert parse(print_text(text)) == text


def test_a_variable_called_exists_is_not_taken_for_the_keyword() -> None:
    begin = binary("*", binary("+", name("a"), name("b")), name("c"))
    clauses = (RangeClause(name("exists"), begin, number(3), NOWHERE), ConditionClause(name("exists"), NOWHERE))
    statement = assign("x", None, name("y"), *clauses)
    assert print_statement(statement) == "x = y where (exists) in (a + b) * c:3, (exists)"
    following = assign("z", (name("i"),), number(1))
    printed = print_statement(statement) + "\n" + print_statement(following)
    assert parse_statements(printed) == (statement, following)
