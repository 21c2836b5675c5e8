"""Comprehensions as functions of JAX: traced, differentiated, in batches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tc

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

SOFTMAX = """
def softmax(float(N,D) x, float a) -> (y) {
    m(n) max=! a * x(n,d)
    e(n,d) = exp(a * x(n,d) - m(n))
    s(n) +=! e(n,d)
    y(n,d) = e(n,d) / s(n)
}"""
X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def softmax() -> Callable[..., Any]:
    function: Callable[..., Any] = tc.jax.call(tc.define(SOFTMAX))
    return function


def test_called_and_traced() -> None:
    f, expected = softmax(), jax.nn.softmax(2 * X, 1)
    np.testing.assert_allclose(f(X, 2.0), expected, atol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(X, 2.0), expected, atol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda x: f(x * 2, 1.0) + 1)(X), expected + 1, atol=1e-6)


def test_gradients() -> None:
    f = softmax()

    def ours(x: Any) -> Any:
        return (f(x, 2.0) ** 3).sum()

    expected = jax.grad(lambda x: (jax.nn.softmax(2 * x, 1) ** 3).sum())(X)
    np.testing.assert_allclose(jax.grad(ours)(X), expected, atol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(ours))(X), expected, atol=1e-5)


def test_batches_are_calls_of_their_members() -> None:
    batch = jnp.stack([X, 2 * X])
    found = jax.vmap(lambda x: softmax()(x, 2.0))(batch)
    np.testing.assert_allclose(found, jax.nn.softmax(2 * batch, 2), atol=1e-6)


def test_integers_have_no_gradient() -> None:
    f = tc.jax.call(tc.define("def emb(float(E,D) T, int32(B) I) -> (O, k) { O(b,d) = T(I(b),d)  k(b) = I(b) + 1 }"))
    indices = jnp.asarray([1, 0, 1], jnp.int32)
    found = jax.grad(lambda t: f(t, indices)[0].sum())(jnp.ones((3, 2)))
    np.testing.assert_array_equal(found, [[1, 1], [2, 2], [0, 0]])
    assert f(jnp.ones((3, 2)), indices)[1].tolist() == [2, 1, 2]


def test_numbers_that_shapes_depend_on_are_not_traced() -> None:
    f = tc.jax.call(tc.define("def pad(float(N) x, int32 k) -> (y) { y(i) = i < N ? x(i) : 0 where i in 0:N+k }"))
    np.testing.assert_array_equal(jax.jit(f, static_argnums=1)(jnp.ones(2), 2), [1, 1, 0, 0])
    message = "shapes of pad depend on k: a number, as static_argnums makes it"
    with pytest.raises(tc.TCError, match=re.escape(message)):
        jax.jit(f)(jnp.ones(2), 2)


def test_what_is_no_function() -> None:
    with pytest.raises(tc.TCError, match="softmax takes x, a, got 1 arguments"):
        softmax()(X)
    with pytest.raises(tc.TCError, match="add changes results that come in, and functions of JAX change nothing"):
        tc.jax.call(tc.define("def add(float(N) x) -> (y) { y(i) += x(i) }"))
