"""Runs a source: makes graphs of it for the shapes of a call, in stages where contents decide what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from tc.base.once import Once
from tc.dispatch.arguments import Arguments
from tc.graph.ir.graph import Graph
from tc.graph.ir.source import Demand, Request, Source
from tc.graph.run.binding import bound, in_order
from tc.runtime.frameworks.arrays import describe
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.views.view import ArrayView, Framework

if TYPE_CHECKING:
    import numpy as np


class Stageable(Protocol):
    """A graph that is ready to run."""

    def run(self, bound: Arguments, names: Sequence[str], /) -> tuple[object, ...]:
        """The outputs of the graph in order, which the caller calls ``names``."""


Ready = TypeVar("Ready", bound=Stageable)
# A stage that ends with a graph for the outputs, or with one for what is demanded.
Stage: TypeAlias = tuple[Ready, Graph | Demand]


class Keeping(Protocol[Ready]):
    """Where stages are kept for other processes."""

    def find(self, request: Request, /) -> Stage[Ready] | None:
        """The stage for a request, ready to run; None where it is to be prepared."""

    def keep(self, request: Request, stage: Stage[Ready], /) -> None:
        """Keeps a stage that was prepared."""


class Stages(Generic[Ready]):
    """Calls of a source; ``prepare`` compiles its graphs, each of them once, unless they are ``kept``.

    ``known``: inputs whose contents decide what comes next, where something that is demanded depends on them.
    """

    def __init__(
        self,
        source: Source,
        prepare: Callable[[Graph], Ready],
        kept: Keeping[Ready] | None = None,
        known: frozenset[str] = frozenset(),
    ) -> None:
        self._source: Final = source
        self._prepare: Final = prepare
        self._kept = kept
        self._deciding: Final = known
        self._known: Once[object, Stage[Ready]] = Once()
        # Of what runs between two graphs, by the identities of their sources.
        self._inner: Once[int, Stages[Ready]] = Once()

    def run(self, call: Arguments, outputs: tuple[str, ...]) -> tuple[tuple[object, ...], Ready | None]:
        """The outputs in order, and what has computed them; None where that took several stages."""
        request = Request({name: view.shape for name, view in call.inputs.items()}, outputs)
        ready, demand = self.stage(request)
        if isinstance(demand, Graph):
            return ready.run(call, outputs), ready
        while isinstance(demand, Demand):
            request, call = self._with_contents(ready, demand, request, call)
            ready, demand = self.stage(request)
        return ready.run(call, outputs), None

    @property
    def prepared(self) -> tuple[Ready, ...]:
        """What has been prepared so far, in order."""
        return tuple(ready for _, (ready, _) in self._known.items())

    def forget(self) -> None:
        """Calls are prepared again, and for this process alone."""
        self._known, self._inner, self._kept = Once(), Once(), None

    def stage(self, request: Request) -> Stage[Ready]:
        """What is run for a request, and what it is for."""
        key = (
            tuple(request.shapes.items()),
            request.outputs,
            tuple((name, array.dtype.str, array.shape, array.tobytes()) for name, array in request.contents.items()),
            tuple(request.computed.items()),
        )

        return self._known.get(key, lambda: self._found(request) or self._prepared(request))

    def _found(self, request: Request) -> Stage[Ready] | None:
        return None if self._kept is None else self._kept.find(request)

    def _prepared(self, request: Request) -> Stage[Ready]:
        try:
            graph = self._source.elaborate(request)
            stage: Stage[Ready] = self._prepare(graph), graph
        except Demand as demand:
            stage = self._prepare(demand.graph), demand
        if self._kept is not None:
            self._kept.keep(request, stage)
        return stage

    def _with_contents(
        self, ready: Stageable, demand: Demand, request: Request, call: Arguments
    ) -> tuple[Request, Arguments]:
        """The next request, and the call, with what was demanded."""
        names = demand.names
        found = [_on_host(name, value) for name, value in zip(names, _computed(ready, call, names), strict=True)]
        if demand.compute is None:
            asked = demand.reads & self._deciding
            inputs = {name: borrow(call.inputs[name]) for name in asked}
            contents: Mapping[str, np.ndarray] = {**inputs, **dict(zip(names, found, strict=True))}
            return replace(request, contents={**request.contents, **contents}), call
        views = {name: describe(array, f"`{name}`") for name, array in demand.compute(found, self._result_of).items()}
        specs = {name: (view.type, view.shape) for name, view in views.items()}
        return replace(request, computed={**request.computed, **specs}), replace(call, inputs={**call.inputs, **views})

    def _result_of(self, source: Source, arrays: Mapping[str, np.ndarray], known: frozenset[str]) -> list[np.ndarray]:
        stages = self._inner.get(id(source), lambda: Stages(source, self._prepare, None, known))
        found, _ = stages.run(in_order(bound(source.name, source.inputs, arrays, {})), source.outputs)
        return [_on_host(name, value) for name, value in zip(source.outputs, found, strict=True)]


def _computed(ready: Stageable, bound: Arguments, names: Sequence[str]) -> tuple[object, ...]:
    return ready.run(replace(bound, outputs={}, framework=Framework.NUMPY), names)


def _on_host(name: str, value: object) -> np.ndarray:
    view: ArrayView = describe(value, f"`{name}`")
    return borrow(view)
