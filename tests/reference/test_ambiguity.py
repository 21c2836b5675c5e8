"""Decisions that lie within a bound: every outcome is accepted, and counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tc.language.program.program import Expression, Role
from tc.reference.compare import compare
from tc.reference.evaluate import evaluate
from tests.reference.build import (
    binary,
    call,
    cast,
    literal,
    pointwise,
    read,
    reduced,
    select,
    specialize,
    statement,
    tensor,
    unary,
)

# A third of it is 1 in exact arithmetic, and within a rounding of 1 in float32.
NEAR = np.array([3.0, 3.5, 2.5], np.float32)


def compared_third(comparison: str) -> Callable[[Expression], Expression]:
    """``a / 3 < 1`` and its like."""
    return lambda a: binary(binary(a, "/", 3.0), comparison, 1.0)


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">=", "==", "!="])
def test_a_comparison_within_its_bound_accepts_both_outcomes(comparison: str) -> None:
    result = pointwise(compared_third(comparison), NEAR)
    assert result.ambiguous.tolist() == [True, False, False]
    for outcome in (True, False):
        actual = result.values.copy()
        actual[0] = outcome
        assert compare(result, actual).ok
    actual = result.values.copy()
    actual[1] = not actual[1]
    assert not compare(result, actual).ok
    assert compare(result, result.values).ambiguous == pytest.approx(1 / 3)


def test_comparisons_of_exact_values_are_decided() -> None:
    result = pointwise(lambda a: binary(a, "==", 3.0), NEAR)
    assert result.values.tolist() == [True, False, False]
    assert not result.ambiguous.any()


def test_an_element_equals_itself_unless_it_is_nan() -> None:
    """``x != x`` asks for NaN; that x was rounded does not matter."""
    source, middle = tensor("A", "float32", (3,)), tensor("T", "float32", (3,), Role.TEMPORARY)
    output = tensor("O", "bool", (3,), Role.OUTPUT)
    statements = [
        statement(middle, ["i"], {"i": (0, 3)}, binary(read(source, "i"), "/", 3.0)),
        statement(output, ["i"], {"i": (0, 3)}, binary(read(middle, "i"), "!=", read(middle, "i"))),
    ]
    given = {"A": np.array([1, np.nan, 3e38], np.float32)}
    result = evaluate(specialize([source, middle, output], statements), given)["O"]
    assert result.values.tolist() == [False, True, False]
    assert not result.ambiguous.any()


def test_a_choice_accepts_both_branches() -> None:
    result = pointwise(
        lambda a: select(compared_third("<")(a), literal(10.0, "float32"), literal(-5.0, "float32")),
        NEAR,
    )
    assert result.ambiguous.tolist() == [True, False, False]
    for outcome in (10.0, -5.0):
        assert compare(result, np.array([outcome, -5, 10], np.float32)).ok
    assert not compare(result, np.array([10.1, -5, 10], np.float32)).ok
    assert not compare(result, np.array([26, -5, 10], np.float32)).ok
    assert not compare(result, np.array([10, 10, 10], np.float32)).ok


def test_a_choice_between_a_number_and_nan_accepts_both() -> None:
    result = pointwise(lambda a: select(compared_third("<")(a), literal(float("nan"), "float32"), a), NEAR)
    for outcome in (3.0, float("nan")):
        assert compare(result, np.array([outcome, 3.5, np.nan], np.float32)).ok


@pytest.mark.parametrize(
    ("logic", "other", "open_"), [("&&", True, True), ("&&", False, False), ("||", True, False), ("||", False, True)]
)
def test_logic_is_open_where_the_other_operand_does_not_decide(logic: str, other: bool, open_: bool) -> None:
    near_one = compared_third("<")
    for first in (True, False):
        result = pointwise(
            lambda a, first=first: (
                binary(near_one(a), logic, literal(other, "bool"))
                if first
                else binary(literal(other, "bool"), logic, near_one(a))
            ),
            NEAR[:1],
        )
        assert (result.error > 0).tolist() == [open_]
        assert result.ambiguous.tolist() == [open_]


def test_negation_stays_open() -> None:
    near_one = compared_third("<")
    negated = pointwise(lambda a: unary("!", near_one(a)), NEAR)
    assert (negated.error > 0).tolist() == [True, False, False]


def test_a_conversion_to_integer_near_a_whole_number_accepts_both() -> None:
    result = pointwise(lambda a: cast(binary(a, "/", 3.0), "int32"), NEAR)
    assert result.ambiguous.tolist() == [True, False, False]
    for outcome in (0, 1):
        assert compare(result, np.array([outcome, 1, 0], np.int32)).ok
    assert not compare(result, np.array([-1, 1, 0], np.int32)).ok
    assert not compare(result, np.array([3, 1, 0], np.int32)).ok
    assert not compare(result, np.array([1, 2, 0], np.int32)).ok


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_steps_near_their_jump_accept_both(name: str) -> None:
    offset = 0.5 if name == "round" else 0.0
    result = pointwise(lambda a: call(name, binary(binary(a, "/", 3.0), "+", offset)), NEAR)
    assert result.ambiguous.tolist() == [True, False, False]
    assert result.error.tolist() == [1.0, 0.0, 0.0]


def test_integer_arithmetic_carries_the_outcomes_along() -> None:
    def outcome(operator: str) -> tuple[list[float], list[bool]]:
        result = pointwise(lambda a: binary(cast(binary(a, "/", 3.0), "int32"), operator, 100), NEAR)
        return result.error.tolist(), result.ambiguous.tolist()

    assert outcome("+") == ([1.0, 0.0, 0.0], [True, False, False])
    assert outcome("*") == ([100.0, 0.0, 0.0], [True, False, False])
    assert outcome("/")[0][0] >= 1.0
    total = reduced("+", NEAR.reshape(1, 3), formula=lambda a: cast(binary(a, "/", 3.0), "int32"))
    assert total.values.tolist() in ([2], [1])
    assert total.error.tolist() == [1.0]
    wide = pointwise(lambda a: binary(cast(binary(a, "/", 3.0), "int8"), "+", 127), NEAR)
    assert wide.error[0] == 255.0  # 127 + 1 wraps


def test_a_gather_through_an_open_index_accepts_anything() -> None:
    table, source = tensor("T", "float32", (4,)), tensor("A", "float32", (3,))
    output = tensor("O", "float32", (3,), Role.OUTPUT)
    value = read(table, cast(binary(read(source, "i"), "/", 3.0), "int64"))
    program = specialize([table, source, output], [statement(output, ["i"], {"i": (0, 3)}, value)])
    result = evaluate(program, {"T": np.array([5, 6, 7, 8], np.float32), "A": NEAR})["O"]
    assert result.values[1:].tolist() == [6, 5]
    assert np.isinf(result.error).tolist() == [True, False, False]
    assert result.ambiguous.tolist() == [True, False, False]


def test_sums_and_products_keep_the_flag_of_a_term() -> None:
    array = np.stack([NEAR, NEAR + 1])
    for reduction in ("+", "*", "max"):
        result = reduced(reduction, array, formula=lambda a: select(compared_third("<")(a), a, binary(a, "*", 2.0)))
        assert result.ambiguous.tolist() == [True, False]


def test_relu_and_its_gradient_are_rarely_ambiguous() -> None:
    rng = np.random.default_rng(5)
    left, right = (rng.standard_normal(5000).astype(np.float32) for _ in range(2))
    relu = pointwise(lambda a, b: call("max", binary(a, "*", b), literal(0.0, "float32")), left, right)
    assert not relu.ambiguous.any()
    chosen = pointwise(lambda a, b: select(binary(binary(a, "+", b), ">", 0.0), a, b), left, right)
    assert chosen.ambiguous.mean() < 0.01
