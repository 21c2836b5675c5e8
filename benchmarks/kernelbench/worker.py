"""A contender of a problem in a process of its own: it computes results, then waits for turns in which it is timed.

Every call gets fresh inputs.  What a call returns is overwritten after it, so that no call can return it again; the
last result of a turn is compared with what eager PyTorch computes from the same inputs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.kernelbench.problem import Problem

CONTENDERS: Final = ("eager", "inductor", "ours")
# Of the largest element: float32 in another order.
CLOSE: Final = 1e-3
_SECONDS: Final = 0.25
_MOST_CALLS: Final = 200
_FIRST_INPUTS: Final = 1000


class WrongError(Exception):
    """A result is not what eager PyTorch computes."""


def main(arguments: list[str], turns: Iterable[str] = sys.stdin) -> None:
    """Prints what was compiled, then times of a turn for every line that comes in, each as JSON."""
    path, sizes, contender, threads, folder, seeds = arguments
    torch.set_num_threads(int(threads))
    problem = Problem(Path(path), json.loads(sizes))
    warnings.simplefilter("ignore")
    with torch.no_grad():
        worker = _Worker(problem, contender, int(threads))
        print(json.dumps(worker.results(Path(folder), int(seeds))), flush=True)
        for _ in turns:
            print(json.dumps(worker.turn()), flush=True)


class _Worker:
    """One model at a time, and its compiled form."""

    def __init__(self, problem: Problem, contender: str, threads: int) -> None:
        self._found: Final = problem.module()
        self._contender: Final = contender
        self._report: Any = None
        self._drawn = _FIRST_INPUTS
        if contender == "ours":
            import tc

            tc.set_threads(threads)

    def results(self, folder: Path, seeds: int) -> dict[str, Any]:
        """Keeps the results for several seeds in the folder; of eager PyTorch also those in float64."""
        left: dict[str, int] = {}
        for seed in range(seeds):
            model, call = self._ready(seed)
            inputs = self._inputs(seed)
            started = time.perf_counter()
            torch.save(_detached(call(*inputs)), folder / f"{self._contender}-{seed}.pt")
            first = time.perf_counter() - started
            if self._contender == "eager":
                torch.save(_exact(model, inputs), folder / f"exact-{seed}.pt")
            left |= self._left()
        self.model, self.call = self._ready(0)
        self.call(*self._inputs(0))
        return {"first": first, "left": left}

    def turn(self) -> dict[str, float]:
        """The least and the median seconds of calls."""
        times: list[float] = []
        end = time.perf_counter() + _SECONDS
        while len(times) < 2 or (time.perf_counter() < end and len(times) < _MOST_CALLS):
            self._drawn += 1
            inputs = self._inputs(self._drawn)
            started = time.perf_counter()
            found = self.call(*inputs)
            times.append(time.perf_counter() - started)
            last = _detached(found) if len(times) < 2 else None
            if last is not None:
                _require_close(last, _detached(self.model(*self._inputs(self._drawn))))
            _poison(found)
        return {"least": min(times), "median": statistics.median(times)}

    def _ready(self, seed: int) -> tuple[torch.nn.Module, Callable[..., Any]]:
        torch.manual_seed(seed)
        model = self._found["Model"](*self._found["get_init_inputs"]()).eval()
        torch._dynamo.reset()
        match self._contender:
            case "eager":
                return model, model
            case "inductor":
                return model, torch.compile(model, dynamic=False)
            case _:
                return model, self._ours(model)

    def _ours(self, model: torch.nn.Module) -> Callable[..., Any]:
        import functools

        from tc.torch.backend import backend
        from tc.torch.report import Report

        self._report = Report()
        own = functools.partial(backend, options={"fallback": "unsupported"}, report=self._report)
        return torch.compile(model, backend=own, dynamic=False)

    def _left(self) -> Mapping[str, int]:
        if self._report is None:
            return {}
        found = {name: count for part in self._report.parts for name, count in part.counts.items()}
        failures = {f"failed: {why}"[:300]: 1 for part in self._report.parts for why in part.failures}
        return {**found, **failures}

    def _inputs(self, seed: int) -> list[Any]:
        torch.manual_seed(_FIRST_INPUTS + seed)
        found: list[Any] = self._found["get_inputs"]()
        return found


def _exact(model: torch.nn.Module, inputs: list[Any]) -> Any:
    import copy

    wide = copy.deepcopy(model).double()
    return _detached(wide(*[_double(one) for one in inputs]))


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _detached(value: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(value)
    return [one.detach().clone() for one in leaves if isinstance(one, torch.Tensor)]


def _poison(value: Any) -> None:
    for one in torch.utils._pytree.tree_leaves(value):
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            one.fill_(float("nan"))


def _require_close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for own, other in zip(found, wanted, strict=True):
        if error_of(own, other) > CLOSE:
            raise WrongError("a timed call has another result than eager PyTorch")


def error_of(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The greatest difference, in parts of the greatest element; infinite where shapes, types or NaNs differ."""
    if found.shape != wanted.shape or found.isnan().ne(wanted.isnan()).any():
        return float("inf")
    if not wanted.is_floating_point():
        return 0.0 if bool(found.eq(wanted).all()) else float("inf")
    first, second = found.double().nan_to_num(), wanted.double().nan_to_num()
    largest = float(second.abs().max()) if second.numel() else 0.0
    return float((first - second).abs().max()) / max(largest, 1e-30) if second.numel() else 0.0


if __name__ == "__main__":
    main(sys.argv[1:])
