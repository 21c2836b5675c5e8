"""The fast way through sums of products gives what the general way gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt
import pytest

from tc.language.program.program import Expression, Role, Tensor
from tc.reference.contract import contract, largest_intermediate
from tc.reference.evaluate import Result, evaluate
from tests.reference.build import Operand, binary, call, cast, literal, read, select, specialize, statement, tensor

EXTENTS = {"a": 3, "b": 4, "c": 5, "i": 7, "j": 2, "k": 6, "n": 1}
# name: iterators, those of the output, those of each factor
SHAPES = {
    "matrix product": ("ijk", "ij", ["ik", "kj"]),
    "transposed": ("ijk", "ij", ["ki", "jk"]),
    "batched": ("bijk", "bij", ["bik", "bkj"]),
    "outer product": ("ij", "ij", ["i", "j"]),
    "dot product": ("k", "", ["k", "k"]),
    "row sums of a product": ("ik", "i", ["ik", "ik"]),
    "diagonal weights": ("ijk", "ij", ["ik", "k", "kj"]),
    "kronecker": ("ijkabc", "ija", ["ic", "jk", "bck"]),
    "an output iterator in no factor": ("ijkn", "ijn", ["k", "k"]),
    "a reduced iterator in no factor": ("ibc", "i", ["i", "ib"]),
    "a chain of four": ("abkjc", "ac", ["ab", "bk", "kj", "jc"]),
    "a diagonal": ("ik", "i", ["kk", "ki"]),
}


def both_ways(
    iterators: str, output: str, factors: list[Expression], sources: list[Tensor], arrays: Mapping[str, npt.ArrayLike]
) -> list[Result]:
    """The same sum with and without a cast that does nothing but hide the product."""
    type = sources[0].type.value
    target = tensor("O", type, tuple(EXTENTS[d] for d in output), Role.OUTPUT)
    product = reduce(lambda left, right: binary(left, "*", right), factors)
    ranges: dict[str, tuple[Operand, Operand]] = {name: (0, EXTENTS[name]) for name in iterators}
    given = {name: np.asarray(array) for name, array in arrays.items()}
    results = []
    for value in (product, cast(product, type)):
        written = statement(target, list(output), ranges, value, "+", initialize=True)
        results.append(evaluate(specialize([*sources, target], [written]), given)["O"])
    return results


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_values_and_bounds_agree(shape: str, dtype: str) -> None:
    iterators, output, operands = SHAPES[shape]
    rng = np.random.default_rng(3)
    extents = {f"A{p}": tuple(EXTENTS[d] if d != "k" else 7 for d in dims) for p, dims in enumerate(operands)}
    sources = [tensor(name, dtype, extent) for name, extent in extents.items()]
    arrays = {name: rng.standard_normal(extent).astype(dtype) for name, extent in extents.items()}
    factors: list[Expression] = [read(s, *dims) for s, dims in zip(sources, operands, strict=True)]
    fast, general = both_ways(iterators, output, factors, sources, arrays)
    np.testing.assert_allclose(fast.values, general.values, rtol=0, atol=1e-12)
    assert (fast.error >= general.error * (1 - 1e-6)).all()
    assert (fast.error <= general.error * 1.5).all()


def test_inexact_and_ambiguous_factors_agree() -> None:
    """A factor that was computed, with a decision in it near its bound in one row."""
    rng = np.random.default_rng(4)
    left, right = tensor("A", "float32", (7, 6)), tensor("B", "float32", (6, 2))
    arrays = {"A": rng.standard_normal((7, 6)), "B": rng.standard_normal((6, 2))}
    arrays["A"][3, 2] = 3.0
    third = binary(read(left, "i", "k"), "/", 3.0)
    chosen = select(binary(third, "<", 1.0), third, literal(2.0, "float32"))
    factors: list[Expression] = [chosen, call("exp", read(right, "k", "j"))]
    given = {name: array.astype(np.float32) for name, array in arrays.items()}
    fast, general = both_ways("ijk", "ij", factors, [left, right], given)
    np.testing.assert_allclose(fast.values, general.values, rtol=1e-12)
    np.testing.assert_allclose(fast.error, general.error, rtol=0.5)
    np.testing.assert_array_equal(fast.ambiguous, general.ambiguous)
    assert fast.ambiguous.any(axis=1).tolist() == [False, False, False, True, False, False, False]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 3e38])
def test_values_that_are_not_finite_or_overflow_go_the_general_way(value: float) -> None:
    left, right = tensor("A", "float32", (7, 6)), tensor("B", "float32", (6, 2))
    arrays = {"A": np.ones((7, 6), np.float32), "B": np.full((6, 2), 4, np.float32)}
    arrays["A"][3, 2] = value
    factors: list[Expression] = [read(left, "i", "k"), read(right, "k", "j")]
    fast, general = both_ways("ijk", "ij", factors, [left, right], arrays)
    np.testing.assert_array_equal(fast.values, general.values)
    np.testing.assert_array_equal(fast.error, general.error)
    assert not np.isfinite(fast.values[3]).any()
    assert np.isfinite(fast.values[[0, 1, 2, 4, 5, 6]]).all()


def test_convolutions_contract_strided_views() -> None:
    image, weight = tensor("I", "float32", (2, 3, 11, 9)), tensor("W", "float32", (4, 3, 3, 2))
    output = tensor("O", "float32", (2, 4, 5, 8), Role.OUTPUT)
    rows = binary(binary("h", "*", 2), "+", "y")
    value = binary(read(image, "n", "c", rows, binary("w", "+", "x")), "*", read(weight, "m", "c", "y", "x"))
    extents = {"n": 2, "m": 4, "h": 5, "w": 8, "c": 3, "y": 3, "x": 2}
    ranges: dict[str, tuple[Operand, Operand]] = {name: (0, extent) for name, extent in extents.items()}
    written = statement(output, ["n", "m", "h", "w"], ranges, value, "+", initialize=True)
    rng = np.random.default_rng(6)
    i, w = rng.standard_normal((2, 3, 11, 9)), rng.standard_normal((4, 3, 3, 2))
    given = {"I": i.astype(np.float32), "W": w.astype(np.float32)}
    result = evaluate(specialize([image, weight, output], [written]), given)["O"]
    windows = np.lib.stride_tricks.sliding_window_view(given["I"].astype(np.float64), (3, 2), axis=(2, 3))[:, :, ::2]
    expected = np.einsum("nchwyx,mcyx->nmhw", windows, given["W"].astype(np.float64))
    np.testing.assert_allclose(result.values, expected, rtol=0, atol=1e-12)


def test_contract_is_einsum() -> None:
    rng = np.random.default_rng(7)
    first, second = rng.standard_normal((3, 4, 1, 6)), rng.standard_normal((1, 4, 5, 6))
    expected = np.einsum("abk,bck->ac", first[:, :, 0], second[0])
    result = contract([first, second], frozenset({0, 2}), (3, 4, 5, 6))
    np.testing.assert_allclose(result[:, 0, :, 0], expected)


def test_a_chain_is_contracted_without_a_large_intermediate() -> None:
    chain = [frozenset({0, 1}), frozenset({1, 2}), frozenset({2, 3})]
    assert largest_intermediate(chain, frozenset({0, 3}), (100, 2, 100, 2)) == 200
    outer = [frozenset({0}), frozenset({1})]
    assert largest_intermediate(outer, frozenset({0, 1}), (30, 40)) == 1200
