"""Sampling of images at positions, and resizing."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.torch.agreement import agrees, random, refused


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("aligned", [False, True])
def test_sampling_of_images(mode: str, padding: str, aligned: bool) -> None:
    x, grid = random(2, 2, 5, 6), random(2, 3, 4, 2) * 1.5
    agrees(lambda x, grid: functional.grid_sample(x, grid, mode, padding, aligned), x, grid, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_sampling_of_volumes_and_gradients(mode: str) -> None:
    volume, grid = random(1, 2, 3, 4, 5), random(1, 2, 3, 2, 3)
    agrees(lambda x, grid: functional.grid_sample(x, grid, mode, align_corners=False), volume, grid, atol=1e-4)
    x, places = random(2, 2, 5, 6, learned=True), random(2, 3, 4, 2, learned=True)
    agrees(lambda x, grid: functional.grid_sample(x, grid, mode, align_corners=True), x, places, atol=1e-3)
    agrees(lambda x, grid: functional.grid_sample(x, grid, mode, align_corners=True), x, places.detach(), atol=1e-3)


def test_empty_images_are_left() -> None:
    found = refused(
        lambda x, grid: functional.grid_sample(x, grid, align_corners=False), random(0, 2, 5, 6), random(0, 3, 4, 2)
    )
    assert found == {"aten.grid_sampler_2d.default": "has no elements"}


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing(mode: str) -> None:
    agrees(lambda x: functional.interpolate(x, (7, 9), mode=mode), random(2, 2, 5, 6, learned=True), atol=1e-4)
    agrees(lambda x: functional.interpolate(x, scale_factor=2.0, mode=mode), random(1, 2, 3, 4), atol=1e-4)


def test_three_dimensions_are_resized() -> None:
    agrees(lambda x: functional.interpolate(x, scale_factor=1.5, mode="trilinear"), random(1, 2, 4, 5, 6), atol=1e-4)
    agrees(lambda x: functional.interpolate(x, 5, mode="linear", align_corners=True), random(1, 2, 4, learned=True))
    agrees(lambda x: functional.adaptive_avg_pool3d(x, 2), torch.randn(1, 2, 4, 5, 6))
