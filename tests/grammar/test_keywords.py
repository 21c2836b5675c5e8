"""No word is reserved: the words of the grammar, types, functions and even C keywords can all be names."""

from __future__ import annotations

import pytest

from tc.grammar.parser import parse
from tc.grammar.printer import print_text
from tc.grammar.syntax import Assign, Assignment, ConditionClause, DistinctClause, ExistsClause, LetClause, RangeClause
from tests.turns import one_in

from .nodes import (
    NOWHERE,
    apply,
    assign,
    binary,
    call,
    extent,
    identifiers,
    name,
    number,
    parameter,
    parse_definition,
    parse_statements,
    parse_where,
)

WORDS = [
    "def",
    "where",
    "in",
    "exists",
    "min",
    "max",
    "float",
    "int32",
    "exp",
    "for",
    "__global__",
    "NULL",
    "e5",
    "2LUT",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_can_name_everything(word: str) -> None:
    w = word
    text = (
        f"def {w}({w}({w}, 3) {w}, {w} {w}) -> ({w}, {w}) {{"
        f" {w}({w}) min= {w}({w}) - {w} where {w} in {w}:{w}, {w} = {w}, exists {w}({w}), {w} < {w}, {w}"
        f" {w} = {w} ? {w} : {w} * {w}.0 {w} += {w} where {w}; ({w}, {w}) = {w}({w}) {w} max=! {w} {w}() = {w} }}"
    )
    definition = parse_definition(text)
    n = name(w)
    assert definition.name == w
    assert definition.parameters == (parameter(w, (n, number(3)), w), parameter(w, None, w))
    assert definition.results == identifiers(w, w)
    assert [type(statement).__name__ for statement in definition.statements] == [
        *["Assign"] * 3,
        "CallStatement",
        *["Assign"] * 2,
    ]
    assert definition.statements[0] == assign(
        w,
        (n,),
        binary("-", apply(w, n), n),
        RangeClause(n, n, n, NOWHERE),
        LetClause(w, n, NOWHERE, NOWHERE),
        ExistsClause(apply(w, n), NOWHERE),
        ConditionClause(binary("<", n, n), NOWHERE),
        ConditionClause(n, NOWHERE),
        assignment=Assignment.MINIMUM,
    )
    assert definition.statements[2:] == (
        assign(w, None, n, ConditionClause(n, NOWHERE), assignment=Assignment.ADD),
        call((w, w), w, n),
        assign(w, None, n, assignment=Assignment.MAXIMUM_INITIALIZED),
        assign(w, (), n),
    )
    assert parse(print_text(parse(text))) == parse(text)


@one_in(2)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("before", ["a", "a(i)", "1", "T.0", "a where i < j", "a where i in 0:N", "a where x = i"])
@pytest.mark.parametrize("target", ["{} =", "{} min=", "{}() =", "{} (i, j) +=!", "{}(I(f(i)), j)\n # ()\n *="])
def test_any_word_can_be_the_target_of_the_next_statement(word: str, before: str, target: str) -> None:
    statement = f"{target.format(word)} 3"
    assert parse_statements(f"c = {before} {statement}") == (
        *parse_statements(f"c = {before}"),
        *parse_statements(statement),
    )


def test_minimum_is_an_operator_only_behind_a_target() -> None:
    minimum = apply("min", name("a"), name("b"))
    assert parse_statements("min(i) min= min(a, b)") == (
        assign("min", (name("i"),), minimum, assignment=Assignment.MINIMUM),
    )
    assert parse_statements("c = min min= 3") == (assign("c", None, name("min")), assign("min", None, number(3)))
    assert parse_statements("min min= min min = 3") == (
        assign("min", None, name("min"), assignment=Assignment.MINIMUM),
        assign("min", None, number(3)),
    )


def test_where_is_a_keyword_behind_a_value() -> None:
    condition = ConditionClause(binary("<", binary("+", name("i"), number(1)), name("n")), NOWHERE)
    assert parse_statements("c = a where (i + 1) < n") == (assign("c", None, name("a"), condition),)
    assert parse_statements("c = where where (i + 1) < n") == (assign("c", None, name("where"), condition),)


def test_in_is_a_keyword_behind_the_subject_of_a_range() -> None:
    assert parse_where("i in (a):(b)") == (RangeClause(name("i"), name("a"), name("b"), NOWHERE),)
    assert parse_where("in in in:in") == (RangeClause(name("in"), name("in"), name("in"), NOWHERE),)
    assert parse_where("i in min == 3:4") == (
        RangeClause(name("i"), binary("==", name("min"), number(3)), number(4), NOWHERE),
    )


def test_exists_is_a_keyword_before_an_access() -> None:
    assert parse_where("exists exists(exists)") == (ExistsClause(apply("exists", name("exists")), NOWHERE),)
    assert parse_where("exists in(i)") == (ExistsClause(apply("in", name("i")), NOWHERE),)
    assert parse_where("exists # here\nT()") == (ExistsClause(apply("T"), NOWHERE),)
    assert parse_where("exists in 0:3") == (RangeClause(name("exists"), number(0), number(3), NOWHERE),)
    assert parse_where("exists(i), exists") == (
        ConditionClause(apply("exists", name("i")), NOWHERE),
        ConditionClause(name("exists"), NOWHERE),
    )


def test_distinct_is_a_keyword_before_a_name() -> None:
    assert parse_where("distinct distinct, distinct 2LUT") == (
        DistinctClause("distinct", NOWHERE, NOWHERE),
        DistinctClause("2LUT", NOWHERE, NOWHERE),
    )
    assert parse_where("distinct in 0:3") == (RangeClause(name("distinct"), number(0), number(3), NOWHERE),)
    assert parse_where("distinct(i), distinct = 3, distinct") == (
        ConditionClause(apply("distinct", name("i")), NOWHERE),
        LetClause("distinct", number(3), NOWHERE, NOWHERE),
        ConditionClause(name("distinct"), NOWHERE),
    )
    first, second = parse_statements("a(i) = b(i) where distinct c(i) = d(i)")
    assert isinstance(first, Assign)
    assert isinstance(second, Assign)
    assert (first.where, second.target) == ((ConditionClause(name("distinct"), NOWHERE),), "c")
    first, second = parse_statements("a(I(b)) = v(b) where distinct I c(i) = d(i)")
    assert isinstance(first, Assign)
    assert first.where == (DistinctClause("I", NOWHERE, NOWHERE),)


@pytest.mark.parametrize("word", ["2LUT", "1e", "0x", "0xg", "1e5x", "2ff", "3d", "1_", "0b1", "e5", "_", "1e5e5"])
def test_names_may_start_with_digits(word: str) -> None:
    assert parse_statements(f"{word}(i) = {word}({word}) + {word}.0") == (
        assign(word, (name("i"),), binary("+", apply(word, name(word)), extent(word, 0))),
    )
