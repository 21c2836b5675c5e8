"""Integer and boolean values: wrapping, truncating, never crashing, in every type and at every edge."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.grammar.syntax import UnaryOperator
from tc.language.program.program import Call, Cast, Expression, Literal, Select, Unary
from tests.codegen.build import binary, negate, read
from tests.codegen.harness import dtype_of, evaluate
from tests.codegen.integers import INTEGERS, edges, quotient, wrapped
from tests.turns import one_in

Operation: TypeAlias = Callable[[int, int], int]

LITERALS = (1, 2, 3, 7)


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * quotient(a, b)


def by(operation: Operation, divisor: int) -> Operation:
    """The operation on the first operand and a constant."""
    return lambda a, _: operation(a, divisor)


def operations(type: ScalarType) -> dict[str, tuple[Expression, Operation]]:
    """Expressions in tensors a and b, and what they give."""
    a, b = read("a", type, "i"), read("b", type, "i")

    def call(name: str, *arguments: Expression) -> Call:
        return Call(name, arguments, type)

    least = Literal(type.minimum, type)
    found: dict[str, tuple[Expression, Operation]] = {
        "add": (binary("+", a, b), lambda a, b: a + b),
        "subtract": (binary("-", a, b), lambda a, b: a - b),
        "multiply": (binary("*", a, b), lambda a, b: a * b),
        "divide": (binary("/", a, b), quotient),
        "remainder": (binary("%", a, b), remainder),
        "negate": (negate(a), lambda a, b: -a),
        "negate_twice": (negate(negate(a)), lambda a, b: a),
        "min": (call("min", a, b), min),
        "max": (call("max", a, b), max),
        "abs": (call("abs", a), lambda a, b: abs(a)),
        "widths": (binary("/", binary("+", a, b), Literal(2, type)), lambda a, b: quotient(wrapped(a + b, type), 2)),
        "square": (binary("*", binary("*", a, a), b), lambda a, b: a * a * b),
        "least": (binary("-", least, a), lambda a, b: type.minimum - a),
        "most": (binary("+", Literal(type.maximum, type), a), lambda a, b: type.maximum + a),
        "less": (binary("<", a, b), lambda a, b: a < b),
        "equal": (binary("==", a, least), lambda a, b: a == type.minimum),
        "select": (
            Select(binary(">=", a, b), binary("-", a, b), Literal(1, type), type),
            lambda a, b: a - b if a >= b else 1,
        ),
        "by_zero": (binary("/", a, Literal(0, type)), lambda a, b: 0),
        "modulo_zero": (binary("%", a, Literal(0, type)), lambda a, b: 0),
    }
    for value in (*LITERALS, *((-1, -2) if type.minimum < 0 else ())):
        name = f"{value}".replace("-", "minus")
        found[f"by_{name}"] = binary("/", a, Literal(value, type)), by(quotient, value)
        found[f"modulo_{name}"] = binary("%", a, Literal(value, type)), by(remainder, value)
    return found


@one_in(2)
@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integer_operations_wrap_truncate_and_never_trap(type: ScalarType) -> None:
    pairs = list(product(edges(type), repeat=2))
    inputs = {name: np.array([pair[n] for pair in pairs], dtype_of(type)) for n, name in enumerate("ab")}
    wanted = operations(type)
    results = evaluate({name: expression for name, (expression, _) in wanted.items()}, inputs)
    for name, (expression, exact) in wanted.items():
        expected = [wrapped(int(exact(a, b)), expression.type) for a, b in pairs]
        assert results[name].tolist() == expected, name


@pytest.mark.parametrize("type", [type for type in INTEGERS if type is not ScalarType.BOOL], ids=str)
def test_quotients_next_to_integers_truncate_right(type: ScalarType) -> None:
    """Lanes divide floating numbers: the closest calls are dividends one below a multiple of the divisor."""
    random = np.random.default_rng(0)
    magnitudes = 2 ** random.uniform(0, np.log2(type.maximum), 2000)
    divisors = [min(int(magnitude), type.maximum) for magnitude in magnitudes]
    dividends = [type.maximum // divisor * divisor - 1 for divisor in divisors]
    inputs = {"a": np.array(dividends, dtype_of(type)), "b": np.array(divisors, dtype_of(type))}
    a, b = read("a", type, "i"), read("b", type, "i")
    results = evaluate({"quotient": binary("/", a, b), "remainder": binary("%", a, b)}, inputs)
    pairs = list(zip(dividends, divisors, strict=True))
    assert results["quotient"].tolist() == [quotient(a, b) for a, b in pairs]
    assert results["remainder"].tolist() == [remainder(a, b) for a, b in pairs]


def test_booleans_are_any_nonzero_byte() -> None:
    raw = np.array([0, 1, 2, 255, 0, 128], np.uint8)
    p, q = raw.view(np.bool_), raw[::-1].copy().view(np.bool_)
    a, b = read("p", ScalarType.BOOL, "i"), read("q", ScalarType.BOOL, "i")
    results = evaluate(
        {
            "copy": a,
            "not": Unary(UnaryOperator.NOT, a, ScalarType.BOOL),
            "and": binary("&&", a, b),
            "or": binary("||", a, b),
            "same": binary("==", a, b),
            "sum": binary("+", a, b),
            "product": binary("*", a, b),
            "count": binary("+", Cast(a, ScalarType.INT32), Cast(b, ScalarType.INT32)),
        },
        {"p": p, "q": q},
    )
    x, y = raw != 0, raw[::-1] != 0
    expected = {"copy": x, "not": ~x, "and": x & y, "or": x | y, "same": x == y, "sum": x | y, "product": x & y}
    for name, values in expected.items():
        np.testing.assert_array_equal(results[name].view(np.uint8), values.astype(np.uint8), name)
    np.testing.assert_array_equal(results["count"], x.astype(np.int32) + y)
