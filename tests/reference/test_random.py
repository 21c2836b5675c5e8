"""Random expressions over ordinary and extreme values: direct evaluation in the declared types lies in the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pytest

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    Role,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
)
from tc.reference.compare import compare
from tc.reference.evaluate import evaluate
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.reference.build import binary, call, cast, read, select, specialize, statement, tensor, unary
from tests.turns import every, one_in

Array = npt.NDArray[Any]
TYPES = ("float32", "float64", "float16", "bfloat16")
EXTREMES = (0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e-3, 1e4, 1e30, -1e38, 1e-38, 1e-45, 3.4e38, np.inf, -np.inf, np.nan)
SIZE = 256


def dtype_of(type: ScalarType) -> np.dtype[Any]:
    """NumPy's type of the elements."""
    return numpy_dtype(type)


@dataclass(frozen=True)
class Kernel:
    """Evaluates as a kernel may: ``contracts`` products into sums, keeps halves in float32 if ``keeps_single``."""

    arrays: dict[str, Array]
    contracts: bool
    keeps_single: bool

    def rounded(self, value: Array, type: ScalarType) -> Array:
        single = self.keeps_single and type.is_half
        return value.astype(np.float32 if single else dtype_of(type))

    def run(self, expression: Expression) -> Array:
        match expression:
            case Literal(value, type):
                return self.rounded(np.asarray(value), type)
            case Read(name, _, type):
                return self.rounded(self.arrays[name], type)
            case Unary(UnaryOperator.NEGATE, operand):
                return np.negative(self.run(operand))
            case Unary(UnaryOperator.NOT, operand):
                return np.logical_not(self.run(operand))
            case Cast(operand, type):
                return self.run(operand).astype(dtype_of(type)).astype(self.rounded(np.zeros(1), type).dtype)
            case Select(condition, then, otherwise):
                return np.where(self.run(condition), self.run(then), self.run(otherwise))
            case Call(name, arguments, type):
                functions = {"min": np.minimum, "max": np.maximum, "fabs": np.abs, "sqrt": np.sqrt, "tanh": np.tanh}
                return self.rounded(np.asarray(functions[name](*map(self.run, arguments))), type)
            case Binary():
                return self.binary(expression)
            case Unary() | IteratorReference() | SizeReference() | ScalarReference() | InRange():
                raise NotImplementedError(expression)
            case _:
                assert_never(expression)

    def binary(self, expression: Binary) -> Array:
        left, right = self.run(expression.left), self.run(expression.right)
        match expression.operator:
            case BinaryOperator.ADD if self.contracts and self.is_single_product(expression.left):
                product = self.exact_product(expression.left)
                return self.rounded(product + right.astype(np.float64), expression.type)
            case BinaryOperator.ADD:
                return self.rounded(left + right, expression.type)
            case BinaryOperator.SUBTRACT if self.contracts and self.is_single_product(expression.right):
                product = self.exact_product(expression.right)
                return self.rounded(left.astype(np.float64) - product, expression.type)
            case BinaryOperator.SUBTRACT:
                return self.rounded(left - right, expression.type)
            case BinaryOperator.MULTIPLY:
                return self.rounded(left * right, expression.type)
            case BinaryOperator.DIVIDE:
                return self.rounded(left / right, expression.type)
            case BinaryOperator.LESS:
                return np.less(left, right)
            case BinaryOperator.AND:
                return np.logical_and(left, right)
            case _:
                raise NotImplementedError(expression.operator)

    def is_single_product(self, expression: Expression) -> bool:
        """Products of float32 are exact in float64."""
        product = isinstance(expression, Binary) and expression.operator is BinaryOperator.MULTIPLY
        return product and expression.type is ScalarType.FLOAT32

    def exact_product(self, expression: Expression) -> Array:
        assert isinstance(expression, Binary)
        return self.run(expression.left).astype(np.float64) * self.run(expression.right).astype(np.float64)


def random_expression(rng: np.random.Generator, leaves: list[Expression], depth: int) -> Expression:
    """Of the leaves' type."""
    if depth == 0 or rng.random() < 0.1:
        return leaves[rng.integers(len(leaves))]

    def part() -> Expression:
        return random_expression(rng, leaves, depth - 1)

    match rng.integers(11):
        case 0 | 1:
            return binary(part(), "+", part())
        case 2:
            return binary(part(), "-", part())
        case 3 | 4 | 5:
            return binary(part(), "*", part())
        case 6:
            return binary(part(), "/", part())
        case 7:
            condition = binary(binary(part(), "<", part()), "&&", unary("!", binary(part(), "<", part())))
            return select(condition, part(), part())
        case 8:
            return unary("-", part())
        case 9:
            inner = part()
            other = ("float32", "float64", "float16")[rng.integers(3)]
            return cast(cast(inner, other), inner.type.value)
        case _:
            name = ("min", "max", "fabs", "sqrt", "tanh")[rng.integers(5)]
            return call(name, *(part() for _ in range(2 if name in ("min", "max") else 1)))


def operands(rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    """Ordinary numbers, small integers and extremes."""
    values = np.stack(
        [rng.standard_normal(SIZE), rng.integers(-3, 4, SIZE).astype(np.float64), rng.choice(EXTREMES, SIZE)]
    )
    chosen = rng.choice(3, SIZE, p=[0.6, 0.2, 0.2])
    return np.asarray(values[chosen, np.arange(SIZE)].astype(dtype))


@one_in(2)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("seed", every(2, range(25)))
@np.errstate(all="ignore")
def test_direct_evaluation_lies_in_the_bound(type: str, seed: int) -> None:
    rng = np.random.default_rng([seed, TYPES.index(type)])
    inputs = [tensor(name, type, (SIZE,)) for name in "ABC"]
    output = tensor("O", type, (SIZE,), Role.OUTPUT)
    leaves: list[Expression] = [*(read(source, "i") for source in inputs), Literal(0.3, ScalarType(type))]
    dtype = dtype_of(ScalarType(type))
    arrays = {source.name: operands(rng, dtype) for source in inputs}
    for _ in range(8):
        value = random_expression(rng, leaves, 4)
        program = specialize([*inputs, output], [statement(output, ["i"], {"i": (0, SIZE)}, value)])
        result = evaluate(program, arrays)["O"]
        for contracts in (False, True):
            for keeps_single in (False, True):
                actual = np.broadcast_to(Kernel(arrays, contracts, keeps_single).run(value), (SIZE,)).astype(dtype)
                found = compare(result, actual)
                assert found.ok, f"seed {seed}, contracts {contracts}, single {keeps_single}: {found}\n{value}"


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("reduction", ["+", "*", "min", "max"])
@np.errstate(all="ignore")
def test_reductions_of_extreme_values_lie_in_the_bound(type: str, reduction: str) -> None:
    """In two orders, in a type that accumulates: any row may hold any mixture of extremes."""
    rng = np.random.default_rng([7, TYPES.index(type)])
    dtype = dtype_of(ScalarType(type))
    wide = np.dtype(np.float32) if ScalarType(type).is_half else dtype
    rows = np.stack([operands(rng, dtype)[:6] for _ in range(400)])
    source, output = tensor("A", type, rows.shape), tensor("O", type, (len(rows),), Role.OUTPUT)
    ranges = {"i": (0, rows.shape[0]), "k": (0, rows.shape[1])}
    written = statement(output, ["i"], ranges, read(source, "i", "k"), reduction, initialize=True)
    result = evaluate(specialize([source, output], [written]), {"A": rows})["O"]
    fold = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}[reduction]
    for order in (rows, rows[:, ::-1], rows[:, [0, 3, 1, 4, 2, 5]]):
        total = order[:, 0].astype(wide)
        for k in range(1, rows.shape[1]):
            total = fold(total, order[:, k].astype(wide)).astype(wide)
        found = compare(result, total.astype(dtype))
        assert found.ok, str(found)
        pairs = fold(fold(order[:, 0].astype(wide), order[:, 1].astype(wide)), order[:, 2].astype(wide))
        others = fold(fold(order[:, 3].astype(wide), order[:, 4].astype(wide)), order[:, 5].astype(wide))
        assert compare(result, fold(pairs, others).astype(dtype)).ok
    assert np.isinf(result.error).mean() < 0.3
