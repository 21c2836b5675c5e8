"""The operators in JAX: traced, compiled by XLA for the sizes at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

import jax
import jax.numpy as jnp
from jax import Array, lax

Call = Callable[..., object]
_LAYOUTS_OF: Final[Mapping[int, tuple[str, str, str]]] = MappingProxyType(
    {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW"), 5: ("NCDHW", "OIDHW", "NCDHW")}
)


def _convolution(image: Array, weights: Array, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> Array:
    count = image.ndim - 2
    return lax.conv_general_dilated(
        image,
        weights,
        (stride,) * count,
        [(padding, padding)] * count,
        rhs_dilation=(dilation,) * count,
        dimension_numbers=_LAYOUTS_OF[image.ndim],
    )


def _transposed(image: Array, weights: Array, *, stride: int = 1, padding: int = 0) -> Array:
    count = image.ndim - 2
    turned = jnp.flip(weights, tuple(range(2, weights.ndim))).swapaxes(0, 1)
    ends = [(size - 1 - padding, size - 1 - padding) for size in weights.shape[2:]]
    return lax.conv_general_dilated(
        image, turned, (1,) * count, ends, lhs_dilation=(stride,) * count, dimension_numbers=_LAYOUTS_OF[image.ndim]
    )


def _depthwise(image: Array, weights: Array, *, stride: int = 1) -> Array:
    return lax.conv_general_dilated(
        image,
        weights[:, None],
        (stride, stride),
        [(1, 1), (1, 1)],
        dimension_numbers=_LAYOUTS_OF[4],
        feature_group_count=len(weights),
    )


def _pointwise(image: Array, weights: Array, *, stride: int = 1) -> Array:
    return _convolution(image, weights[:, :, None, None], stride=stride)


def _separable(image: Array, depthwise: Array, pointwise: Array) -> Array:
    return _pointwise(_depthwise(image, depthwise), pointwise)


def _grouped(image: Array, weights: Array) -> Array:
    joined, filters = image.reshape(len(image), -1, *image.shape[3:]), weights.reshape(-1, *weights.shape[2:])
    found = lax.conv_general_dilated(
        joined,
        filters,
        (1, 1),
        [(1, 1), (1, 1)],
        dimension_numbers=_LAYOUTS_OF[4],
        feature_group_count=len(weights),
    )
    return found.reshape(*image.shape[:2], -1, *image.shape[3:])


def _convolution_last(image: Array, weights: Array) -> Array:
    return lax.conv_general_dilated(image, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "OHWI", "NHWC"))


def _pool(
    x: Array, window: Sequence[int], stride: int, *, start: float, combine: Call, padding: int = 0, scale: float = 1.0
) -> Array:
    apart = x.ndim - len(window)
    sizes, steps = (1,) * apart + tuple(window), (1,) * apart + (stride,) * len(window)
    ends = [(0, 0)] * apart + [(padding, padding)] * len(window)
    return lax.reduce_window(x, start, combine, sizes, steps, ends) * scale


_max_pool: Final = partial(_pool, start=-jnp.inf, combine=lax.max)
_sum_pool: Final = partial(_pool, start=0.0, combine=lax.add)


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + epsilon)


def _batch_norm(x: Array, gain: Array, bias: Array) -> Array:
    return _normalized(x, (0, 2, 3)) * gain[:, None, None] + bias[:, None, None]


def _batch_norm_inference(x: Array, mean: Array, d: Array, gain: Array, bias: Array) -> Array:
    scale = gain * lax.rsqrt(d * d + 1e-5)
    return (x - mean[:, None, None]) * scale[:, None, None] + bias[:, None, None]


def _rms(x: Array, axis: int) -> Array:
    return x * lax.rsqrt(jnp.square(x).mean(axis, keepdims=True) + 1e-5)


def _cross_entropy(x: Array, target: Array) -> Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(x, 1), target[:, None], 1).mean()


def _huber(x: Array, target: Array) -> Array:
    d = jnp.abs(x - target)
    return jnp.where(d < 1, 0.5 * d * d, d - 0.5).mean()


def _triplet(a: Array, p: Array, q: Array) -> Array:
    near, far = (jnp.sqrt(jnp.square(a - other + 1e-6).sum(1)) for other in (p, q))
    return jnp.maximum(near - far + 1, 0).mean()


def _cosine(x: Array, t: Array) -> Array:
    return (1 - (x * t).sum(1) / jnp.sqrt((x * x).sum(1) * (t * t).sum(1))).mean()


def _attention(q: Array, k: Array, v: Array, *, is_causal: bool = False) -> Array:
    scores = jnp.einsum("bnd,bmd->bnm", q, k) / jnp.sqrt(q.shape[-1])
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
    return jnp.einsum("bnm,bme->bne", jax.nn.softmax(scores, -1), v)


def _bytes_product(a: Array, b: Array) -> Array:
    return lax.dot(a, b, preferred_element_type=jnp.int32)


def _layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    return (_normalized(x.astype(jnp.float32), (1,)) * gain + bias).astype(x.dtype)


OPERATORS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "matmul": jnp.matmul,
        "matmul_left": lambda a, b: a.T @ b,
        "matmul_both": lambda a, b: a.T @ b.T,
        "vector_matrix": jnp.matmul,
        "matrix_vector": jnp.matmul,
        "outer": jnp.outer,
        "batched": jnp.matmul,
        "tensor_matrix": jnp.matmul,
        "two_dimensions": lambda x, y: jnp.tensordot(x, y, 2),
        "diagonal": lambda d, a: d[:, None] * a,
        "upper": lambda a, b: jnp.triu(jnp.triu(a) @ jnp.triu(b)),
        "linear": lambda x, w, b: jax.nn.relu(x @ w.T + b),
        "linear_gelu": lambda x, w, b: jax.nn.gelu(x @ w.T + b, approximate=False),
        "norm_linear": lambda x, g, w: (_rms(x, 1) * g) @ w.T,
        "gated": lambda x, u, v: jax.nn.silu(x @ u.T) * (x @ v.T),
        "convolution1d": _convolution,
        "convolution1d_strided": partial(_convolution, stride=3, dilation=4),
        "convolution": _convolution,
        "convolution_same": partial(_convolution, padding=1),
        "convolution_bias": lambda i, k, b: jax.nn.relu(_convolution(i, k, padding=1) + b[:, None, None]),
        "convolution_halved": partial(_convolution, stride=2, padding=1),
        "convolution_stem": partial(_convolution, stride=2, padding=3),
        "convolution_dilated": partial(_convolution, dilation=2),
        "pointwise": _pointwise,
        "pointwise_halved": partial(_pointwise, stride=2),
        "pointwise_last": lambda i, k: i @ k.T,
        "convolution_last": _convolution_last,
        "depthwise": _depthwise,
        "depthwise_halved": partial(_depthwise, stride=2),
        "separable": _separable,
        "grouped": _grouped,
        "convolution3d": _convolution,
        "transposed1d": _transposed,
        "transposed": _transposed,
        "transposed_guarded": _transposed,
        "transposed_doubled": partial(_transposed, stride=2),
        "transposed_four": partial(_transposed, stride=2, padding=1),
        "transposed3d": _transposed,
        "relu": jax.nn.relu,
        "leaky_relu": jax.nn.leaky_relu,
        "sigmoid": jax.nn.sigmoid,
        "hyperbolic": jnp.tanh,
        "swish": jax.nn.silu,
        "gelu": partial(jax.nn.gelu, approximate=False),
        "gelu_tanh": jax.nn.gelu,
        "selu": jax.nn.selu,
        "hard_sigmoid": jax.nn.hard_sigmoid,
        "softplus": jax.nn.softplus,
        "softsign": jax.nn.soft_sign,
        "bias_residual": lambda x, b, r: jax.nn.relu(x + b) + r,
        "masked": lambda x, mask: jnp.where(mask, x, -1e9),
        "sum_all": jnp.sum,
        "sum_rows": lambda x: x.sum(1),
        "sum_columns": lambda x: x.sum(0),
        "sum_middle": lambda x: x.sum(1),
        "mean_last": lambda x: x.mean(2),
        "min_rows": lambda x: x.min(1),
        "max_middle": lambda x: x.max(1),
        "product_rows": lambda x: x.prod(1),
        "argmax_rows": lambda x: (x.max(1), x.argmax(1)),
        "argmin_columns": lambda x: (x.min(0), x.argmin(0)),
        "log_sum_exp": lambda x: jax.nn.logsumexp(x, 1),
        "variance": lambda x: x.var(1),
        "cumulative_product": lambda x: jnp.cumprod(x, 1),
        "reverse_cumulative": lambda x: lax.cumsum(x, 1, reverse=True),
        "softmax_rows": lambda x: jax.nn.softmax(x, 1),
        "log_softmax_rows": lambda x: jax.nn.log_softmax(x, 1),
        "softmax_channels": lambda x: jax.nn.softmax(x, 1),
        "batch_norm": _batch_norm,
        "batch_norm_inference": _batch_norm_inference,
        "instance_norm": lambda x: _normalized(x, (2, 3)),
        "rms_norm": lambda x, g: _rms(x, 1) * g,
        "rms_channels": lambda x: _rms(x, 1),
        "frobenius": lambda x: x / jnp.linalg.norm(x),
        "unit_l1": lambda x: x / jnp.abs(x).sum(1, keepdims=True),
        "unit_l2": lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
        "max_pool1d": lambda x: _max_pool(x, (4,), 2),
        "max_pool": lambda x: _max_pool(x, (2, 2), 2),
        "max_pool_padded": lambda x: _max_pool(x, (3, 3), 2, padding=1),
        "max_pool_dense": lambda x: _max_pool(x, (3, 3), 1),
        "max_pool3d": lambda x: _max_pool(x, (3, 3, 3), 2),
        "average_pool1d": lambda x: _sum_pool(x, (8,), 1, scale=1 / 8),
        "average_pool": lambda x: _sum_pool(x, (2, 2), 2, scale=1 / 4),
        "average_pool3d": lambda x: _sum_pool(x, (2, 2, 2), 2, scale=1 / 8),
        "average_global": lambda x: x.mean((2, 3)),
        "squared_error": lambda x, t: jnp.square(x - t).mean(),
        "cross_entropy": _cross_entropy,
        "huber": _huber,
        "divergence": lambda x, t: (jnp.exp(t) * (t - x)).sum() / len(x),
        "triplet": _triplet,
        "cosine": _cosine,
        "hinge": lambda x, t: jnp.maximum(1 - x * t, 0).mean(),
        "transpose": jnp.transpose,
        "channels_last": lambda x: x.transpose(0, 2, 3, 1),
        "heads": lambda x: x.transpose(0, 2, 1, 3),
        "concatenate": lambda x, y: jnp.concatenate((x, y), 1),
        "upsample": lambda x: x.repeat(2, 2).repeat(2, 3),
        "pixel_shuffle": lambda x: x.transpose(0, 1, 4, 2, 5, 3).reshape(*x.shape[:2], 2 * x.shape[4], 2 * x.shape[5]),
        "pad": lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))),
        "flip": lambda x: jnp.flip(x, 1),
        "embedding": lambda table, index: table[index],
        "attention": _attention,
        "attention_causal": partial(_attention, is_causal=True),
        "matmul_int8": _bytes_product,
        "linear_uint8": lambda a, b: lax.dot(a.astype(jnp.int32), b.astype(jnp.int32).T),
        "matmul_bfloat16": jnp.matmul,
        "linear_bfloat16": lambda a, b: a @ b.T,
        "matmul_float16": jnp.matmul,
        "gelu_bfloat16": partial(jax.nn.gelu, approximate=False),
        "softmax_float16": lambda x: jax.nn.softmax(x, 1),
        "layer_norm_bfloat16": _layer_norm,
    }
)
