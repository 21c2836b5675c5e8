"""The problems in JAX: traced, compiled by XLA for the sizes at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import jax
import jax.numpy as jnp
from jax import Array


def tmm(a: Array, b: Array) -> object:
    return a @ b.T


def tbmm(x: Array, y: Array) -> object:
    return x @ y.mT


def gconv(image: Array, weights: Array, bias: Array, groups: int) -> object:
    layout = ("NCHW", "OIHW", "NCHW")
    result = jax.lax.conv_general_dilated(
        image, weights, (1, 1), "VALID", dimension_numbers=layout, feature_group_count=groups
    )
    return result + bias[:, None, None]


def mlp1(i: Array, w1: Array, b1: Array) -> object:
    return jax.nn.relu(i @ w1 + b1)


def mlp3(i: Array, w2: Array, b2: Array, w3: Array, b3: Array, w4: Array, b4: Array) -> object:
    o2 = jax.nn.relu(i @ w2.T + b2)
    o3 = jax.nn.relu(o2 @ w3.T + b3)
    return o2, o3, jax.nn.relu(o3 @ w4.T + b4)


def lut1(table: Array, indices: Array) -> object:
    return table[indices].sum(1)


def lut2(table1: Array, indices1: Array, table2: Array, indices2: Array) -> object:
    return lut1(table1, indices1), lut1(table2, indices2)


def group_norm(image: Array, gamma: Array, beta: Array, groups: int) -> object:
    rows = image.reshape(image.shape[0], groups, -1)
    normal = jax.nn.standardize(rows, 2, epsilon=1e-5).reshape(image.shape)
    return normal * gamma[:, None, None] + beta[:, None, None]


def moments(i: Array) -> object:
    mean = i.mean(1)
    return mean, jnp.square(i).mean(1) - jnp.square(mean)


def softmax(i: Array) -> object:
    return jax.nn.softmax(i, 1)


def layer_norm(i: Array, gamma: Array, beta: Array) -> object:
    return jax.nn.standardize(i, 1, epsilon=1e-5) * gamma + beta


def kronecker(w2: Array, x: Array) -> object:
    return x @ w2.T


def cumsum_rows(i: Array) -> object:
    return jnp.cumsum(i, 1)


def cumsum_columns(i: Array) -> object:
    return jnp.cumsum(i, 0)


CALLS: Final[Mapping[str, Callable[..., object]]] = MappingProxyType(
    {
        call.__name__: call
        for call in (
            tmm,
            tbmm,
            gconv,
            mlp1,
            mlp3,
            lut1,
            lut2,
            group_norm,
            moments,
            softmax,
            layer_norm,
            kronecker,
            cumsum_rows,
            cumsum_columns,
        )
    }
    | {"c3": tmm}
)
