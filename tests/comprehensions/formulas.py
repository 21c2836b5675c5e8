"""PyTorch's functions on NumPy arrays: the independent side of the corpus, in float64."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.grad

Floats: TypeAlias = npt.NDArray[np.float64]

_GRADIENTS: Any = torch.nn.grad  # which has no types


def _tensor(array: Floats) -> torch.Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64))


def _array(tensor: torch.Tensor) -> Floats:
    return np.asarray(tensor.numpy(), dtype=np.float64)


def convolution(
    data: Floats,
    weight: Floats,
    bias: Floats | None = None,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Floats:
    """Cross-correlation of ``data`` (batch, channels, space...) with ``weight`` (filters, channels, space...)."""
    convolve = {3: torch.nn.functional.conv1d, 4: torch.nn.functional.conv2d, 5: torch.nn.functional.conv3d}[data.ndim]
    result: torch.Tensor = convolve(
        _tensor(data),
        _tensor(weight),
        None if bias is None else _tensor(bias),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return _array(result)


def grouped_convolution(data: Floats, weight: Floats, bias: Floats, stride: int = 1) -> Floats:
    """``data`` (N, G, C, H, W), ``weight`` (G, F, C, KH, KW), ``bias`` (G, F) to (N, G, F, H', W')."""
    batch, groups, channels, *space = data.shape
    filters = weight.shape[1]
    flat = convolution(
        data.reshape(batch, groups * channels, *space),
        weight.reshape(groups * filters, *weight.shape[2:]),
        bias.reshape(-1),
        stride=stride,
        groups=groups,
    )
    return flat.reshape(batch, groups, filters, *flat.shape[2:])


def convolution_gradients(data: Floats, weight: Floats, gradient: Floats, stride: int = 1) -> tuple[Floats, Floats]:
    """Gradients of a convolution in two dimensions towards its data and its weight, by PyTorch."""
    towards_data = _GRADIENTS.conv2d_input(data.shape, _tensor(weight), _tensor(gradient), stride=stride)
    towards_weight = _GRADIENTS.conv2d_weight(_tensor(data), weight.shape, _tensor(gradient), stride=stride)
    return _array(towards_data), _array(towards_weight)


def max_pool(data: Floats, window: tuple[int, int], stride: tuple[int, int]) -> Floats:
    """Greatest values of windows of the last two dimensions."""
    return _array(torch.nn.functional.max_pool2d(_tensor(data), window, stride))


def average_pool(data: Floats, window: tuple[int, int], stride: tuple[int, int]) -> Floats:
    """Means of windows of the last two dimensions."""
    return _array(torch.nn.functional.avg_pool2d(_tensor(data), window, stride))


def linear_relu(data: Floats, weight: Floats, bias: Floats) -> Floats:
    """A fully connected layer and a rectified linear unit."""
    return _array(torch.relu(torch.nn.functional.linear(_tensor(data), _tensor(weight), _tensor(bias))))


def softmax(data: Floats) -> Floats:
    """Softmax over the last dimension."""
    return _array(torch.softmax(_tensor(data), dim=-1))


def log_softmax(data: Floats) -> Floats:
    """Logarithm of the softmax over the last dimension."""
    return _array(torch.log_softmax(_tensor(data), dim=-1))


def layer_norm(data: Floats, epsilon: float) -> Floats:
    """Layer normalization over the last dimension."""
    return _array(torch.nn.functional.layer_norm(_tensor(data), data.shape[-1:], eps=epsilon))


def group_norm(data: Floats, gamma: Floats, beta: Floats, epsilon: float) -> Floats:
    """Group normalization of ``data`` (N, G, D, H, W) with ``gamma`` and ``beta`` (G, D)."""
    batch, groups, depth, *space = data.shape
    flat = torch.nn.functional.group_norm(
        _tensor(data.reshape(batch, groups * depth, *space)),
        groups,
        _tensor(gamma.reshape(-1)),
        _tensor(beta.reshape(-1)),
        epsilon,
    )
    return _array(flat).reshape(data.shape)


def batch_norm(data: Floats, mean: Floats, variance: Floats, epsilon: float) -> Floats:
    """Batch normalization with given statistics of the second dimension."""
    return _array(torch.nn.functional.batch_norm(_tensor(data), _tensor(mean), _tensor(variance), eps=epsilon))


def attention(query: Floats, key: Floats, value: Floats, *, causal: bool) -> Floats:
    """Scaled dot-product attention; ``causal`` hides what comes later."""
    return _array(
        torch.nn.functional.scaled_dot_product_attention(_tensor(query), _tensor(key), _tensor(value), is_causal=causal)
    )


def upsample_nearest(data: Floats, factor: int) -> Floats:
    """Every pixel repeated ``factor`` times in both of the last two dimensions."""
    return _array(torch.nn.functional.interpolate(_tensor(data), scale_factor=factor, mode="nearest"))


def embedding_sum(table: Floats, subscripts: npt.NDArray[np.int32]) -> Floats:
    """Sums of the rows of ``table`` that each row of ``subscripts`` names."""
    return np.asarray(np.take(table, subscripts, axis=0).sum(axis=1), dtype=np.float64)
