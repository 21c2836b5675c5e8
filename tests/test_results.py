"""Results in arrays that the caller brings, and outputs that are inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tests.arrays import Array, array, whole

DEFINITIONS = tc.define(
    """
    def moments(float(M,N) X) -> (least, total, greatest) {
        greatest(i) max=! X(i,j)
        total(i) +=! X(i,j)
        least(i) min=! X(i,j)
    }
    def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }
    def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
    """
)

# --- results that the caller brings -----------------------------------------------------------------------------------


def test_results_are_written_into_arrays_of_the_caller() -> None:
    x = whole(7, 3)
    expected = 2 * x + np.arange(3)
    brought: list[Any] = [np.zeros((7, 3), np.float32), torch.zeros(7, 3)]
    for given in brought:
        outs: list[Any] = [given, (given,), [given], {"Y": given}]
        for out in outs:
            array(given)[...] = np.nan
            assert DEFINITIONS.affine(x, out=out) is given
            np.testing.assert_array_equal(array(given), expected)


def test_some_results_may_be_brought() -> None:
    x = whole(7, 13)
    total = np.zeros(7, np.float32)
    for out in ((None, total, None), {"total": total}, {"total": total, "least": None}):
        total[:] = np.nan
        results = DEFINITIONS.moments(x, out=out)
        assert isinstance(results, tuple)
        assert results[1] is total
        for result, expected in zip(results, (x.min(1), x.sum(1), x.max(1)), strict=True):
            np.testing.assert_array_equal(result, expected)
    tensor = torch.zeros(7)
    results = DEFINITIONS.moments(x, out={"total": tensor})
    assert isinstance(results, tuple)
    assert [type(result) for result in results] == [torch.Tensor] * 3
    assert results[1] is tensor


def test_strided_results_are_written_in_place_and_nothing_beside_them() -> None:
    x = whole(7, 3)
    expected = 2 * x + np.arange(3)
    views: list[Callable[[Array], Array]] = [
        lambda block: block[1:8, 2:5],
        lambda block: block[:3, :7].T,
        lambda block: block[8:1:-1, 6:0:-2],
    ]
    for view in views:
        block = np.full((9, 8), -99, np.float32)
        out = view(block)
        assert DEFINITIONS.affine(x, out=out) is out
        np.testing.assert_array_equal(out, expected)
        out[...] = -99
        assert (block == -99).all()


def test_results_that_are_read_first_come_in_through_out() -> None:
    x, y = whole(129), whole(129, seed=1)
    for kind in (np.asarray, torch.from_numpy):
        given = kind(y.copy())
        for step in range(1, 4):
            assert DEFINITIONS.axpby(2, kind(x), 1, out=given) is given
            np.testing.assert_array_equal(array(given), y + 2 * step * x)


def test_autograd_learns_that_a_result_was_written() -> None:
    weight = torch.ones(3, requires_grad=True)
    factor = torch.ones(3)
    product = (weight * factor).sum()
    DEFINITIONS.axpby(1.0, torch.ones(3), 1.0, out=factor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(product, weight)


def test_the_oracle_reads_the_first_value_and_leaves_it() -> None:
    x, y = whole(7), whole(7, seed=1)
    kept = y.copy()
    np.testing.assert_array_equal(DEFINITIONS.axpby.reference(2.0, x, 0.5, out=y), 2.0 * x + 0.5 * y)
    np.testing.assert_array_equal(y, kept)
    frozen = y.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(DEFINITIONS.axpby.reference(2.0, x, 0.5, out=frozen), 2.0 * x + 0.5 * y)


def test_the_oracle_gives_results_in_the_order_of_the_definition() -> None:
    x = whole(7, 13)
    least, total, greatest = DEFINITIONS.moments.reference(torch.from_numpy(x))
    np.testing.assert_array_equal(least, x.min(1))
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(greatest, x.max(1))
    bounded = DEFINITIONS.moments.oracle(x)
    assert list(bounded) == ["least", "total", "greatest"]


# --- outputs that are inputs ------------------------------------------------------------------------------------------


def test_element_wise_definitions_run_in_place() -> None:
    texts: list[tuple[str, Callable[[Array], Array]]] = [
        ("def relu(float(N) X) -> (O) { O(i) = fmax(X(i), 0) }", lambda x: np.maximum(x, 0)),
        ("def double(float(N) X) -> (O) { O(i) = X(i) + X(i) }", lambda x: x + x),
        ("def steps(float(N) X) -> (O) { T(i) = X(i) * X(i)  O(i) = T(i) + X(i) }", lambda x: x * x + x),
        ("def update(float(N) X) -> (O) { O(i) = X(i)  O(i) = 3 * O(i) }", lambda x: 3 * x),
    ]
    for text, formula in texts:
        definition = tc.define(text)
        for x in (whole(129), whole(3, 129)[1, ::-1]):
            expected = formula(x.copy())
            assert definition(x, out=x) is x
            np.testing.assert_array_equal(x, expected)
        tensor = torch.from_numpy(whole(129))
        expected = formula(whole(129))
        definition(tensor, out=tensor)
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_a_gather_may_run_in_place_of_its_indices() -> None:
    gather = tc.define("def gather(int32(N) X, int32(K) I) -> (Y) { Y(k) = X(I(k)) }")
    x, indices = np.arange(10, 17, dtype=np.int32), np.array([6, 0, 3, 3, 1], np.int32)
    expected = x[indices]
    gather(x, indices, out=indices)
    np.testing.assert_array_equal(indices, expected)


def test_a_tensor_over_an_array_is_that_array() -> None:
    x = whole(7)
    double = tc.define("def double(float(N) X) -> (O) { O(i) = X(i) + X(i) }")
    result = double(x, out=torch.from_numpy(x))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(x, 2 * whole(7))


def test_an_in_out_result_may_be_an_input() -> None:
    x = whole(129)
    expected = 2 * x + 3 * x
    DEFINITIONS.axpby(2.0, x, 3.0, out=x)
    np.testing.assert_array_equal(x, expected)


def test_disjoint_parts_of_one_array_are_separate() -> None:
    block = whole(7, 6)
    expected = 2 * block[:, ::2] + np.arange(3)
    DEFINITIONS.affine(block[:, ::2], out=block[:, 1::2])
    np.testing.assert_array_equal(block[:, 1::2], expected)
