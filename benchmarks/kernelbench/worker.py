"""A contender of a problem in a process of its own: it computes results, then waits for turns in which it is timed.

Every call gets fresh inputs.  What a call returns is overwritten after it, so that no call can return it again; the
last result of a turn is compared with what eager PyTorch computes from the same inputs.
"""

from __future__ import annotations

import copy
import functools
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import torch
from torch._dynamo.utils import counters

import tc
from benchmarks.kernelbench.exact import exact
from benchmarks.kernelbench.problem import Problem
from tc.torch.backend import backend
from tc.torch.report import Report

CONTENDERS: Final = ("eager", "inductor", "ours")
# Of the largest element: float32 in another order.
CLOSE: Final = 1e-3
_SECONDS: Final = 0.25
_MOST_CALLS: Final = 200
_FIRST_INPUTS: Final = 1000


class WrongError(Exception):
    """A result is not what eager PyTorch computes."""


def serve(connection: Connection, problem: Problem, contender: str, threads: int, folder: Path, seeds: int) -> None:
    """Sends what was compiled, then times of a turn for every message that comes; of an error what it says."""
    torch.set_num_threads(threads)
    tc.set_threads(threads)
    torch._dynamo.config.allow_rnn = True
    warnings.simplefilter("ignore")
    try:
        with torch.no_grad():
            worker = _Worker(problem, contender)
            connection.send(worker.results(folder, seeds))
            while connection.recv():
                connection.send(worker.turn())
    except Exception as error:  # noqa: BLE001  # whatever a model or a compiler raises
        connection.send(f"{type(error).__name__}: {error}")


class _Worker:
    """One model at a time, and its compiled form."""

    def __init__(self, problem: Problem, contender: str) -> None:
        self._found: Final = problem.module()
        self._contender: Final = contender
        self._report: Final = Report()
        self._backend: Final = functools.partial(backend, options={"fallback": "never"}, report=self._report)
        self._drawn = _FIRST_INPUTS
        self._timed: tuple[torch.nn.Module, Callable[..., Any]] | None = None

    def results(self, folder: Path, seeds: int) -> dict[str, Any]:
        """Keeps the results for several seeds in the folder; of eager PyTorch also those in float64."""
        breaks, first = 0, 0.0
        for seed in range(seeds):
            model, call = self._ready(seed)
            inputs = self._inputs(seed)
            before = copy.deepcopy(model) if self._contender == "eager" else None  # a call may change it
            drawn = torch.get_rng_state()
            started = time.perf_counter()
            found = call(*inputs)
            first = max(first, time.perf_counter() - started)
            torch.save(_detached(found), folder / f"{self._contender}-{seed}.pt")
            if before is not None:
                inputs = self._inputs(seed)
                torch.set_rng_state(drawn)
                torch.save(_detached(exact(before, inputs)), folder / f"exact-{seed}.pt")
            if seed == 0:
                breaks = sum(counters["graph_break"].values())
        return {"first": first, "left": self._left(), "breaks": breaks}

    def turn(self) -> dict[str, float]:
        """The least and the median seconds of calls."""
        if self._timed is None:
            self._timed = self._ready(0)
            self._timed[1](*self._inputs(0))
        model, call = self._timed
        times: list[float] = []
        end = time.perf_counter() + _SECONDS
        while len(times) < 2 or (time.perf_counter() < end and len(times) < _MOST_CALLS):
            self._drawn += 1
            inputs = self._inputs(self._drawn)
            started = time.perf_counter()
            found = call(*inputs)
            times.append(time.perf_counter() - started)
            last = _detached(found) if len(times) < 2 else None
            if last is not None:
                inputs = self._inputs(self._drawn)
                require_close(last, _detached(model(*inputs)), partial(_exactly, model, inputs))
            _poison(found)
        return {"least": min(times), "median": statistics.median(times)}

    def _ready(self, seed: int) -> tuple[torch.nn.Module, Callable[..., Any]]:
        """A model with weights of a seed, and what calls it; what was compiled for another is called where it fits."""
        torch.manual_seed(seed)
        model = self._found["Model"](*self._found["get_init_inputs"]()).eval()
        match self._contender:
            case "eager":
                return model, model
            case "inductor":
                return model, torch.compile(model, dynamic=False)
            case _:
                return model, torch.compile(model, backend=self._backend, dynamic=False)

    def _left(self) -> Mapping[str, int]:
        found = {name: count for part in self._report.parts for name, count in part.counts.items()}
        failures = {f"failed: {why}"[:300]: 1 for part in self._report.parts for why in part.failures}
        return {**found, **failures}

    def _inputs(self, seed: int) -> list[Any]:
        torch.manual_seed(_FIRST_INPUTS + seed)
        found: list[Any] = self._found["get_inputs"]()
        return found


def _detached(value: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(value)
    return [one.detach().clone() for one in leaves if isinstance(one, torch.Tensor)]


def _poison(value: Any) -> None:
    for one in torch.utils._pytree.tree_leaves(value):
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            one.fill_(float("nan"))


def _exactly(model: torch.nn.Module, inputs: list[Any]) -> list[torch.Tensor]:
    return _detached(exact(model, inputs))


def require_close(
    found: list[torch.Tensor], eager: list[torch.Tensor], meant: Callable[[], list[torch.Tensor]]
) -> None:
    """WrongError where results are far from those of eager PyTorch, unless these are as far from the exact ones."""
    if all(error_of(own, other) <= CLOSE for own, other in zip(found, eager, strict=True)):
        return
    for own, other, wide in zip(found, eager, meant(), strict=True):
        if error_of(own, wide) > max(CLOSE, 4 * error_of(other, wide)):
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
