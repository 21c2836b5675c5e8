"""The problems in PyTorch: the call that its documentation has for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional


def tmm(a: Tensor, b: Tensor) -> object:
    return a @ b.mT


def tbmm(x: Tensor, y: Tensor) -> object:
    return x @ y.mT


def gconv(image: Tensor, weights: Tensor, bias: Tensor, groups: int) -> object:
    return functional.conv2d(image, weights, bias, groups=groups)


def mlp1(i: Tensor, w1: Tensor, b1: Tensor) -> object:
    return torch.addmm(b1, i, w1).relu_()


def mlp3(i: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor, w4: Tensor, b4: Tensor) -> object:
    o2 = functional.linear(i, w2, b2).relu_()
    o3 = functional.linear(o2, w3, b3).relu_()
    return o2, o3, functional.linear(o3, w4, b4).relu_()


def lut1(table: Tensor, indices: Tensor) -> object:
    return functional.embedding_bag(indices, table, mode="sum")


def lut2(table1: Tensor, indices1: Tensor, table2: Tensor, indices2: Tensor) -> object:
    return lut1(table1, indices1), lut1(table2, indices2)


def group_norm(image: Tensor, gamma: Tensor, beta: Tensor, groups: int) -> object:
    return functional.group_norm(image, groups, gamma, beta, 1e-5)


def moments(i: Tensor) -> object:
    variance, mean = torch.var_mean(i, 1, correction=0)
    return mean, variance


def softmax(i: Tensor) -> object:
    return functional.softmax(i, 1)


def layer_norm(i: Tensor, gamma: Tensor, beta: Tensor) -> object:
    return functional.layer_norm(i, gamma.shape, gamma, beta, 1e-5)


def kronecker(w2: Tensor, x: Tensor) -> object:
    return functional.linear(x, w2)


def cumsum_rows(i: Tensor) -> object:
    return torch.cumsum(i, 1)


def cumsum_columns(i: Tensor) -> object:
    return torch.cumsum(i, 0)


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
