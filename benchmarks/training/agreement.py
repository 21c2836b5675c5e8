"""How far gradients and running statistics are from those in float64: ours, and eager PyTorch's."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.training.workload import Batch, Compiler, Model, Workload, batch_as


@dataclass(frozen=True, slots=True)
class Agreement:
    """``found``: the difference of ours from float64, in parts of the greatest element, by name; ``eager``: of eager's.

    Names are those of parameters, whose gradients are compared, of buffers, ``loss`` and ``eval``, the result in
    evaluation.
    """

    found: Mapping[str, float]
    eager: Mapping[str, float]

    def wrong(self, most: float = 1e-4) -> list[str]:
        """The names of what is further off than ``most``, and than four times what eager PyTorch is.

        Where numbers nearly tie, a maximum or a sign is another one for another rounding: see ``dtype``.
        """
        return [name for name, error in self.found.items() if not error <= max(most, 4 * self.eager[name])]


def agreement(workload: Workload, compiled: Compiler, batch: Batch, dtype: torch.dtype = torch.float32) -> Agreement:
    """Of a step and an evaluation with this batch.  Random numbers are the same where the model draws them.

    ``dtype``: of ours and of eager's.
    """
    model = workload.model()
    eager, own, exact = (copy.deepcopy(model).to(type) for type in (dtype, dtype, torch.float64))
    given = batch_as(batch, dtype)
    meant = _values(workload, exact, exact, batch_as(batch, torch.float64))
    plain = _values(workload, eager, eager, given)
    found = _values(workload, own, compiled(own), given)
    return Agreement(*({name: _error(own[name], meant[name]) for name in meant} for own in (found, plain)))


def _values(workload: Workload, model: torch.nn.Module, called: Model, batch: Batch) -> dict[str, torch.Tensor]:
    """What is compared, after a step."""
    torch.manual_seed(7)
    loss = workload.loss(called, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: own.grad for name, own in model.named_parameters() if own.grad is not None}
    buffers = {name: own.detach().clone() for name, own in model.named_buffers()}
    model.eval()
    with torch.no_grad():
        evaluated = workload.loss(called, batch)
    model.train()
    return {"loss": loss.detach(), **gradients, **buffers, "eval": evaluated}


def _error(found: torch.Tensor, meant: torch.Tensor) -> float:
    difference = (found.double() - meant.double()).abs().max()
    return float(difference / meant.double().abs().max().clamp_min(1e-30))
