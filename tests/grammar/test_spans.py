"""Every node knows the characters from which it came."""

from __future__ import annotations

from tc.base.errors import Span
from tc.grammar.parser import parse
from tc.grammar.syntax import (
    Assign,
    Binary,
    CallStatement,
    Conditional,
    ConditionClause,
    ExistsClause,
    LetClause,
    Name,
    RangeClause,
    Unary,
)

TEXT = """# a comment
def f(float(N, 4) A, int sh) -> (C, D) {
    C(i + 1) +=! -(A(i, 0) + 2.5) * A.1  # the value
        where i - 1 in 0:(N), x = sh * 2, exists A(i, x), i < (N);
    (D) = g(A, sh) E = (i ? 1 : 2)
}
"""


def at(span: Span) -> str:
    return TEXT[span.start : span.end]


def test_spans_of_definitions_and_parameters() -> None:
    (definition,) = parse(TEXT).definitions
    assert at(definition.span) == TEXT[TEXT.index("def") : TEXT.rindex("}") + 1]
    assert at(definition.name_span) == "f"
    tensor, scalar = definition.parameters
    assert [at(span) for span in (tensor.span, tensor.type_span, tensor.name_span)] == ["float(N, 4) A", "float", "A"]
    assert [at(span) for span in (scalar.span, scalar.type_span, scalar.name_span)] == ["int sh", "int", "sh"]
    assert tensor.dimensions is not None
    assert [at(size.span) for size in tensor.dimensions] == ["N", "4"]
    assert [at(result.span) for result in definition.results] == ["C", "D"]


def test_spans_of_statements_and_clauses() -> None:
    first, second, third = parse(TEXT).definitions[0].statements
    assert isinstance(first, Assign)
    assert at(first.span).startswith("C(i + 1) +=! -(A")
    assert at(first.span).endswith("i < (N)")
    assert (at(first.target_span), at(first.assignment_span)) == ("C", "+=!")
    between, let, exists, condition = first.where
    assert isinstance(between, RangeClause)
    assert [at(node.span) for node in (between, between.subject, between.begin, between.end)] == [
        "i - 1 in 0:(N)",
        "i - 1",
        "0",
        "(N)",
    ]
    assert isinstance(let, LetClause)
    assert [at(span) for span in (let.span, let.name_span, let.value.span)] == ["x = sh * 2", "x", "sh * 2"]
    assert isinstance(exists, ExistsClause)
    assert [at(span) for span in (exists.span, exists.access.span)] == ["exists A(i, x)", "A(i, x)"]
    assert isinstance(condition, ConditionClause)
    assert at(condition.span) == "i < (N)"
    assert isinstance(second, CallStatement)
    assert at(second.span) == "(D) = g(A, sh)"
    assert [at(span) for span in (second.results[0].span, second.callee.span)] == ["D", "g"]
    assert [at(argument.span) for argument in second.arguments] == ["A", "sh"]
    assert at(third.span) == "E = (i ? 1 : 2)"


def test_spans_of_expressions_hold_their_parentheses() -> None:
    first, _, third = parse(TEXT).definitions[0].statements
    assert isinstance(first, Assign)
    product = first.value
    assert isinstance(product, Binary)
    assert at(product.span) == "-(A(i, 0) + 2.5) * A.1"
    assert (at(product.left.span), at(product.right.span)) == ("-(A(i, 0) + 2.5)", "A.1")
    assert isinstance(product.left, Unary)
    total = product.left.operand
    assert isinstance(total, Binary)
    assert [at(node.span) for node in (total, total.left, total.right)] == ["(A(i, 0) + 2.5)", "A(i, 0)", "2.5"]
    assert isinstance(third, Assign)
    choice = third.value
    assert isinstance(choice, Conditional)
    assert [at(node.span) for node in (choice, choice.condition, choice.then, choice.otherwise)] == [
        "(i ? 1 : 2)",
        "i",
        "1",
        "2",
    ]


def test_spans_do_not_count_in_comparisons() -> None:
    assert parse(TEXT) == parse(TEXT.replace(" + ", "+"))
    assert hash(parse(TEXT)) == hash(parse(TEXT + "\n"))
    assert Name("i", Span(0, 1)) == Name("i", Span(7, 8))
