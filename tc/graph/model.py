"""``Model``: a source of graphs, called on arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tc.base.errors import GraphError, nearest
from tc.graph.ir.sizes import Dimension, Shape, Size, shape_text
from tc.graph.ir.source import Declared, Demand, Request, Source
from tc.graph.run.allocate import Allocating
from tc.graph.run.execute import Execution
from tc.graph.run.runnable import runnable
from tc.graph.run.stages import Keeping, Runnable, Stages
from tc.graph.settings import Settings
from tc.runtime.frameworks.arrays import describe
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.frameworks.numpy_arrays import scalar_type_of

if TYPE_CHECKING:  # models whose plans are kept need no rules, and no partition
    from pathlib import Path

    from tc.graph.ir.graph import Graph
    from tc.graph.kept.contents import Contents
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.preparation import Prepared
    from tc.graph.rewrite.engine import Applied
    from tc.graph.rewrite.rule import Rule
    from tc.graph.tuning.model_search import Keep
    from tc.graph.tuning.report import ModelTuning
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
        self._stages: Final = Stages(source, self._compiled, self._keeper())
        self._oracle: Final = Stages(source, _evaluation)

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

    def __call__(self, *arrays: object, **named: object) -> object:
        """The results for arrays in the order of the inputs, or by name: one array, or a tuple."""
        found = self.run(self.outputs, self._given(arrays, named))
        values = tuple(found[name] for name in self.outputs)
        return values[0] if len(values) == 1 else values

    def run(self, outputs: Sequence[str], inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
        """The values of these names, of any node, by name."""
        return self._stages.run(self._checked(inputs), tuple(outputs))

    def reference(self, outputs: Sequence[str], inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
        """What the oracle gives for these names: each node in float64, rounded to the type of its result."""
        return self._oracle.run(self._checked(inputs), tuple(outputs))

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
        self._require_known(given)
        found: dict[str, Shape] = {}
        sizes: dict[str, Dimension] = {}
        for declared in self.inputs:
            if declared.name in given:
                found[declared.name] = tuple(given[declared.name])
                _require_shape(found[declared.name], declared, sizes)
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
        from tc.api.available import target_of_call
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
            self._stages.forget()
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
        return lambda kernels, plan: Keeper(kernels, contents, source, settings).keep_plan(request, plan)

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
        from tc.graph.preparation import exportable

        graph = self.graph(*shapes, **named)
        plan = exportable(graph, self._settings_of(graph))
        write_model(Path(folder), self._source.name, self.outputs, plan, self._settings.target)

    @property
    def kernels(self) -> int:
        """How many kernels the graphs have that were compiled so far."""
        return sum(len(ready.kernels) for ready in self._stages.prepared if isinstance(ready, Execution | Allocating))

    def _compiled(self, graph: Graph) -> Runnable:
        plan = self._prepared(graph).memory
        return runnable(plan, self._settings.target, arena=self._settings.arena)

    def _keeper(self) -> Keeping | None:
        if self._contents is None:
            return None
        from tc.graph.kept.keeper import keeper_of

        return keeper_of(self._contents, self._source, self._settings)

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

    def _require_known(self, given: Mapping[str, object]) -> None:
        """GraphError for names that no input has."""
        names = [declared.name for declared in self.inputs]
        for name in given:
            if name not in names:
                guess = nearest(name, names)
                hint = f"did you mean `{guess}`?" if guess else f"inputs: {', '.join(names)}"
                raise GraphError(f"`{self._source.name}` has no input `{name}`; {hint}")

    def _checked(self, inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
        """The inputs as arrays that fit what is declared, in the order of the declaration."""
        self._require_known(inputs)
        found: dict[str, np.ndarray] = {}
        sizes: dict[str, Dimension] = {}
        for declared in self.inputs:
            if declared.name not in inputs:
                if declared.optional:
                    continue
                raise GraphError(f"`{self._source.name}`: the input `{declared.name}` is missing")
            array = _array(inputs[declared.name], f"input `{declared.name}`")
            _require_fit(array, declared, sizes)
            found[declared.name] = array
        return found


def _place(graph: Graph) -> tuple[object, ...]:
    """What tells the graphs of a model apart: shapes, and what they compute."""
    return tuple((name, graph.values[name].shape) for name in graph.inputs), graph.outputs


def _require_shape(shape: Shape, declared: Declared, sizes: dict[str, Dimension]) -> None:
    """GraphError where a shape is not as declared; ``sizes``: those of other inputs, by name."""
    if declared.shape is None:
        return
    fits = len(shape) == len(declared.shape)
    for extent, wanted in zip(shape, declared.shape, strict=False):
        known = sizes.setdefault(str(wanted), extent) if isinstance(wanted, Size) else wanted
        fits = fits and (extent == known or isinstance(extent, Size))
    if not fits:
        raise GraphError(
            f"input `{declared.name}` is declared ({shape_text(declared.shape)}), got ({shape_text(shape)})"
        )


def _evaluation(graph: Graph) -> Runnable:
    from tc.graph.run.evaluate import Evaluation

    return Evaluation(graph)


def _array(value: object, what: str) -> np.ndarray:
    """The elements of any framework's array, one after the other."""
    array = value if isinstance(value, np.ndarray) else borrow(describe(value, what))
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


def _require_fit(array: np.ndarray, declared: Declared, sizes: dict[str, Dimension]) -> None:
    what = f"input `{declared.name}`"
    type = scalar_type_of(array.dtype, what)
    if type is not declared.type:
        raise GraphError(f"{what} is declared {declared.type}, got {type}")
    _require_shape(array.shape, declared, sizes)
