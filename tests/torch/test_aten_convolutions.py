"""Convolutions of ATen and their gradients: strides, padding, dilation, groups, types, layouts."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tc.graph.ir.graph_text import graph_text
from tests.torch.agreement import agrees, random


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 2, 2), (3, 2, 1, 4)])
def test_convolutions(rank: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    convolve = getattr(functional, f"conv{rank}d")
    x, w = random(2, 4, *(9, 8, 7)[:rank], learned=True), random(8, 4 // groups, *(3, 2, 1)[:rank], learned=True)
    agrees(
        lambda x, w, b: convolve(x, w, b, stride, padding, dilation, groups), x, w, random(8, learned=True), atol=1e-4
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "more", "dilation"), [(1, 0, 0, 1), (2, 1, 1, 1), (1, 0, 1, 2), (3, 1, 2, 2)]
)
def test_transposed_convolutions(rank: int, stride: int, padding: int, more: int, dilation: int) -> None:
    convolve = getattr(functional, f"conv_transpose{rank}d")
    x, w = random(2, 4, *(5, 4, 3)[:rank], learned=True), random(4, 3, *(3, 2, 3)[:rank], learned=True)
    b = random(6, learned=True)
    agrees(lambda x, w, b: convolve(x, w, b, stride, padding, more, 2, dilation), x, w, b, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "kernel"), [((5,), (2,)), ((5, 4), (2, 3)), ((3, 4), (2, 1)), ((2, 3, 2), (3, 1, 2))]
)
@pytest.mark.parametrize("groups", [1, 2])
def test_windows_that_are_blocks_need_no_conditions(
    shape: tuple[int, ...], kernel: tuple[int, ...], groups: int
) -> None:
    convolve = getattr(functional, f"conv_transpose{len(shape)}d")
    x, w = random(2, 4, *shape, learned=True), random(4, 3, *kernel, learned=True)
    b = random(3 * groups, learned=True)
    report = agrees(lambda x, w, b: convolve(x, w, b, kernel, 0, 0, groups), x, w, b, atol=1e-4)
    forward, backward = (part.compiled[0].executions[0].plan.graph for part in report.parts)
    assert "%" not in graph_text(forward)
    place = "l" if len(shape) == 1 else "w"
    assert f"{place}, k{place})" in graph_text(backward)
    # There is an element that no window has, or two have.
    agrees(lambda x, w, b: convolve(x, w, b, kernel, 0, [k - 1 for k in kernel], groups), x, w, b, atol=1e-4)
    agrees(lambda x, w, b: convolve(x, w, b, kernel, [k - 1 for k in kernel], 0, groups), x, w, b, atol=1e-4)


def test_kernels_of_convolutions_and_their_gradients() -> None:
    x, w = random(2, 3, 9, 10, learned=True), random(4, 3, 3, 3, learned=True)
    agrees(lambda x, w: functional.conv2d(x, w, None, 2, 1), x, w, kernels=True, atol=1e-4)


def test_layouts_empty_batches_and_what_needs_no_gradient() -> None:
    w, b = random(6, 4, 3, 3, learned=True), random(6, learned=True)
    last = random(2, 4, 9, 10).to(memory_format=torch.channels_last).requires_grad_()
    agrees(lambda x, w, b: functional.conv2d(x, w, b, 2, 1), last, w, b, atol=1e-4)
    agrees(lambda x, w, b: functional.conv2d(x, w, b, 2, 1), random(0, 4, 9, 10, learned=True), w, b)
    agrees(functional.conv2d, random(4, 9, 10, learned=True), w.detach(), atol=1e-4)
    agrees(lambda x, w: functional.conv1d(x.mT, w[::2]), random(2, 9, 4), random(8, 4, 3, learned=True), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_types_of_convolutions(dtype: torch.dtype) -> None:
    x, w, b = (random(*shape, dtype=dtype) for shape in ((2, 4, 9, 10), (6, 4, 3, 3), (6,)))
    agrees(lambda x, w, b: functional.conv2d(x, w, b, 2, 1), x, w, b, rtol=2e-2, atol=2e-2)
