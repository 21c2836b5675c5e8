"""Integer expressions as affine forms, and how much they grow with an iterator."""

from __future__ import annotations

import pytest

import tc
from tc.language.program.affine_form import AffineForm, affine_form, coefficient
from tc.language.program.program import Expression, IteratorReference, Read


def subscript(text: str) -> Expression:
    """That of ``x`` in a definition."""
    definition = f"def f(float(90) x, int32(4) I) -> (y) {{ y(i,j) = x({text}) where i in 0:4, j in 0:3 }}"
    value = tc.define(definition).f.program.statements[0].value
    assert isinstance(value, Read)
    return value.subscripts[0]


@pytest.mark.parametrize(
    ("text", "constant", "i", "j"),
    [
        ("7", 7, 0, 0),
        ("i", 0, 1, 0),
        ("2*(i + 3) - j + 5", 11, 2, -1),
        ("9 - (i - j)*2 + i", 9, -1, 2),
        ("(1 + 1)*(i + j*(4 - 1)) + 2", 2, 2, 6),
        ("i - i + j", 0, 0, 1),
    ],
)
def test_sums_and_multiples_are_affine(text: str, constant: int, i: int, j: int) -> None:
    expression = subscript(text)
    factors = {IteratorReference(name): factor for name, factor in (("i", i), ("j", j)) if factor}
    assert affine_form(expression) == AffineForm(constant, factors)
    assert (coefficient(expression, "i"), coefficient(expression, "j")) == (i, j)


@pytest.mark.parametrize(
    ("text", "i", "j"),
    [
        ("i/2 + 3*j", None, 3),
        ("I(i) + j", None, 1),
        ("i*j", None, None),
        ("max(i, 2) + 4", None, 0),
        ("j + 2*(i%3)", None, 1),
    ],
)
def test_what_else_mentions_an_iterator_has_no_coefficient(text: str, i: int | None, j: int | None) -> None:
    assert (coefficient(subscript(text), "i"), coefficient(subscript(text), "j")) == (i, j)
