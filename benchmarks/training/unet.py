"""A U-Net that finds discs in noise."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from benchmarks.training.workload import Batch, Compiler, Model


def _twice(before: int, channels: int) -> nn.Module:
    """Two convolutions of three rows, each normalized."""
    layers: list[nn.Module] = []
    for own in (before, channels):
        layers += [nn.Conv2d(own, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """``levels`` times half as many pixels of twice as many channels, and back.  ``width``: channels of the first."""

    def __init__(self, width: int = 32, levels: int = 3) -> None:
        super().__init__()
        counts = [width << level for level in range(levels + 1)]
        befores = [1, *counts]
        self.down = nn.ModuleList(_twice(before, own) for before, own in zip(befores, counts, strict=False))
        pairs = [(below, own) for own, below in pairwise(counts)][::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(below, own, 2, stride=2) for below, own in pairs)
        self.merge = nn.ModuleList(_twice(below, own) for below, own in pairs)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of each pixel of (N,1,H,W) images."""
        kept: list[torch.Tensor] = []
        for own in self.down:
            x = own(x if not kept else self.pool(x))
            kept.append(x)
        rest = kept[-2::-1]
        for up, merge, beside in zip(self.up, self.merge, rest, strict=True):
            x = merge(torch.cat([beside, up(x)], dim=1))
        return self.head(x)  # type: ignore[no-any-return]


class Discs:
    """Images of so many pixels in each direction, four at a time."""

    name: Final = "unet"
    steps: Final = 20

    def __init__(self, extent: int = 96, batch: int = 4) -> None:
        self._extent = extent
        self._batch = batch

    def model(self) -> nn.Module:
        """Three levels, from 32 channels on."""
        torch.manual_seed(1)
        return UNet()

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(model.parameters(), lr=1e-3)

    def batch(self, step: int) -> Batch:
        """Three discs in each image, and where they are."""
        generator = torch.Generator().manual_seed(step)
        places = torch.rand(self._batch, 3, 2, 1, 1, generator=generator) * self._extent
        radii = (0.05 + 0.15 * torch.rand(self._batch, 3, 1, 1, generator=generator)) * self._extent
        line = torch.arange(self._extent)
        distances = ((places[:, :, 0] - line) ** 2 + (places[:, :, 1] - line[:, None]) ** 2).sqrt()
        discs = (distances < radii).any(1, keepdim=True).float()
        return discs + 0.5 * torch.randn(discs.shape, generator=generator), discs

    def loss(self, model: Model, batch: Batch) -> torch.Tensor:
        """The mean entropy of the pixels."""
        images, discs = batch
        return functional.binary_cross_entropy_with_logits(model(images), discs)

    def score(self, compiled: Compiler) -> None:
        """There is nothing to reach beside the losses."""
        del compiled
