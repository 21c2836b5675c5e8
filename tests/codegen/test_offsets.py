"""Quotients and remainders of linear forms, against numbers."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

import tc
from tc.codegen.index.indices import WideIndexError, index_fragment
from tc.codegen.index.offset_texts import OffsetTexts
from tc.codegen.text.dialect import CUDA
from tc.codegen.text.fragment import named
from tc.polyhedral.analysis.offsets import LinearForm, divided, evaluate, recombined
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable

EXTENTS = {"x": 8, "y": 3, "z": 26, "lane": 4}
RANGES = {name: Range(0, extent - 1) for name, extent in EXTENTS.items()}


def form(constant: int = 0, **factors: int) -> LinearForm:
    terms: dict[IndexExpression, int] = {IndexVariable(name): factor for name, factor in factors.items()}
    return LinearForm(constant, terms)


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "remainder"),
    [
        (form(x=24, z=0), 8, form(x=3), form()),
        (form(x=1, y=24), 8, form(y=3), form(x=1)),
        (form(x=1, y=8, z=24), 24, form(z=1), form(x=1, y=8)),
        (form(5, x=7), 7, form(x=1), form(5)),
        (form(12, x=7), 7, form(1, x=1), form(5)),
    ],
)
def test_what_is_a_multiple_is_divided(
    dividend: LinearForm, divisor: int, quotient: LinearForm, remainder: LinearForm
) -> None:
    dividend = LinearForm(dividend.constant, {t: f for t, f in dividend.factors.items() if f})
    assert divided(dividend, divisor, RANGES) == (quotient, remainder)


def test_lanes_stay_apart_from_what_is_divided() -> None:
    quotient, remainder = divided(form(lane=1, z=4), 28, RANGES)
    assert quotient.slope("lane") == 0
    assert remainder.slope("lane") == 1
    again = recombined(LinearForm().plus(quotient, 28).plus(remainder))
    assert again == form(lane=1, z=4)


@pytest.mark.parametrize("whole", [form(x=1), form(3, x=2, z=1)])
@pytest.mark.parametrize("divisor", [2, 24])
def test_quotients_that_isl_rounds_up_come_together_with_remainders(whole: LinearForm, divisor: int) -> None:
    raised = LinearForm(divisor - 1).plus(whole, divisor - 1).expression()
    quotient = IndexOperation(IndexOperator.FLOOR_DIVIDE, (raised, IndexLiteral(divisor)))
    remainder = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (whole.expression(), IndexLiteral(divisor)))
    split = LinearForm(0, {remainder: 5, quotient: -5 * divisor}).plus(whole, 5 * divisor)
    assert recombined(split) == LinearForm().plus(whole, 5)
    other = LinearForm(0, {remainder: 5, quotient: -4 * divisor})
    assert recombined(other) == other


def test_remainders_of_what_is_a_multiple_apart_come_together_with_quotients() -> None:
    divisor = IndexLiteral(20)
    quotient = IndexOperation(IndexOperator.FLOOR_DIVIDE, (form(x=1, y=-8).expression(), divisor))
    for shift, together in ((100, True), (0, True), (90, False)):
        dividend = form(shift, x=1, y=-8).expression()
        remainder = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (dividend, divisor))
        split = LinearForm(0, {quotient: 40, remainder: 2})
        assert recombined(split) == (form(x=2, y=-16) if together else split)


def test_quotients_of_what_is_a_multiple_apart_are_one() -> None:
    divisor = IndexLiteral(7)
    for operator in (IndexOperator.FLOOR_DIVIDE, IndexOperator.NONNEGATIVE_DIVIDE):
        quotient = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (form(3, x=2).expression(), divisor))
        further = IndexOperation(operator, (form(17, x=2).expression(), divisor))
        assert recombined(LinearForm(1, {quotient: 5, further: -3})) == LinearForm(-5, {quotient: 2})
        assert recombined(LinearForm(1, {quotient: 5, further: -5})) == form(-9)
        other = LinearForm(0, {quotient: 5, IndexOperation(operator, (form(16, x=2).expression(), divisor)): -5})
        assert recombined(other) == other


def test_quotients_in_two_steps_come_together_with_remainders() -> None:
    x = form(3, x=2, z=1).expression()
    part = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (x, IndexLiteral(12)))
    quotient = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (x, IndexLiteral(576)))
    upper = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (part, IndexLiteral(48)))
    lower = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (x, IndexLiteral(12)))
    assert recombined(LinearForm(0, {quotient: 2304, upper: 48, lower: 4})) == LinearForm().plus(form(3, x=2, z=1), 4)
    other = LinearForm(0, {quotient: 2303, upper: 48})
    assert recombined(other) == other


@pytest.mark.parametrize("shape", [(8, 64, 16, 16), (7, 9, 5), (3, 5, 4, 7, 6)])
def test_dimensions_that_follow_each_other_are_one_subscript(shape: tuple[int, ...]) -> None:
    sizes, at = (", ".join(f"{letter}{axis}" for axis in range(len(shape))) for letter in "Di")
    definition = tc.define(f"def f(float({sizes}) A, float({sizes}) B) -> (Y) {{ Y({at}) = A({at}) * B({at}) }}")
    spec = tc.ArraySpec(shape, tc.ScalarType.FLOAT32)
    source = definition.f.compile(spec, spec, target="cpu").source
    assert re.search(r"t_Y\[(\d+ \* c0 \+ c1|c\d)\] = ", source)


@pytest.mark.parametrize("seed", range(100))
def test_values_are_those_of_division(seed: int) -> None:
    source = random.Random(seed)
    names = source.sample(list(EXTENTS), source.randint(1, 4))
    factors = {name: source.choice([1, 2, 3, 4, 6, 8, 12, 24, 32, 96, -1, -4]) for name in names}
    dividend = form(source.randint(0, 200) + 26 * 4, **factors)
    divisor = source.choice([2, 3, 4, 7, 8, 12, 24, 28, 96])
    quotient, remainder = divided(dividend, divisor, RANGES)
    for _ in range(20):
        values = {name: source.randrange(extent) for name, extent in EXTENTS.items()}
        value = evaluate(dividend.expression(), values)
        assert value >= 0
        got = tuple(evaluate(part.expression(), values) for part in (quotient, remainder))
        assert got == divmod(value, divisor)


@pytest.mark.parametrize("seed", range(20))
def test_texts_of_offsets_are_those_of_their_expressions(seed: int) -> None:
    source = random.Random(seed)
    variables = {name: named(f"c_{name}") for name in EXTENTS}
    texts = OffsetTexts(variables, RANGES, CUDA)
    names = source.sample(list(EXTENTS), source.randint(0, 3))
    factors = {name: source.choice([1, 2, 7, -1, -4]) for name in names}
    for constant in (0, 5, -5, 1 << 40, -(1 << 40)):
        offset = form(constant, **factors)
        assert texts.text(offset) == index_fragment(offset.expression(), variables, CUDA)


@pytest.mark.parametrize("constant", [1 << 31, (1 << 31) - 7, -(1 << 31) - 1])
def test_texts_of_offsets_fit_their_type(constant: int) -> None:
    texts = OffsetTexts({"x": named("c0")}, RANGES, replace(CUDA, narrow=True))
    assert str(texts.text(form(5, x=1))) == "c0 + 5"
    with pytest.raises(WideIndexError):
        texts.text(form(constant, x=1))
