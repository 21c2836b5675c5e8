"""ResNet-18 on small images, whose classes are colours and directions of stripes."""

from __future__ import annotations

from typing import Final

import torch
from torch import nn
from torch.nn import functional

from benchmarks.training.workload import Batch, Compiler, Model

_CLASSES: Final = 10


class _Block(nn.Module):
    """Two convolutions with what came in added to them, through another one where shapes differ."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or before != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N,C,H,W) images."""
        found = self.relu(self.bn1(self.conv1(x)))
        found = self.bn2(self.conv2(found))
        found += self.downsample(x)
        result: torch.Tensor = self.relu(found)
        return result


class ResNet(nn.Module):
    """Two blocks in each of four stages.  ``width``: channels of the first; 64 in ResNet-18."""

    def __init__(self, width: int = 64, stages: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        blocks: list[nn.Module] = []
        before = width
        for stage in range(stages):
            channels = width << stage
            blocks += [_Block(before, channels, 1 if stage == 0 else 2), _Block(channels, channels, 1)]
            before = channels
        self.layers = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, _CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of ten classes."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layers(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))  # type: ignore[no-any-return]


class Stripes:
    """Images of so many pixels in each direction, eight at a time."""

    name: Final = "resnet18"
    steps: Final = 20

    def __init__(self, extent: int = 64, batch: int = 8) -> None:
        self._extent = extent
        self._batch = batch

    def model(self) -> nn.Module:
        """ResNet-18."""
        torch.manual_seed(1)
        return ResNet()

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Stochastic gradient descent with momentum."""
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def batch(self, step: int) -> Batch:
        """Stripes in one of ten directions, in noise."""
        generator = torch.Generator().manual_seed(step)
        classes = torch.randint(_CLASSES, (self._batch,), generator=generator)
        angle = (classes * (torch.pi / _CLASSES)).reshape(-1, 1, 1, 1)
        line = torch.linspace(-6, 6, self._extent)
        waves = torch.sin(3 * (line * angle.cos() + line[:, None] * angle.sin()))
        return waves + torch.randn(self._batch, 3, self._extent, self._extent, generator=generator), classes

    def loss(self, model: Model, batch: Batch) -> torch.Tensor:
        """The mean entropy."""
        images, classes = batch
        return functional.cross_entropy(model(images), classes)

    def score(self, compiled: Compiler) -> None:
        """There is nothing to reach beside the losses."""
        del compiled
