"""Index arithmetic in normal form, and constant folding."""

from __future__ import annotations

import math

import pytest

from tc.base.rounding import round_to
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.fold import convert_literal, divide, remainder, substitute, wrap
from tc.language.algebra.polynomial import Atoms, constant
from tc.language.program.program import INDEX_TYPE, Binary, Cast, Literal, SizeReference
from tc.language.text.expression_text import expression_text
from tests.language.support import lower


def _normal(expression: str) -> str:
    """The normal form of an index expression over sizes M, N, K and the scalar s."""
    program = lower(f"def f(float(M,N,K) A, int64 s) -> (O) {{ O(i) = 1.0 where i in 0:{expression} }}")
    atoms = Atoms(program.sizes)
    return expression_text(atoms.expression(atoms.polynomial(program.statements[0].iterators[0].end)))


@pytest.mark.parametrize(
    ("expression", "normal"),
    [
        ("N + M - N", "M"),
        ("N * (M + 1) - M", "M * N + N - M"),
        ("1 - N + M", "M - N + 1"),
        ("3 - N", "3 - N"),
        ("N - N + 2", "2"),
        ("2 * (N - 1) / 2", "(2 * N - 2) / 2"),
        ("N / 1 + N % 1", "N"),
        ("7 / 2 + 7 % 4 - -7 / 2", "9"),
        ("min(N, N + 1)", "N"),
        ("max(N, N + M)", "N + M"),
        ("min(min(N, M), min(M, K))", "min(min(M, N), K)"),
        ("max(N - 1, 3)", "max(N - 1, 3)"),
        ("-(N - M) * 2", "2 * M - 2 * N"),
        ("s * N + N * s", "2 * N * s"),
    ],
)
def test_normal_forms(expression: str, normal: str) -> None:
    assert _normal(expression) == normal


def test_signs() -> None:
    atoms = Atoms(("N", "M"))
    n, m = (atoms.variable(SizeReference(name)) for name in ("N", "M"))
    assert atoms.is_nonnegative(n * m + 1)
    assert not atoms.is_nonnegative(n - 1)
    assert atoms.is_negative(-n)
    assert not atoms.is_negative(constant(1) - n)
    assert atoms.is_negative(n - n * n - 1)
    assert not atoms.is_negative(n - m)
    assert atoms.is_nonnegative(atoms.quotient(n + 1, constant(2)))


def test_division_truncates_and_survives_zero() -> None:
    assert [divide(a, b) for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2), (7, 0))] == [3, -3, -3, 3, 0]
    assert [remainder(a, b) for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2), (7, 0))] == [1, -1, 1, -1, 0]


def test_integers_wrap() -> None:
    assert wrap(128, ScalarType.INT8) == -128
    assert wrap(-1, ScalarType.UINT16) == 65535
    assert wrap(2**63, ScalarType.INT64) == -(2**63)


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (0.1, ScalarType.FLOAT32, 0.10000000149011612),
        (65519.0, ScalarType.FLOAT16, 65504.0),
        (65520.0, ScalarType.FLOAT16, math.inf),
        (1.00390625, ScalarType.BFLOAT16, 1.0),
        (1.01171875, ScalarType.BFLOAT16, 1.015625),
        (3.4e38, ScalarType.BFLOAT16, math.inf),
        (-1e-45, ScalarType.FLOAT32, -1.401298464324817e-45),
        (1e-40, ScalarType.BFLOAT16, 9.183549615799121e-41),
        (0.1, ScalarType.FLOAT64, 0.1),
    ],
)
def test_rounding(value: float, type: ScalarType, expected: float) -> None:
    assert round_to(value, type) == expected


def test_bfloat16_rounds_like_ml_dtypes() -> None:
    numpy, ml_dtypes = pytest.importorskip("numpy"), pytest.importorskip("ml_dtypes")
    values = numpy.random.default_rng(0).standard_normal(200) * 10.0 ** numpy.arange(-45, 38).repeat(3)[:200]
    for value in values.astype(numpy.float32):
        assert round_to(float(value), ScalarType.BFLOAT16) == float(value.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (300, ScalarType.INT8, 44),
        (2.9, ScalarType.INT8, 2),
        (-2.9, ScalarType.INT8, -2),
        (1e9, ScalarType.INT8, 127),
        (-math.inf, ScalarType.INT8, -128),
        (math.nan, ScalarType.INT32, 0),
        (-1.0, ScalarType.UINT8, 0),
        (0.5, ScalarType.BOOL, True),
        (3, ScalarType.FLOAT32, 3.0),
        (2**63, ScalarType.FLOAT64, 2.0**63),
        (10**400, ScalarType.FLOAT64, math.inf),
    ],
)
def test_conversions_of_literals(value: float, type: ScalarType, expected: float) -> None:
    source = ScalarType.FLOAT64 if isinstance(value, float) else ScalarType.INT64
    assert convert_literal(Literal(value, source), type) == Literal(expected, type)


def test_infinite_conversions_stay_casts() -> None:
    program = lower("def f(float(N) x) -> (y) { y(i) = x(i) + float(1e300) }")
    cast = program.statements[0].value
    assert isinstance(cast, Binary)
    assert cast.right == Cast(Literal(1e300, ScalarType.FLOAT64), ScalarType.FLOAT32)


@pytest.mark.parametrize(
    ("expression", "folded"),
    [
        ("N + 0", "6"),
        ("i * N / 6", "i * 6 / 6"),
        ("(N - 5) * i + (N - 6)", "i"),
        ("i / (N - 5) + i % (N - 5)", "i"),
        ("i / (N - 6)", "0"),
        ("min(N, 3) + max(N, 3)", "9"),
        ("N > 3 && i > 3 ? i : N", "i > 3 ? i : 6"),
        ("N < 3 || i > 3 ? i : N", "i > 3 ? i : 6"),
        ("N < 3 ? i : N", "6"),
        ("!(N < 3) ? i : -N", "i"),
        ("N == 6 && N != 5 && N <= 6 && N >= 6 && N < 7 && N > 5 ? 1 : 0", "1"),
    ],
)
def test_folding(expression: str, folded: str) -> None:
    program = lower(f"def f(int(N) x) -> (y) {{ y(i) = {expression} where i in 0:N }}")
    value = program.statements[0].value
    result = substitute(value, {SizeReference("N"): Literal(6, INDEX_TYPE)})
    assert expression_text(result) == folded


def test_substitution_without_values_changes_nothing() -> None:
    expression = Binary(BinaryOperator.ADD, SizeReference("N"), Literal(0, INDEX_TYPE), INDEX_TYPE)
    assert substitute(expression, {}) is expression
