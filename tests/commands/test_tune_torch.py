"""``tc-tune --torch module:function``: a model of PyTorch with its inputs, forward and backward."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tc.cache.format.tables import LIBRARY_TRIALS, PLANS
from tc.commands.torch_models import torch_parts
from tc.commands.tune import main
from tests.commands.caches import contents

MODELS = """
import torch

def layer():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), (torch.linspace(-1, 1, 6).reshape(2, 3),)

def in_evaluation():
    model, inputs = layer()
    return model.eval(), inputs

def with_wrong_inputs():
    return layer()[0], (torch.ones(5),)

def on_another_device():
    return torch.exp, [torch.ones(3, device="meta")]

def without_inputs():
    return layer()[0]

def failing():
    raise RuntimeError("there are no weights\\nof it")

number = 3
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the folder in which commands run."""
    (tmp_path / "tuned_models.py").write_text(MODELS)
    (tmp_path / "broken_models.py").write_text("import there_is_no_such_module")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    torch._dynamo.reset()
    yield "tuned_models"
    torch._dynamo.reset()
    sys.modules.pop("tuned_models", None)


def test_parts_of_the_forward_and_the_backward(models: str) -> None:
    assert [part.name for part in torch_parts(f"{models}:layer")] == ["forward 0", "backward 0"]
    assert [part.name for part in torch_parts(f"{models}:in_evaluation")] == ["inference 0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name either a file or --torch module:function"),
        (("a.tc", "--torch", "a:b"), "name either a file or --torch module:function"),
        (("--torch", "a:b", "--size", "N=2"), "a model of PyTorch brings its inputs; leave out definitions, sizes"),
        (
            ("--torch", "a:b", "--target", "emulator"),
            "models of PyTorch are tuned for this processor",
        ),
        (("--torch", "layer"), "'layer' names no function; write it as --torch module:function"),
        (("--torch", "no_such_module:f"), "cannot import no_such_module: ModuleNotFoundError: No module named"),
        (("--torch", "broken_models:f"), "cannot import broken_models: ModuleNotFoundError: No module named 'there_is"),
        (("--torch", "tuned_models:layers"), "tuned_models has no 'layers'; did you mean 'layer'?"),
        (("--torch", "tuned_models:number"), "tuned_models:number is no function, but of the type int"),
        (("--torch", "tuned_models:failing"), "tuned_models:failing failed: RuntimeError: there are no weights\n"),
        (
            ("--torch", "tuned_models:without_inputs"),
            "tuned_models:without_inputs returns what is of the type S",
        ),
        (
            ("--torch", "tuned_models:with_wrong_inputs"),
            "the model of tuned_models:with_wrong_inputs cannot be called",
        ),
        (("--torch", "tuned_models:on_another_device"), "the model of tuned_models:on_another_device has no part that"),
    ],
)
def test_what_cannot_be_tuned(
    arguments: tuple[str, ...], message: str, models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del models
    assert main([*arguments, "--cache", "tuned.db"]) == 2
    assert f"tc-tune: {message}" in capsys.readouterr().err


@pytest.mark.slow
def test_plans_and_trials_go_to_the_cache(
    models: str, capsys: pytest.CaptureFixture[str], brief_searches: None
) -> None:
    del brief_searches
    assert main(["--torch", f"{models}:layer", "--budget", "1 trial", "--cache", "tuned.db", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert f"{models}:layer forward 0: " in said
    with contents(Path("tuned.db")) as found:
        counts = len(list(found.records(PLANS))), len(list(found.records(LIBRARY_TRIALS)))
    # Of each graph which operators are ours, and the plan of its part; of each part as a whole, and of its products.
    assert counts == (4, 4)
