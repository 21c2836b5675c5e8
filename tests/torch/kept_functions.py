"""Functions whose plans are kept, and processes that compile them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.programs import run

Function = Callable[..., Any]
# The last functions, of which there are several.
VARYING = ("constant", "operator")
# What no process imports that finds all in the cache.
HEAVY = ("islpy", "lark", "sqlalchemy", "tc.compiler", "tc.graph.preparation", "tc.torch.aten")


def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Has a forward and a backward."""
    return (x @ w).relu()


def partly(x: torch.Tensor) -> torch.Tensor:
    """Two parts, and what is PyTorch's between them."""
    found: torch.Tensor = torch.special.airy_ai(x * 2)
    return found + 1


def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Results that look at one value, and at the argument."""
    y = x - 1
    return y.t(), y[1:], x, y[1:].view(torch.int32)


def with_constant(number: float) -> Function:
    """Adds a tensor that the graph holds."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([number, 2.0])

    return function


def with_operator(factor: int) -> Function:
    """Calls an operator of one name that is made of another comprehension for each factor."""
    import tc

    text = f"def scaled(float(N) x) -> (y) {{ y(i) = {factor} * x(i) }}"
    operator = tc.define(text).torch_op("tests::kept_scaled")
    return lambda x: operator(x) - 1


def calls(variant: int) -> dict[str, Function]:
    """By name, what calls a function; ``variant``: of those that have several."""
    x = torch.linspace(-2, 2, 12).reshape(6, 2)

    def trained() -> list[torch.Tensor]:
        w = torch.ones(2, 3, requires_grad=True)
        found = compiled(layer)(x, w)
        return [found.detach(), *torch.autograd.grad(found.sum(), [w])]

    return {
        "layer": trained,
        "partly": lambda: [compiled(partly)(x)],
        "views": lambda: list(compiled(views)(x)),
        "of another size": lambda: list(compiled(views)(x[1:])),
        "constant": lambda: [compiled(with_constant(float(variant)))(x)],
        "operator": lambda: [compiled(with_operator(variant))(x[:, 0].contiguous())],
    }


def compiled(function: Function) -> Function:
    """As everybody compiles it; sizes do not stay open after the second call."""
    made: Function = torch.compile(function, backend="tc", dynamic=False)
    return made


class Process:
    """What a process found: the results by name, what it imported, and how often it tried rules, planned, compiled."""

    def __init__(self, printed: str) -> None:
        said = json.loads(printed.splitlines()[-1])
        self.heavy: list[str] = said["heavy"]
        self.made: dict[str, dict[str, int]] = said["made"]
        self.results: dict[str, list[Any]] = said["results"]


def process(cache: Path, variant: int) -> Process:
    """A new process that calls all functions."""
    program = f"from tests.torch.kept_functions import main; main({variant})"
    return Process(run(program, environment={"TC_CACHE": str(cache), "TC_CACHE_MODE": "store"}))


def main(variant: int) -> None:
    """Prints what calls give, and what was made for each of them."""
    results, made, heavy = {}, {}, list[str]()
    for name, call in calls(variant).items():
        if name == VARYING[0]:
            heavy = [one for one in HEAVY if one in sys.modules]
        counts = {"tried": 0, "planned": 0, "compiled": 0}
        with _counted(counts):
            results[name] = [one.tolist() for one in call()]
        made[name] = counts
    print(json.dumps({"results": results, "made": made, "heavy": heavy}))


@contextmanager
def _counted(counts: dict[str, int]) -> Iterator[None]:
    """Counts what is made meanwhile: each begins with one of these calls."""
    import tc.torch.backend
    import tc.torch.compiled
    from tc.api.kernels import Kernels

    made = (
        ("tried", tc.torch.backend, "rules"),
        ("planned", tc.torch.compiled, "rules"),
        ("compiled", Kernels, "compile"),
        ("compiled", Kernels, "adopt"),
    )
    with ExitStack() as stack:
        for name, owner, function in made:
            stack.enter_context(mock.patch.object(owner, function, _counting(counts, name, getattr(owner, function))))
        yield


def _counting(counts: dict[str, int], name: str, function: Function) -> Function:
    def call(*given: Any, **named: Any) -> Any:
        counts[name] += 1
        return function(*given, **named)

    return call
