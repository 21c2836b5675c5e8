"""A contender of a workload in a process of its own: it trains, then waits for turns in which it is timed."""

from __future__ import annotations

import functools
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

import tc
from benchmarks.training.agreement import agreement
from benchmarks.training.workload import Model, Workload, step, trained
from benchmarks.training.workloads import WORKLOADS

CONTENDERS: Final = ("eager", "inductor", "ours")
_SEED: Final = 5
_SECONDS: Final = 1.0
_FEWEST: Final = 3
# Batches that are timed, after those of the losses.
_TIMED: Final = 8


def main(arguments: list[str], turns: Iterable[str] = sys.stdin) -> None:
    """Prints losses and what was compiled, then the times of steps for every line that comes in, each as JSON."""
    name, contender, threads = arguments
    torch.set_num_threads(int(threads))
    tc.set_threads(int(threads))
    warnings.simplefilter("ignore")
    worker = Worker(WORKLOADS[name], contender)
    print(json.dumps(worker.learned()), flush=True)
    for _ in turns:
        print(json.dumps(worker.turn()), flush=True)


class Worker:
    """A model, and what the contender makes of it."""

    def __init__(self, workload: Workload, contender: str) -> None:
        self._workload: Final = workload
        self._contender: Final = contender
        self._report: Any = None
        self._model: Final = workload.model()
        self._called: Final = self._compiled(self._model)
        self._optimizer: Final = workload.optimizer(self._model)

    def learned(self) -> dict[str, Any]:
        """Losses, what a whole training reaches, what is left to PyTorch and what is wrong with gradients of ours."""
        workload = self._workload
        started = time.perf_counter()
        torch.manual_seed(_SEED)
        step(workload, self._optimizer, self._called, workload.batch(0))
        first = time.perf_counter() - started
        wrong: list[str] = []
        if self._contender == "ours":
            wrong = agreement(workload, self._compiled, workload.batch(0), torch.float64).wrong(1e-9)
            wrong += agreement(workload, self._compiled, workload.batch(0)).wrong()
        score = workload.score(self._compiled)
        return {
            "losses": self._losses(torch.float32),
            "exact": [] if self._contender == "inductor" else self._losses(torch.float64),
            "score": score,
            "first": first,
            "left": self._left(),
            "wrong": wrong,
        }

    def turn(self) -> dict[str, float]:
        """The least and the median seconds of steps."""
        workload, times = self._workload, list[float]()
        batches = [workload.batch(workload.steps + number) for number in range(_TIMED)]
        end = time.perf_counter() + _SECONDS
        while len(times) < _FEWEST or time.perf_counter() < end:
            batch = batches[len(times) % _TIMED]
            started = time.perf_counter()
            step(workload, self._optimizer, self._called, batch)
            times.append(time.perf_counter() - started)
        return {"least": min(times), "median": statistics.median(times)}

    def _losses(self, dtype: torch.dtype) -> list[float]:
        """Of the first steps; training is chaotic, so that those in float32 go apart by rounding alone."""
        model = self._workload.model().to(dtype)
        torch.manual_seed(_SEED)
        return trained(self._workload, model, self._compiled(model), dtype)

    def _compiled(self, model: torch.nn.Module) -> Model:
        match self._contender:
            case "eager":
                return model
            case "inductor":
                return torch.compile(model)
            case _:
                return self._ours(model)

    def _ours(self, model: torch.nn.Module) -> Callable[..., Any]:
        from tc.torch.backend import backend
        from tc.torch.report import Report

        self._report = self._report or Report()
        return torch.compile(model, backend=functools.partial(backend, report=self._report))

    def _left(self) -> dict[str, int]:
        """How many calls of each operator are PyTorch's, and parts that could not be compiled."""
        parts = [] if self._report is None else self._report.parts
        found = {name: count for part in parts for name, count in part.counts.items()}
        return found | {f"failed: {why}"[:300]: 1 for part in parts for why in part.failures}


if __name__ == "__main__":
    main(sys.argv[1:])
