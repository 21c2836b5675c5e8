"""The problems in NumPy, as its users write them: whole arrays, in place where that saves an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from benchmarks.problems.problem import Array


def tmm(a: Array, b: Array) -> object:
    return a @ b.T


def tbmm(x: Array, y: Array) -> object:
    return x @ y.mT


def mlp1(i: Array, w1: Array, b1: Array) -> object:
    return _layer(i, w1, b1)


def mlp3(i: Array, w2: Array, b2: Array, w3: Array, b3: Array, w4: Array, b4: Array) -> object:
    o2 = _layer(i, w2.T, b2)
    o3 = _layer(o2, w3.T, b3)
    return o2, o3, _layer(o3, w4.T, b4)


def _layer(values: Array, weights: Array, bias: Array) -> Array:
    result: Array = values @ weights
    result += bias
    return np.maximum(result, 0, out=result)


def lut1(table: Array, indices: Array) -> object:
    return table.take(indices, axis=0).sum(1)


def lut2(table1: Array, indices1: Array, table2: Array, indices2: Array) -> object:
    return lut1(table1, indices1), lut1(table2, indices2)


def group_norm(image: Array, gamma: Array, beta: Array, groups: int) -> object:
    n, channels, height, width = image.shape
    rows = image.reshape(n, groups, -1)
    mean, variance = _moments(rows)
    result = rows - mean[..., None]
    result /= np.sqrt(variance + np.float32(1e-5))[..., None]
    result = result.reshape(n, channels, height, width)
    result *= gamma[:, None, None]
    result += beta[:, None, None]
    return result


def moments(i: Array) -> object:
    return _moments(i)


def _moments(rows: Array) -> tuple[Array, Array]:
    mean = rows.mean(-1)
    return mean, np.vecdot(rows, rows) / np.float32(rows.shape[-1]) - mean * mean


def softmax(i: Array) -> object:
    result = i - i.max(1, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(1, keepdims=True)
    return result


def layer_norm(i: Array, gamma: Array, beta: Array) -> object:
    result = i - i.mean(1, keepdims=True)
    variance = np.vecdot(result, result)[:, None] / np.float32(i.shape[1])
    result /= np.sqrt(variance + np.float32(1e-5))
    result *= gamma
    result += beta
    return result


def kronecker(w2: Array, x: Array) -> object:
    return (x.reshape(-1, x.shape[-1]) @ w2.T).reshape(*x.shape[:-1], -1)


def cumsum_rows(i: Array) -> object:
    return np.cumsum(i, 1)


def cumsum_columns(i: Array) -> object:
    return np.cumsum(i, 0)


CALLS: Final[Mapping[str, Callable[..., object]]] = MappingProxyType(
    {
        call.__name__: call
        for call in (
            tmm,
            tbmm,
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
ABSENT: Final[Mapping[str, str]] = MappingProxyType({"gconv": "NumPy has no convolution"})
