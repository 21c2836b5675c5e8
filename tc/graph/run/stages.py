"""Runs a source: makes graphs of it for the shapes of a call, in stages where contents decide what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from tc.graph.ir.graph import Graph
from tc.graph.ir.source import Demand, Request, Source
from tc.runtime.frameworks.numpy_arrays import scalar_type_of


class Runnable(Protocol):
    """A graph that is ready to run."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs of the graph in order."""


Prepare: TypeAlias = Callable[[Graph], Runnable]
# A stage that ends with a graph for the outputs, or with one for what is demanded.
Stage: TypeAlias = "tuple[Runnable, Graph | Demand]"


class Keeping(Protocol):
    """Where stages are kept for other processes."""

    def find(self, request: Request) -> Stage | None:
        """The stage for a request, ready to run; None where it is to be prepared."""

    def keep(self, request: Request, stage: Stage) -> None:
        """Keeps a stage that was prepared."""


class Stages:
    """Calls of a source; ``prepare`` compiles its graphs, each of them once, unless they are ``kept``."""

    def __init__(self, source: Source, prepare: Prepare, kept: Keeping | None = None) -> None:
        self._source = source
        self._prepare = prepare
        self._kept = kept
        self._known: dict[object, Stage] = {}

    def run(self, inputs: Mapping[str, np.ndarray], outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
        """The outputs by name."""
        request = Request({name: array.shape for name, array in inputs.items()}, outputs)
        arrays = dict(inputs)
        while True:
            ready, demand = self._stage(request)
            found = ready.run(arrays)
            if isinstance(demand, Graph):
                return dict(zip(outputs, found, strict=True))
            if demand.compute is None:
                contents = dict(zip(demand.graph.outputs, found, strict=True))
                request = replace(request, contents={**request.contents, **contents})
                continue
            made = demand.compute(found)
            arrays |= made
            specs = {name: (scalar_type_of(array.dtype, name), array.shape) for name, array in made.items()}
            request = replace(request, computed={**request.computed, **specs})

    @property
    def prepared(self) -> tuple[Runnable, ...]:
        """What has been prepared so far, in order."""
        return tuple(ready for ready, _ in self._known.values())

    def forget(self) -> None:
        """Calls are prepared again, and for this process alone."""
        self._known.clear()
        self._kept = None

    def _stage(self, request: Request) -> Stage:
        key = (
            tuple(request.shapes.items()),
            request.outputs,
            tuple((name, array.dtype.str, array.shape, array.tobytes()) for name, array in request.contents.items()),
            tuple(request.computed.items()),
        )
        if key not in self._known:
            found = None if self._kept is None else self._kept.find(request)
            self._known[key] = self._prepared(request) if found is None else found
        return self._known[key]

    def _prepared(self, request: Request) -> Stage:
        try:
            graph = self._source.elaborate(request)
            stage: Stage = self._prepare(graph), graph
        except Demand as demand:
            stage = self._prepare(demand.graph), demand
        if self._kept is not None:
            self._kept.keep(request, stage)
        return stage
