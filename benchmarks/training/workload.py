"""``Workload``: a model, what it learns from, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import torch

# A model, or what ``torch.compile`` made of it.
Model: TypeAlias = Callable[..., Any]
Compiler: TypeAlias = Callable[[torch.nn.Module], Model]
Batch: TypeAlias = tuple[torch.Tensor, ...]


class MissingDataError(Exception):
    """What a workload learns from is not installed."""


class Workload(Protocol):
    """Every method gives the same for the same seed, in every process."""

    @property
    def name(self) -> str:
        """As in ``mnist``."""
        ...

    @property
    def steps(self) -> int:
        """How many steps the curve of losses has."""
        ...

    def model(self) -> torch.nn.Module:
        """A new model, in training."""
        ...

    def optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """What changes its parameters."""
        ...

    def batch(self, step: int) -> Batch:
        """What a step learns from; MissingDataError where that is not installed."""
        ...

    def loss(self, model: Model, batch: Batch) -> torch.Tensor:
        """The scalar that is made less."""
        ...

    def score(self, compiled: Compiler) -> float | None:
        """What a whole training of a model that is ``compiled`` reaches; None where there is nothing to reach."""
        ...


def trained(workload: Workload, model: torch.nn.Module, called: Model, dtype: torch.dtype) -> list[float]:
    """The losses of all steps, of a model of this type; ``called`` is the model, or what it was compiled to."""
    optimizer = workload.optimizer(model)
    batches = (batch_as(workload.batch(number), dtype) for number in range(workload.steps))
    return [step(workload, optimizer, called, batch) for batch in batches]


def batch_as(batch: Batch, dtype: torch.dtype) -> Batch:
    """The batch with floating numbers of this type."""
    return tuple(one.to(dtype) if one.is_floating_point() else one for one in batch)


def step(workload: Workload, optimizer: torch.optim.Optimizer, called: Model, batch: Batch) -> float:
    """The loss before a step."""
    optimizer.zero_grad()
    loss = workload.loss(called, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(loss.detach())
