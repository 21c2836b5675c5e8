"""Sparse matrices as SciPy makes them, in the arithmetic of comprehensions, beside SciPy's own."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import numpy as np
import pytest
import scipy.sparse

import tc
from tc.reference.compare import compare
from tests.turns import one_in

Array = np.ndarray[Any, Any]

TARGETS: Final = ("cpu", "emulator")
# Rows, columns, and which part of the elements is there.
MATRICES: Final = ((13, 17, 0.2), (1, 40, 0.5), (40, 1, 0.5), (23, 23, 0.0), (70, 9, 0.02), (31, 37, 1.0))
TEXT: Final = """
def row_times_vector({index}(P) R, {index}(Z) col, {type}(Z) v, {type}(M) x) -> (y) {{
    y(i) +=! v(j) * x(col(j)) where j in R(i):R(i+1)
}}
def row_times_matrix({index}(P) R, {index}(Z) col, {type}(Z) v, {type}(M,K) X) -> (Y) {{
    Y(i,k) +=! v(j) * X(col(j),k) where j in R(i):R(i+1)
}}
def transposed_times_vector({index}(P) R, {index}(Z) col, {type}(Z) v, {type}(N) x, {type}(M) like) -> ({type}(M) y) {{
    y(col(j)) +=! v(j) * x(i) where j in R(i):R(i+1)
}}
def greatest_of_rows({index}(P) R, {type}(Z) v) -> (m) {{ m(i) max=! v(j) where j in R(i):R(i+1) }}
"""


def matrix(rows: int, columns: int, density: float, type: str, index: str) -> Any:
    made = scipy.sparse.random(rows, columns, density, "csr", np.dtype(type), rng=np.random.default_rng(rows))
    made.indptr, made.indices = made.indptr.astype(index), made.indices.astype(index)
    return made


def definitions(type: str, index: str) -> tc.Definitions:
    return tc.define(TEXT.format(type={"float32": "float", "float64": "double"}[type], index=index))


def agree(f: tc.Comprehension, target: str, *arrays: Array) -> Array:
    found = np.asarray(f(*arrays, target=target))
    (expected,) = f.oracle(*arrays).values()
    assert compare(expected, found).ok
    return found


@one_in(8)
@pytest.mark.parametrize(("type", "index"), [("float32", "int32"), ("float64", "int64")])
@pytest.mark.parametrize(("shape", "target"), list(product(MATRICES, TARGETS)))
def test_products_are_those_of_scipy(shape: tuple[int, int, float], target: str, type: str, index: str) -> None:
    a, random, f = matrix(*shape, type, index), np.random.default_rng(7), definitions(type, index)
    parts = (a.indptr, a.indices, a.data)
    x, wide, left = (random.standard_normal(s).astype(type) for s in (shape[1], (shape[1], 11), shape[0]))
    np.testing.assert_allclose(agree(f.row_times_vector, target, *parts, x), a @ x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(agree(f.row_times_matrix, target, *parts, wide), a @ wide, rtol=1e-4, atol=1e-5)
    found = agree(f.transposed_times_vector, target, *parts, left, x)
    np.testing.assert_allclose(found, a.T @ left, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_without_elements_have_the_neutral_one(target: str) -> None:
    a = matrix(70, 9, 0.02, "float32", "int32")
    found = agree(definitions("float32", "int32").greatest_of_rows, target, a.indptr, a.data)
    filled = np.diff(a.indptr) > 0
    assert (found[~filled] == -np.inf).all()
    assert np.array_equal(found[filled], a.max(axis=1).toarray()[:, 0][filled])


def test_elements_in_any_order_and_twice_are_added_up() -> None:
    """As in SciPy, indices need not be sorted, and may come several times."""
    bounds, columns = np.array([0, 4, 4, 6], np.int32), np.array([3, 0, 3, 1, 2, 2], np.int32)
    values = np.arange(1, 7, dtype=np.float32)
    a = scipy.sparse.csr_matrix((values, columns, bounds), shape=(3, 5))
    x = np.random.default_rng(0).standard_normal(5).astype(np.float32)
    found = agree(definitions("float32", "int32").row_times_vector, "cpu", bounds, columns, values, x)
    np.testing.assert_allclose(found, a @ x, rtol=1e-5)
