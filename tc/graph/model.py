"""``Model``: a source of graphs, called on arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tc.api.available import target_of_call
from tc.base.errors import GraphError
from tc.base.once import Once
from tc.dispatch.arguments import outputs_by_name
from tc.dispatch.array_placement import device_of
from tc.dispatch.warm import WarmCalls
from tc.graph.ir.sizes import Dimension, Shape
from tc.graph.ir.source import Declared, Demand, Request, Source
from tc.graph.run.binding import bound, in_order, require_known, require_shape
from tc.graph.run.results import is_in_order
from tc.graph.run.runnable import runnable
from tc.graph.run.stages import Stages
from tc.graph.settings import Settings
from tc.targets.target import OpenClTarget

if TYPE_CHECKING:  # models whose plans are kept need no rules, and no partition
    from pathlib import Path

    from tc.dispatch.warm import Plan
    from tc.dispatch.warm_cuda import CudaPlan
    from tc.graph.compiled import CompiledModel
    from tc.graph.ir.graph import Graph
    from tc.graph.kept.contents import Contents
    from tc.graph.kept.keeper import Keeper
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.preparation import Prepared
    from tc.graph.rewrite.engine import Applied
    from tc.graph.rewrite.rule import Rule
    from tc.graph.run.evaluate import Evaluation
    from tc.graph.run.runnable import Runnable
    from tc.graph.tuning.model_search import Keep
    from tc.graph.tuning.report import ModelTuning
    from tc.targets.target import Target
    from tc.tuner.trial.budget import Budget

T = TypeVar("T")


class Model:
    """A model: called on arrays in the order of its inputs, it returns one array, or a tuple of them.

    A graph is made of it for the shapes of each call, rewritten, divided into kernels, and kept.  ``contents``: what
    identifies the model in other processes, which then find its plans in the cache; None keeps them in this one alone.
    """

    def __init__(self, source: Source, settings: Settings | None = None, contents: Contents | None = None) -> None:
        self._source: Final = source
        self._settings: Final = settings or Settings()
        # How graphs are divided that were tuned in this process.
        self._cuts: Final[dict[tuple[object, ...], tuple[str, ...]]] = {}
        self._contents: Final = contents
        self._stages: Final[Once[Target, Stages[Runnable]]] = Once()
        self._oracle: Final = Stages(source, _evaluation)
        # By the names of the inputs, or how many of the first ones there are, and by those of the outputs.
        self._warm: Final[Once[tuple[object, tuple[str, ...]], WarmCalls]] = Once()

    @staticmethod
    def of(graph: Graph, settings: Settings | None = None) -> Model:
        """The model that a graph is; its open sizes are those of each call."""
        from tc.graph.ir.replay import GraphSource

        return Model(GraphSource(graph), settings)

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(declared.name for declared in self.inputs), ", ".join(self.outputs)
        return f"<tc.graph.Model {self._source.name}({inputs}) -> {outputs}>"

    def __str__(self) -> str:
        return self.text

    @property
    def inputs(self) -> tuple[Declared, ...]:
        """The inputs as the model declares them."""
        return self._source.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results."""
        return self._source.outputs

    @property
    def text(self) -> str:
        """The graph for the declared shapes as text, which ``tc.graph.parse`` reads."""
        from tc.graph.ir.graph_text import graph_text

        return graph_text(self.graph())

    def __call__(self, /, *arrays: object, out: object = None, **named: object) -> object:
        """The results for arrays in the order of the inputs, or by name: one array, or a tuple, of their framework.

        ``out``: arrays to write into: one, a tuple in the order of the results (None: allocate), or a mapping by name.
        """
        outputs = self._source.outputs
        if named:
            given = self._given(arrays, named)
            return self._call(tuple(given), tuple(given.values()), outputs, out)
        return self._call(len(arrays), arrays, outputs, out)

    def run(self, outputs: Sequence[str], inputs: Mapping[str, object], *, out: object = None) -> dict[str, Any]:
        """The values of these names, of any node, by name; ``out`` as in calls."""
        wanted = tuple(outputs)
        found = self._call(tuple(inputs), tuple(inputs.values()), wanted, out)
        return dict(zip(wanted, found if isinstance(found, tuple) else (found,), strict=True))

    def reference(self, outputs: Sequence[str], inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
        """What the oracle gives for these names: each node in float64, rounded to the type of its result."""
        names = tuple(outputs)
        found, _ = self._oracle.run(in_order(bound(self._source.name, self.inputs, inputs, {})), names)
        return dict(zip(names, map(np.asarray, found), strict=True))

    def graph(self, *shapes: Sequence[Dimension], **named: Sequence[Dimension]) -> Graph:
        """The graph for shapes of inputs, in order or by name; others are as the model declares them.

        GraphError where it depends on the contents of inputs: call the model then.
        """
        try:
            return self._source.elaborate(self._request(shapes, named))
        except Demand as demand:
            raise GraphError(f"the graph depends on {demand}: call the model") from None

    def _request(self, shapes: Sequence[Sequence[Dimension]], named: Mapping[str, Sequence[Dimension]]) -> Request:
        given = self._given(shapes, named)
        require_known(self._source.name, self.inputs, given)
        found: dict[str, Shape] = {}
        sizes: dict[str, Dimension] = {}
        for declared in self.inputs:
            if declared.name in given:
                found[declared.name] = tuple(given[declared.name])
                require_shape(found[declared.name], declared, sizes)
            elif declared.shape is not None:
                found[declared.name] = declared.shape
            elif not declared.optional:
                raise GraphError(f"the model does not declare the shape of `{declared.name}`; name it")
        return Request(found, self.outputs)

    def rewrite(self, rules: Sequence[Rule] | None = None, *, trace: bool = False) -> Model:
        """The model with other rules of rewriting; None: with all of ``tc.graph.RULES``.

        ``trace``: says on the standard error what they change.
        """
        settings = replace(self._settings, rules=None if rules is None else tuple(rules))
        model = Model(self._source, settings, self._contents)
        if trace:
            for applied in model.trace():
                print(applied, file=sys.stderr)
        return model

    def cut(self, *cuts: str) -> Model:
        """The model whose calls share no kernel through these values, by name as ``explain`` has them, and do so
        through all others, as far as they may.
        """
        return Model(self._source, replace(self._settings, cuts=cuts), self._contents)

    def trace(self, *shapes: Sequence[Dimension], **named: Sequence[Dimension]) -> tuple[Applied, ...]:
        """What rewriting changes in the graph for these shapes, in order."""
        from tc.graph.preparation import simplified

        return simplified(self.graph(*shapes, **named), self._settings)[1]

    def plan(self, *shapes: Sequence[Dimension], **named: Sequence[Dimension]) -> MemoryPlan:
        """The order of the kernels for these shapes, and where in memory each value is."""
        return self._prepared(self.graph(*shapes, **named)).memory

    def explain(self, *shapes: Sequence[Dimension], steps: bool = False, **named: Sequence[Dimension]) -> str:
        """What becomes of the graph for these shapes, as text: rewriting, kernels, who computes what, memory.

        ``steps``: also the definition of each kernel, and the steps of its schedule as rewrite rules, with what is
        proven of them.  Kernels are scheduled and proven for that, which takes most of the time of compiling them.
        """
        from tc.graph.explain import explained
        from tc.graph.run.kernels import schedule_steps

        found = self._prepared(self.graph(*shapes, **named))
        return explained(found, schedule_steps(found.memory, self._settings.target) if steps else None)

    def tune(
        self,
        *shapes: Sequence[Dimension],
        target: str | None = None,
        budget: str | Budget | None = None,
        cache: str | Path | None = None,
        seed: int | None = None,
        progress: bool = True,
        jobs: int | None = None,
        effort: str = "default",
        numerics: str = "any",
        **named: Sequence[Dimension],
    ) -> ModelTuning:
        """Searches for the quickest options of all kernels of the graph for these shapes, and for where it is divided.

        All kernels that it may have are measured with the default options first; then time goes to those by which the
        whole gains most.  ``budget``: for all kernels together where it is time; trials and generations are those of
        each kernel.  The other settings are those of ``Comprehension.tune``; ``target``: None takes that of the model.

        Calls run the winners from now on.  GraphError where the graph depends on the contents of inputs.
        """
        from tc.api.tuning import TuningRequest
        from tc.graph.tuning.tune import tune

        graph, own = self.graph(*shapes, **named), target_of_call(self._settings.target)
        chosen = own if target is None else target_of_call(target)
        request = TuningRequest(budget, cache, seed, progress, jobs, numerics=numerics, effort=effort)
        keep = self.keeping(*shapes, target=str(chosen), **named)
        found, cuts = tune(self._source.name, graph, self._settings, chosen, request, keep)
        if chosen == own:
            if cuts is not None:
                self._cuts[_place(graph)] = cuts
            self._stages_for(own).forget()
            for calls in tuple(calls for _, calls in self._warm.items()):
                calls.forget()
        return found

    def keeping(
        self, *shapes: Sequence[Dimension], target: str | None = None, **named: Sequence[Dimension]
    ) -> Keep | None:
        """What keeps plans of the graph for these shapes in a cache, for processes that load the model; None for models
        that have no contents by which they would be known again.
        """
        if self._contents is None:
            return None
        from tc.graph.kept.keeper import Keeper

        contents, source, settings = self._contents, self._source, replace(self._settings, target=target)
        request = self._request(shapes, named)
        return lambda kernels, plan: Keeper.of(kernels, contents, source, settings).keep_plan(request, plan)

    def export(self, folder: str | Path, /, *shapes: Sequence[Dimension], **named: Sequence[Dimension]) -> None:
        """Writes the model for these shapes as C, or as C and CUDA, which runs without Python.

        ``folder``: new, empty, or an earlier export, which is replaced; names in C begin as it is called.  It has the
        sources of the kernels, ``model.h`` with one function that runs them, ``weights.bin``, a ``Makefile``, and a
        ``README.md`` that says how to call it.  The target is that of the model: ``load(path, target="cuda:sm_90")``.
        GraphError for what the host computes, which is named, for shapes that are open, for graphs that depend on
        contents, and for a folder that holds something else or cannot be written.
        """
        from pathlib import Path

        from tc.graph.export.export import write_model

        plan = self._prepared(self.graph(*shapes, **named)).memory
        write_model(Path(folder), self._source.name, self.outputs, plan, self._settings.target)

    def compile(self, *shapes: Sequence[Dimension], **named: Sequence[Dimension]) -> CompiledModel:
        """The kernels for these shapes, compiled for the target of the model; runs nothing.

        Calls with such shapes compile nothing any more.  GraphError where the graph depends on the contents of inputs.
        """
        from tc.graph.compiled import CompiledModel

        target = target_of_call(self._settings.target)
        ready, end = self._stages_for(target).stage(self._request(shapes, named))
        if isinstance(end, Demand):
            raise GraphError(f"the graph depends on {end}: call the model")
        return CompiledModel(target, ready.plan, {results[0]: kernel for results, kernel in ready.kernels.items()})

    @property
    def kernels(self) -> int:
        """How many kernels the graphs have that were compiled so far."""
        return sum(len(ready.kernels) for _, stages in self._stages.items() for ready in stages.prepared)

    def _stages_for(self, target: Target) -> Stages[Runnable]:
        def make() -> Stages[Runnable]:
            return Stages(self._source, lambda graph: self._runnable(graph, target), self._keeper(target))

        return self._stages.get(target, make)

    def _runnable(self, graph: Graph, target: Target) -> Runnable:
        from tc.graph.preparation import prepared

        settings = self._settings_of(graph)
        if isinstance(target, OpenClTarget):  # two of its buffers must not be the same memory
            settings = replace(settings, in_place=False)
        return runnable(prepared(graph, settings).memory, str(target), arena=settings.arena)

    def _keeper(self, target: Target) -> Keeper | None:
        if self._contents is None:
            return None
        from tc.graph.kept.keeper import keeper_of

        return keeper_of(self._contents, self._source, replace(self._settings, target=str(target)))

    def _call(
        self, kind: int | tuple[str, ...], arrays: tuple[object, ...], outputs: tuple[str, ...], out: object
    ) -> object:
        """One result, or a tuple of them.  ``kind``: the names of the inputs, or how many of the first there are."""
        calls = self._warm.get((kind, outputs), WarmCalls)
        results = None if out is None else self._listed(out, outputs)
        found = calls.call(arrays, results)
        if found is not None:
            return found
        inputs = self._given(arrays, {}) if isinstance(kind, int) else dict(zip(kind, arrays, strict=True))
        found, plan = self._run(inputs, outputs, results)
        if plan is not None:
            calls.remember(arrays, results, plan)
        return found

    def _run(
        self, inputs: Mapping[str, object], outputs: tuple[str, ...], results: tuple[object, ...] | None
    ) -> tuple[object, Plan | CudaPlan | None]:
        """The results of a call, and how calls like it are repeated."""
        brought = zip(outputs, results or (None,) * len(outputs), strict=True)
        call = bound(self._source.name, self.inputs, inputs, {n: array for n, array in brought if array is not None})
        target = target_of_call(self._settings.target, device_of(call))
        found, ready = self._stages_for(target).run(in_order(call), outputs)
        plan = None
        if ready is not None and all(map(is_in_order, call.views)):
            plan = ready.warm(replace(call, inputs={name: call.inputs[name] for name in inputs}), outputs)
        return found[0] if len(found) == 1 else found, plan

    def _listed(self, out: object, outputs: tuple[str, ...]) -> tuple[object, ...]:
        """The arrays for results in order."""
        given = outputs_by_name(self._source.name, outputs, out)
        return tuple(given.get(name) for name in outputs)

    def _prepared(self, graph: Graph) -> Prepared:
        from tc.graph.preparation import prepared

        return prepared(graph, self._settings_of(graph))

    def _settings_of(self, graph: Graph) -> Settings:
        cuts = self._cuts.get(_place(graph))
        return self._settings if cuts is None else replace(self._settings, cuts=cuts)

    def _given(self, arrays: Sequence[T], named: Mapping[str, T]) -> dict[str, T]:
        """What is given for inputs in order, and by name."""
        if len(arrays) > len(self.inputs):
            raise GraphError(f"`{self._source.name}` has {len(self.inputs)} inputs, got {len(arrays)}")
        names = [declared.name for declared in self.inputs]
        twice = [name for name in names[: len(arrays)] if name in named]
        if twice:
            raise GraphError(f"the input `{twice[0]}` is given twice, by its place and by its name")
        return {**dict(zip(names, arrays, strict=False)), **named}


def _place(graph: Graph) -> tuple[object, ...]:
    """What tells the graphs of a model apart: shapes, and what they compute."""
    return tuple((name, graph.values[name].shape) for name in graph.inputs), graph.outputs


def _evaluation(graph: Graph) -> Evaluation:
    from tc.graph.run.evaluate import Evaluation

    return Evaluation(graph)
