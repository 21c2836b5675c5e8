"""Every construct of the grammar becomes the tree that it says."""

from __future__ import annotations

import pytest

from tc.grammar.parser import parse
from tc.grammar.syntax import (
    Assign,
    Assignment,
    BinaryOperator,
    Conditional,
    ConditionClause,
    ExistsClause,
    LetClause,
    Number,
    RangeClause,
    Unary,
    UnaryOperator,
)

from .nodes import (
    NOWHERE,
    apply,
    assign,
    binary,
    call,
    extent,
    identifiers,
    name,
    negate,
    number,
    parameter,
    parse_definition,
    parse_expression,
    parse_statements,
    parse_where,
)


def test_definition_has_parameters_results_and_statements() -> None:
    definition = parse_definition(
        "def mm(float(M, K) A, float16(K,129) B, int sh, double() s) -> (C, D) { C(m,n) +=! A(m,r_k) * B(r_k,n) D = s }"
    )
    assert definition.name == "mm"
    assert definition.parameters == (
        parameter("float", (name("M"), name("K")), "A"),
        parameter("float16", (name("K"), number(129)), "B"),
        parameter("int", None, "sh"),
        parameter("double", (), "s"),
    )
    assert definition.results == identifiers("C", "D")
    product = binary("*", apply("A", name("m"), name("r_k")), apply("B", name("r_k"), name("n")))
    assert definition.statements == (
        assign("C", (name("m"), name("n")), product, assignment=Assignment.ADD_INITIALIZED),
        assign("D", None, name("s")),
    )


def test_definition_without_parameters_and_statements() -> None:
    definition = parse_definition("def f()->(a){}")
    assert (definition.parameters, definition.results, definition.statements) == ((), identifiers("a"), ())


def test_several_definitions_in_order() -> None:
    text = parse("def f() -> (a) { a = 1 }\ndef g() -> (b) { b = 2 } def f() -> (c) { c = 3 }")
    assert [definition.name for definition in text.definitions] == ["f", "g", "f"]


@pytest.mark.parametrize("assignment", list(Assignment))
def test_every_assignment(assignment: Assignment) -> None:
    (statement,) = parse_statements(f"c(i) {assignment.value} a(i)")
    assert statement == assign("c", (name("i"),), apply("a", name("i")), assignment=assignment)


@pytest.mark.parametrize("assignment", list(Assignment))
def test_white_space_around_an_assignment_is_free(assignment: Assignment) -> None:
    assert parse_statements(f"c(){assignment.value}a") == parse_statements(f"c()\n\t{assignment.value}  a")


def test_exclamation_mark_belongs_to_the_assignment_only_without_space() -> None:
    negation = Unary(UnaryOperator.NOT, name("x"), NOWHERE)
    assert parse_statements("c +=!x") == (assign("c", None, name("x"), assignment=Assignment.ADD_INITIALIZED),)
    assert parse_statements("c += !x") == (assign("c", None, negation, assignment=Assignment.ADD),)
    assert parse_statements("c =!x") == (assign("c", None, negation),)


def test_target_subscripts_are_expressions_or_empty_or_absent() -> None:
    concatenation = (name("b"), binary("+", name("c"), name("C1")))
    assert parse_statements("O(b, c + C1) = 1") == (assign("O", concatenation, number(1)),)
    assert parse_statements("O() = 1") == (assign("O", (), number(1)),)
    assert parse_statements("O = 1") == (assign("O", None, number(1)),)


def test_calls_of_definitions() -> None:
    assert parse_statements("(C1, C2) = 2LUT(T1, I1)") == (call(("C1", "C2"), "2LUT", name("T1"), name("I1")),)
    assert parse_statements("(C) = f()") == (call(("C",), "f"),)
    assert parse_statements("I = concat(A, B)") == (assign("I", None, apply("concat", name("A"), name("B"))),)


def test_white_space_separates_statements() -> None:
    copies = (assign("c", (name("i"),), apply("a", name("i"))), assign("b", (name("i"),), apply("c", name("i"))))
    for separator in (" ", "\n", "\r\n", ";", " ; ", "# and then\n", ";# and then\n"):
        assert parse_statements(f"c(i) = a(i){separator}b(i) = c(i)") == copies
    assert parse_statements("c(i) = a(i) b(i) = c(i);") == copies


@pytest.mark.parametrize("end", ["1", "a(i)", "T.0", "(a)", "b ? 1 : 2.5", "a where i in 0:3", "a where i < 3"])
def test_a_list_of_results_starts_a_statement_behind_everything_but_a_bare_name(end: str) -> None:
    first, second = parse_statements(f"c = {end} (x, y) = f(c)")
    assert isinstance(first, Assign)
    assert second == call(("x", "y"), "f", name("c"))


def test_a_bare_name_and_a_parenthesis_are_an_application_unless_separated() -> None:
    assert parse_statements("c = x (a, b)") == (assign("c", None, apply("x", name("a"), name("b"))),)
    assert parse_statements("c = x; (a, b) = f(y)") == (
        assign("c", None, name("x")),
        call(("a", "b"), "f", name("y")),
    )


def test_comments_reach_to_the_end_of_the_line() -> None:
    text = "# first\ndef f() -> (c) { # def g() -> (d) {\n c = 1 # + 2\n # }\n } # last"
    assert parse(text) == parse("def f() -> (c) { c = 1 }")


def test_clauses_of_where() -> None:
    i, j, r, k = name("i"), name("j"), name("r"), name("k")
    assert parse_where("i in 0:N, r-k in a.0 - 1 : 2*M, x = i + 1, exists T(i, j), i < j && j < 3") == (
        RangeClause(i, number(0), name("N"), NOWHERE),
        RangeClause(
            binary("-", r, k),
            binary("-", extent("a", 0), number(1)),
            binary("*", number(2), name("M")),
            NOWHERE,
        ),
        LetClause("x", binary("+", i, number(1)), NOWHERE, NOWHERE),
        ExistsClause(apply("T", i, j), NOWHERE),
        ConditionClause(binary("&&", binary("<", i, j), binary("<", j, number(3))), NOWHERE),
    )


def test_a_statement_follows_every_kind_of_clause() -> None:
    for clause in ("i in 0:N", "x = i + 1", "x = i", "exists T(i)", "i < j", "flag", "(i) < n"):
        first, second = parse_statements(f"c = a where {clause} y(j) = 3")
        assert isinstance(first, Assign)
        assert first.where == parse_where(clause)
        assert second == assign("y", (name("j"),), number(3))


def test_conditionals_in_a_range() -> None:
    conditional = Conditional(name("p"), name("q"), name("r"), NOWHERE)
    clause = RangeClause(name("i"), conditional, conditional, NOWHERE)
    assert parse_where("i in p ? q : r : p ? q : r") == (clause,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("18446744073709551615", 2**64 - 1),
        ("0x1f", 31),
        ("0XfF", 255),
        ("1e-5", 1e-5),
        ("1e5", 1e5),
        ("2E+3", 2000.0),
        (".5", 0.5),
        ("4.0", 4.0),
        ("4.", 4.0),
        ("1.5e3f", 1500.0),
        ("2f", 2.0),
        ("0.25F", 0.25),
        ("007.5", 7.5),
        ("5e-324", 5e-324),
        ("1e-999", 0.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    parsed = parse_expression(text)
    assert parsed == number(value)
    assert isinstance(parsed, Number)
    assert type(parsed.value) is type(value)


def test_extents_are_neither_names_nor_numbers() -> None:
    assert parse_expression("T.0") == extent("T", 0)
    assert parse_expression("2LUT.1+.0") == binary("+", extent("2LUT", 1), number(0.0))
    assert parse_expression("T . 12") == extent("T", 12)


_LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]


@pytest.mark.parametrize("level", range(len(_LEVELS)))
def test_operators_group_to_the_left_and_bind_as_in_c(level: int) -> None:
    a, b, c = name("a"), name("b"), name("c")
    for operator in _LEVELS[level]:
        for same in _LEVELS[level]:
            assert parse_expression(f"a {operator} b{same}c") == binary(same, binary(operator, a, b), c)
        for looser in (looser for looser_level in _LEVELS[:level] for looser in looser_level):
            assert parse_expression(f"a {looser} b {operator} c") == binary(looser, a, binary(operator, b, c))
            assert parse_expression(f"a {operator} b {looser} c") == binary(looser, binary(operator, a, b), c)


def test_all_operators_are_tested() -> None:
    assert {operator for level in _LEVELS for operator in level} == {operator.value for operator in BinaryOperator}


def test_prefix_operators_bind_most_tightly() -> None:
    a, b = name("a"), name("b")
    assert parse_expression("-a * b") == binary("*", negate(a), b)
    assert parse_expression("a - -b") == binary("-", a, negate(b))
    assert parse_expression("a--b") == binary("-", a, negate(b))
    assert parse_expression("!-!a") == Unary(UnaryOperator.NOT, negate(Unary(UnaryOperator.NOT, a, NOWHERE)), NOWHERE)
    assert parse_expression("!a == b") == binary("==", Unary(UnaryOperator.NOT, a, NOWHERE), b)
    assert parse_expression("-1") == negate(number(1))


def test_conditionals_group_to_the_right_and_bind_least() -> None:
    a, b, c, d, e = (name(text) for text in "abcde")
    inner = Conditional(c, d, e, NOWHERE)
    assert parse_expression("a ? b : c ? d : e") == Conditional(a, b, inner, NOWHERE)
    assert parse_expression("a ? c ? d : e : b") == Conditional(a, inner, b, NOWHERE)
    assert parse_expression("a || b ? c : d || e") == Conditional(binary("||", a, b), c, binary("||", d, e), NOWHERE)
    assert parse_expression("i>=1?x(i-1):.0") == Conditional(
        binary(">=", name("i"), number(1)),
        apply("x", binary("-", name("i"), number(1))),
        number(0.0),
        NOWHERE,
    )


def test_parentheses_group_and_leave_no_trace() -> None:
    a, b, c = name("a"), name("b"), name("c")
    assert parse_expression("a * (b + c)") == binary("*", a, binary("+", b, c))
    assert parse_expression("((a))") == a


def test_applications_nest_and_may_have_no_arguments() -> None:
    gather = apply("X", apply("I", name("i"), name("j")), number(0))
    assert parse_expression("X(I(i, j), 0)") == gather
    assert parse_expression("s()") == apply("s")
    assert parse_expression("float(a < b)") == apply("float", binary("<", name("a"), name("b")))
