"""Losses come out whole, with their gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.torch.agreement import agrees, random
from tests.turns import every

F = torch.nn.functional
LOSSES = [
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.soft_margin_loss,
    F.binary_cross_entropy_with_logits,
    F.hinge_embedding_loss,
    F.poisson_nll_loss,
]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("loss", every(2, LOSSES), ids=lambda loss: loss.__name__)
def test_losses_of_numbers(loss: Callable[..., torch.Tensor], reduction: str) -> None:
    target = torch.randint(0, 2, (4, 5)) * 2.0 - 1.0
    agrees(lambda x, y: loss(x, y, reduction=reduction), random(4, 5, learned=True), target)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_classes(reduction: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        plain = F.cross_entropy(x, y, reduction=reduction)
        return [plain, F.cross_entropy(x, y, w, ignore_index=2, reduction=reduction, label_smoothing=0.1)]

    agrees(function, random(6, 5, learned=True), torch.tensor([0, 4, 2, 2, 1, 3]), torch.rand(5))
    agrees(function, random(2, 5, 3, learned=True), torch.tensor([[0, 4, 2], [2, 1, 3]]), torch.rand(5))


def test_losses_of_distributions_and_margins() -> None:
    logs, shares = random(4, 5, learned=True), torch.rand(4, 5)
    agrees(lambda x, y: F.kl_div(x.log_softmax(1), y, reduction="batchmean"), logs, shares)
    agrees(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y), logs, shares)
    agrees(F.triplet_margin_loss, *(random(4, 5, learned=True) for _ in range(3)))
    agrees(lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1, -1, 1, -1])), logs, random(4, 5, learned=True))


def test_kernels() -> None:
    agrees(F.cross_entropy, random(6, 33, learned=True), torch.randint(0, 33, (6,)), kernels=True)
