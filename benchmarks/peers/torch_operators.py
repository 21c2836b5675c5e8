"""The operators in PyTorch: the call that its documentation has for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

Call = Callable[..., object]


def _convolution(convolve: Callable[..., Tensor], **given: Any) -> Call:
    return lambda image, weights: convolve(image, weights, **given)


def _pointwise(stride: int = 1) -> Call:
    return lambda image, weights: functional.conv2d(image, weights[:, :, None, None], stride=stride)


def _depthwise(stride: int = 1) -> Call:
    return lambda image, weights: functional.conv2d(
        image, weights[:, None], stride=stride, padding=1, groups=len(weights)
    )


def _separable(image: Tensor, depthwise: Tensor, pointwise: Tensor) -> object:
    between = functional.conv2d(image, depthwise[:, None], padding=1, groups=len(depthwise))
    return functional.conv2d(between, pointwise[:, :, None, None])


def _grouped(image: Tensor, weights: Tensor) -> object:
    joined, filters = image.flatten(1, 2), weights.flatten(0, 1)
    return functional.conv2d(joined, filters, padding=1, groups=len(weights)).view(
        *image.shape[:2], -1, *image.shape[3:]
    )


def _convolution_bias(image: Tensor, weights: Tensor, bias: Tensor) -> object:
    return torch.relu_(functional.conv2d(image, weights, bias, padding=1))


def _convolution_last(image: Tensor, weights: Tensor) -> object:
    """Views of tensors whose memory format is ``torch.channels_last``."""
    found = functional.conv2d(image.permute(0, 3, 1, 2), weights.permute(0, 3, 1, 2), padding=1)
    return found.permute(0, 2, 3, 1).contiguous()


def _norm_linear(x: Tensor, gain: Tensor, weights: Tensor) -> object:
    return functional.rms_norm(x, gain.shape, gain, 1e-5) @ weights.mT


def _gated(x: Tensor, u: Tensor, v: Tensor) -> object:
    return functional.silu(x @ u.mT) * (x @ v.mT)


def _rms_channels(x: Tensor) -> object:
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5)


def _linear_uint8(a: Tensor, b: Tensor) -> object:
    """oneDNN's product; its weights are packed in every call, as ours are."""
    packed = torch.ops.onednn.qlinear_prepack(b, list(a.shape))
    one, zero = torch.ones(b.shape[0]), torch.zeros(b.shape[0], dtype=torch.int32)
    return torch.ops.onednn.qlinear_pointwise(a, 1.0, 0, packed, one, zero, None, 1.0, 0, torch.float32, "none", [], "")


def _attention(*, is_causal: bool) -> Call:
    def call(q: Tensor, k: Tensor, v: Tensor) -> object:
        return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=is_causal)[0]

    return call


def _argmin(x: Tensor) -> object:
    return torch.min(x, 0)


_PRODUCTS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "matmul": torch.mm,
        "matmul_left": lambda a, b: a.mT @ b,
        "matmul_both": lambda a, b: a.mT @ b.mT,
        "vector_matrix": torch.matmul,
        "matrix_vector": torch.matmul,
        "outer": torch.outer,
        "batched": torch.bmm,
        "tensor_matrix": torch.matmul,
        "two_dimensions": lambda x, y: torch.tensordot(x, y, 2),
        "diagonal": lambda d, a: d[:, None] * a,
        "upper": lambda a, b: torch.triu(torch.triu(a) @ torch.triu(b)),
        "linear": lambda x, w, b: torch.relu_(functional.linear(x, w, b)),
        "linear_gelu": lambda x, w, b: functional.gelu(functional.linear(x, w, b)),
        "norm_linear": _norm_linear,
        "gated": _gated,
    }
)
_CONVOLUTIONS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "convolution1d": functional.conv1d,
        "convolution1d_strided": _convolution(functional.conv1d, stride=3, dilation=4),
        "convolution": functional.conv2d,
        "convolution_same": _convolution(functional.conv2d, padding=1),
        "convolution_bias": lambda image, weights, bias: torch.relu_(
            functional.conv2d(image, weights, bias, padding=1)
        ),
        "convolution_halved": _convolution(functional.conv2d, stride=2, padding=1),
        "convolution_stem": _convolution(functional.conv2d, stride=2, padding=3),
        "convolution_dilated": _convolution(functional.conv2d, dilation=2),
        "pointwise": _pointwise(),
        "pointwise_halved": _pointwise(stride=2),
        "pointwise_last": functional.linear,
        "convolution_last": _convolution_last,
        "depthwise": _depthwise(),
        "depthwise_halved": _depthwise(stride=2),
        "separable": _separable,
        "grouped": _grouped,
        "convolution3d": functional.conv3d,
        "transposed1d": functional.conv_transpose1d,
        "transposed": functional.conv_transpose2d,
        "transposed_guarded": functional.conv_transpose2d,
        "transposed_doubled": _convolution(functional.conv_transpose2d, stride=2),
        "transposed_four": _convolution(functional.conv_transpose2d, stride=2, padding=1),
        "transposed3d": functional.conv_transpose3d,
    }
)
_ELEMENTWISE: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "relu": torch.relu,
        "leaky_relu": functional.leaky_relu,
        "sigmoid": torch.sigmoid,
        "hyperbolic": torch.tanh,
        "swish": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "selu": functional.selu,
        "hard_sigmoid": functional.hardsigmoid,
        "softplus": functional.softplus,
        "softsign": functional.softsign,
        "bias_residual": lambda x, b, r: torch.relu_(x + b).add_(r),
        "masked": lambda x, mask: torch.where(mask, x, -1e9),
    }
)
_REDUCTIONS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "sum_all": torch.sum,
        "sum_rows": lambda x: x.sum(1),
        "sum_columns": lambda x: x.sum(0),
        "sum_middle": lambda x: x.sum(1),
        "mean_last": lambda x: x.mean(2),
        "min_rows": lambda x: x.amin(1),
        "max_middle": lambda x: x.amax(1),
        "product_rows": lambda x: x.prod(1),
        "argmax_rows": lambda x: torch.max(x, 1),
        "argmin_columns": _argmin,
        "log_sum_exp": lambda x: torch.logsumexp(x, 1),
        "variance": lambda x: x.var(1, correction=0),
        "cumulative_product": lambda x: torch.cumprod(x, 1),
        "reverse_cumulative": lambda x: x.flip(1).cumsum(1).flip(1),
    }
)
_NORMS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "softmax_rows": lambda x: functional.softmax(x, 1),
        "log_softmax_rows": lambda x: functional.log_softmax(x, 1),
        "softmax_channels": lambda x: functional.softmax(x, 1),
        "batch_norm": lambda x, g, b: functional.batch_norm(x, None, None, g, b, training=True),
        "batch_norm_inference": lambda x, mean, d, gain, bias: functional.batch_norm(x, mean, d * d, gain, bias),
        "instance_norm": functional.instance_norm,
        "rms_norm": lambda x, g: functional.rms_norm(x, g.shape, g, 1e-5),
        "rms_channels": _rms_channels,
        "frobenius": lambda x: x / torch.linalg.norm(x),
        "unit_l1": lambda x: x / x.abs().sum(1, keepdim=True),
        "unit_l2": lambda x: x / x.norm(dim=1, keepdim=True),
    }
)
_WINDOWS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "max_pool1d": lambda x: functional.max_pool1d(x, 4, 2),
        "max_pool": lambda x: functional.max_pool2d(x, 2),
        "max_pool_padded": lambda x: functional.max_pool2d(x, 3, 2, 1),
        "max_pool_dense": lambda x: functional.max_pool2d(x, 3, 1),
        "max_pool3d": lambda x: functional.max_pool3d(x, 3, 2),
        "average_pool1d": lambda x: functional.avg_pool1d(x, 8, 1),
        "average_pool": lambda x: functional.avg_pool2d(x, 2),
        "average_pool3d": lambda x: functional.avg_pool3d(x, 2),
        "average_global": lambda x: x.mean((2, 3)),
    }
)
_LOSSES: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "squared_error": functional.mse_loss,
        "cross_entropy": functional.cross_entropy,
        "huber": functional.smooth_l1_loss,
        "divergence": lambda x, t: functional.kl_div(x, t, reduction="batchmean", log_target=True),
        "triplet": functional.triplet_margin_loss,
        "cosine": lambda x, t: (1 - functional.cosine_similarity(x, t)).mean(),
        "hinge": lambda x, t: torch.clamp(1 - x * t, min=0).mean(),
    }
)
_LAYOUTS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "transpose": lambda x: x.mT.contiguous(),
        "channels_last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
        "heads": lambda x: x.permute(0, 2, 1, 3).contiguous(),
        "concatenate": lambda x, y: torch.cat((x, y), 1),
        "upsample": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
        "pixel_shuffle": lambda x: functional.pixel_shuffle(x.flatten(1, 3), 2),
        "pad": lambda x: functional.pad(x, (1, 1, 1, 1)),
        "flip": lambda x: x.flip(1),
        "embedding": lambda table, index: functional.embedding(index, table),
    }
)
_ATTENTION: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "attention": _attention(is_causal=False),
        "attention_causal": _attention(is_causal=True),
    }
)
_LOW_PRECISION: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "matmul_int8": torch._int_mm,
        "linear_uint8": _linear_uint8,
        "matmul_bfloat16": torch.mm,
        "linear_bfloat16": functional.linear,
        "matmul_float16": torch.mm,
        "gelu_bfloat16": functional.gelu,
        "softmax_float16": lambda x: functional.softmax(x, 1),
        "layer_norm_bfloat16": lambda x, g, b: functional.layer_norm(x, g.shape, g, b, 1e-5),
    }
)
OPERATORS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        **_PRODUCTS,
        **_CONVOLUTIONS,
        **_ELEMENTWISE,
        **_REDUCTIONS,
        **_NORMS,
        **_WINDOWS,
        **_LOSSES,
        **_LAYOUTS,
        **_ATTENTION,
        **_LOW_PRECISION,
    }
)
