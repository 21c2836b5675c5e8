"""The problems in Triton, as its tutorials write them, with the block sizes and warps that its autotuner chooses.

Products are as exact as ours: ``input_precision="ieee"`` keeps float32 away from the tensor cores.  Convolutions are
missing: they are not written in Triton by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

_EPSILON: Final = 1e-5
# Blocks of rows, columns and steps of a product, the warps that share them, and the stages of its loads.
_TILES: Final = (
    *((16, 16, 32, 1, 3), (16, 32, 32, 2, 3), (32, 32, 32, 2, 3), (32, 32, 64, 4, 3), (32, 64, 32, 4, 3)),
    *((64, 32, 32, 4, 3), (64, 64, 16, 4, 3), (64, 64, 32, 4, 4), (128, 64, 16, 4, 3), (64, 128, 16, 4, 3)),
    *((128, 64, 32, 8, 3), (128, 128, 16, 8, 3), (128, 128, 32, 8, 2)),
)
_PRODUCTS: Final = [
    triton.Config({"block_m": m, "block_n": n, "block_k": k}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in _TILES
]
_ROWS: Final = [triton.Config({}, num_warps=warps) for warps in (1, 2, 4, 8, 16)]
_LOOPS: Final = [
    triton.Config({"block": block}, num_warps=warps)
    for block, warps in ((256, 2), (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8), (4096, 16))
]


@triton.autotune(configs=_PRODUCTS, key=["m", "n", "k", "biased"])
@triton.jit
def _product_kernel(
    a: tl.tensor,
    b: tl.tensor,
    bias: tl.tensor,
    c: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    k: tl.tensor,
    a_batch: tl.tensor,
    a_row: tl.tensor,
    b_batch: tl.tensor,
    b_step: tl.tensor,
    b_column: tl.tensor,
    c_batch: tl.tensor,
    biased: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
) -> None:
    batch = tl.program_id(2)
    rows = tl.program_id(1) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(0) * block_n + tl.arange(0, block_n)
    a += batch * a_batch
    b += batch * b_batch
    c += batch * c_batch
    total = tl.zeros((block_m, block_n), dtype=tl.float32)
    for start in range(0, k, block_k):
        steps = start + tl.arange(0, block_k)
        left = tl.load(
            a + rows[:, None] * a_row + steps[None, :], mask=(rows[:, None] < m) & (steps[None, :] < k), other=0.0
        )
        right = tl.load(
            b + steps[:, None] * b_step + columns[None, :] * b_column,
            mask=(steps[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    if biased:
        total += tl.load(bias + columns, mask=columns < n, other=0.0)[None, :]
        total = tl.maximum(total, 0.0)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def _product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """The products of matrices ``a`` (batch, m, k) and ``b`` (batch, k, n), with a bias and a ReLU if there is one."""
    batch, m, k = a.shape
    n = b.shape[2]
    c = torch.empty((batch, m, n), device=a.device, dtype=a.dtype)

    def grid(chosen: Mapping[str, int]) -> tuple[int, int, int]:
        return triton.cdiv(n, chosen["block_n"]), triton.cdiv(m, chosen["block_m"]), batch

    strides = (a.stride(0), a.stride(1), b.stride(0), b.stride(1), b.stride(2), c.stride(0))
    _product_kernel[grid](a, b, c if bias is None else bias, c, m, n, k, *strides, biased=bias is not None)
    return c


@triton.autotune(configs=_ROWS, key=["rows", "block"])
@triton.jit
def _bag_kernel(
    table: tl.tensor,
    indices: tl.tensor,
    out: tl.tensor,
    bag: tl.tensor,
    width: tl.tensor,
    rows: tl.constexpr,
    block: tl.constexpr,
) -> None:
    number = tl.program_id(0)
    positions = tl.arange(0, rows)
    columns = tl.arange(0, block)
    chosen = tl.load(indices + number * bag + positions, mask=positions < bag, other=0).to(tl.int64)
    inside = (positions[:, None] < bag) & (columns[None, :] < width)
    values = tl.load(table + chosen[:, None] * width + columns[None, :], mask=inside, other=0.0)
    tl.store(out + number * width + columns, tl.sum(values, axis=0), mask=columns < width)


@triton.autotune(configs=_ROWS, key=["block"])
@triton.jit
def _softmax_kernel(given: tl.tensor, out: tl.tensor, width: tl.tensor, block: tl.constexpr) -> None:
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, block)
    values = tl.load(given + row + columns, mask=columns < width, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row + columns, powers / tl.sum(powers, axis=0), mask=columns < width)


@triton.autotune(configs=_ROWS, key=["block"])
@triton.jit
def _layer_norm_kernel(
    given: tl.tensor,
    gamma: tl.tensor,
    beta: tl.tensor,
    out: tl.tensor,
    width: tl.tensor,
    epsilon: tl.tensor,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, block)
    inside = columns < width
    values = tl.load(given + row + columns, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / width, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    scaled = centred * scale * tl.load(gamma + columns, mask=inside, other=0.0)
    tl.store(out + row + columns, scaled + tl.load(beta + columns, mask=inside, other=0.0), mask=inside)


@triton.autotune(configs=_LOOPS, key=["width"])
@triton.jit
def _moments_kernel(
    given: tl.tensor, mean: tl.tensor, variance: tl.tensor, width: tl.tensor, block: tl.constexpr
) -> None:
    row = tl.program_id(0)
    total = tl.zeros((block,), dtype=tl.float32)
    squares = tl.zeros((block,), dtype=tl.float32)
    for start in range(0, width, block):
        columns = start + tl.arange(0, block)
        values = tl.load(given + row.to(tl.int64) * width + columns, mask=columns < width, other=0.0)
        total += values
        squares += values * values
    average = tl.sum(total, axis=0) / width
    tl.store(mean + row, average)
    tl.store(variance + row, tl.sum(squares, axis=0) / width - average * average)


@triton.autotune(configs=_LOOPS, key=["width"])
@triton.jit
def _group_norm_kernel(
    image: tl.tensor,
    gamma: tl.tensor,
    beta: tl.tensor,
    out: tl.tensor,
    groups: tl.tensor,
    channels: tl.tensor,
    pixels: tl.tensor,
    width: tl.tensor,
    epsilon: tl.tensor,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    begin = row.to(tl.int64) * width
    total = tl.zeros((block,), dtype=tl.float32)
    squares = tl.zeros((block,), dtype=tl.float32)
    for start in range(0, width, block):
        columns = start + tl.arange(0, block)
        values = tl.load(image + begin + columns, mask=columns < width, other=0.0)
        total += values
        squares += values * values
    average = tl.sum(total, axis=0) / width
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / width - average * average + epsilon)
    for start in range(0, width, block):
        columns = start + tl.arange(0, block)
        inside = columns < width
        channel = (row % groups) * channels + columns // pixels
        values = tl.load(image + begin + columns, mask=inside, other=0.0)
        scaled = (values - average) * scale * tl.load(gamma + channel, mask=inside, other=0.0)
        tl.store(out + begin + columns, scaled + tl.load(beta + channel, mask=inside, other=0.0), mask=inside)


def tmm(a: Tensor, b: Tensor) -> object:
    return _product(a[None], b.mT[None])[0]


def tbmm(x: Tensor, y: Tensor) -> object:
    return _product(x, y.mT)


def kronecker(w2: Tensor, x: Tensor) -> object:
    return _product(x.reshape(1, -1, x.shape[-1]), w2.mT[None]).reshape(*x.shape[:-1], -1)


def mlp1(i: Tensor, w1: Tensor, b1: Tensor) -> object:
    return _product(i[None], w1[None], b1)[0]


def mlp3(i: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor, w4: Tensor, b4: Tensor) -> object:
    o2 = _product(i[None], w2.mT[None], b2)
    o3 = _product(o2, w3.mT[None], b3)
    return o2[0], o3[0], _product(o3, w4.mT[None], b4)[0]


def _lut(table: Tensor, indices: Tensor) -> Tensor:
    bags, bag = indices.shape
    out = torch.empty((bags, table.shape[1]), device=table.device, dtype=table.dtype)
    rows, block = triton.next_power_of_2(bag), triton.next_power_of_2(table.shape[1])
    _bag_kernel[(bags,)](table, indices, out, bag, table.shape[1], rows=rows, block=block)
    return out


def lut1(table: Tensor, indices: Tensor) -> object:
    return _lut(table, indices)


def lut2(table1: Tensor, indices1: Tensor, table2: Tensor, indices2: Tensor) -> object:
    return _lut(table1, indices1), _lut(table2, indices2)


def softmax(i: Tensor) -> object:
    out = torch.empty_like(i)
    _softmax_kernel[(i.shape[0],)](i, out, i.shape[1], block=triton.next_power_of_2(i.shape[1]))
    return out


def layer_norm(i: Tensor, gamma: Tensor, beta: Tensor) -> object:
    out, width = torch.empty_like(i), i.shape[1]
    _layer_norm_kernel[(i.shape[0],)](i, gamma, beta, out, width, _EPSILON, block=triton.next_power_of_2(width))
    return out


def moments(i: Tensor) -> object:
    mean, variance = (torch.empty(i.shape[0], device=i.device, dtype=i.dtype) for _ in range(2))
    _moments_kernel[(i.shape[0],)](i, mean, variance, i.shape[1])
    return mean, variance


def group_norm(image: Tensor, gamma: Tensor, beta: Tensor, groups: int) -> object:
    out, (n, channels, height, width) = torch.empty_like(image), image.shape
    own, pixels = channels // groups, height * width
    _group_norm_kernel[(n * groups,)](image, gamma, beta, out, groups, own, pixels, own * pixels, _EPSILON)
    return out


CALLS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        call.__name__: call
        for call in (tmm, tbmm, kronecker, mlp1, mlp3, lut1, lut2, softmax, layer_norm, moments, group_norm)
    }
    | {"c3": tmm}
)
