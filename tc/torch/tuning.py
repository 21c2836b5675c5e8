"""Tunes the parts of captured graphs: their kernels, and whether PyTorch is quicker with a part as a whole."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from tc.api.available import target_of_call
from tc.api.tuning import TuningRequest
from tc.base.errors import GraphError
from tc.graph.tuning.tune import tune_together
from tc.torch.compiled import Compiled, Mixed, Ready
from tc.torch.fx.shares import Share, shares_of
from tc.torch.graphs import ModuleGraph, graph_of
from tc.torch.kept import KeptPart, cache_here
from tc.torch.passing import layout_of
from tc.torch.rules import rules
from tc.torch.trials import trials_of, tried

if TYPE_CHECKING:
    from tc.graph.ir.graph import Graph
    from tc.graph.memory.plan import MemoryPlan
    from tc.store.cached import KernelCache
    from tc.tuner.trial.budget import Budget


class TunedPart:
    """A part and the arguments of a call of it, for which it is tuned.

    GraphError for one that cannot be imported, and for one whose plan would not be found again.
    """

    def __init__(self, part: Compiled, arguments: Sequence[Any]) -> None:
        given = [layout_of(one) for one in arguments]
        digest = part.digest(given)
        if digest is None:
            raise GraphError(f"{part.name} holds what has no text, and cannot be known again")
        self._part: Final = part
        self._arguments: Final = arguments
        self._given: Final = given
        self.digest: Final = digest
        self._made: Final[ModuleGraph] = graph_of(part.module, part.name, rules(), given)

    @property
    def name(self) -> str:
        """For people."""
        return self._part.name

    @property
    def graph(self) -> Graph:
        """What is tuned."""
        return self._made.graph

    def keep(self, kernels: KernelCache, plan: MemoryPlan) -> None:
        """Keeps the plan that comes of it in a cache, and what is ours of the graph that it is a part of."""
        self._kept(kernels).keep(self._made.frame(plan), plan)
        if self._part.claims is not None:
            self._part.claims.keep(kernels)

    def compare(self, kernels: KernelCache) -> str:
        """Measures what a cache has of the part in turns with PyTorch, which does all of it, or the operators that its
        libraries are made for, and stores what is the quickest; what came of it.

        The part runs that from now on.
        """
        found = self._kept(kernels).find(len(self._given))
        if found is None:
            return f"{self.name}: it has no plan that is kept, and was not compared with PyTorch"
        module, arguments = self._part.module, self._arguments
        ready = Ready.of(module, self._given, *found, kept=True)
        mixed: dict[Share, Mixed] = {
            share: Mixed(self._part, share) for share in shares_of(module) if share is not Share.ALL
        }
        others: dict[Share, Callable[[], object]] = {Share.ALL: lambda: module(*arguments)}
        others |= {share: functools.partial(one, arguments) for share, one in mixed.items()}
        with torch.no_grad():
            trials = tried(kernels, self.digest, lambda: ready(arguments), others)
        self._part.adopt(arguments, ready, mixed, trials)
        return f"{self.name}: {self._part.told(trials)}"

    def _kept(self, kernels: KernelCache) -> KeptPart:
        return KeptPart(kernels, self.digest, self._part.module, self._part.settings)


class Tuned:
    """A captured graph that is tuned for its first call, whose results are PyTorch's.

    ``run``: calls its parts.  ``budget``: for all of them.  A part that the cache has a trial of is not tuned again.
    """

    def __init__(self, run: Callable[..., Any], parts: Sequence[Compiled], budget: Budget) -> None:
        self._run: Final = run
        self._parts: Final = parts
        self._budget: Final = budget
        self._lock: Final = threading.Lock()
        self._done = False

    def __call__(self, *arguments: Any) -> Any:
        """The results."""
        if self._done:
            return self._run(*arguments)
        with self._lock:
            if self._done:
                return self._run(*arguments)
            calls: list[tuple[Compiled, Sequence[Any]]] = []
            for part in self._parts:
                part.watch = lambda *call: calls.append(call)
            try:
                found = self._run(*arguments)
            finally:
                for part in self._parts:
                    part.watch = None
            self._tune(calls)
            self._done = True
            return found

    def _tune(self, calls: Sequence[tuple[Compiled, Sequence[Any]]]) -> None:
        parts = [part for part in tunable(calls) if not _is_known(part)]
        if not parts:
            return
        settings = self._parts[0].settings
        shown = sys.stderr is not None and sys.stderr.isatty()
        request = TuningRequest(self._budget, seed=0, progress=shown)

        def compare(kernels: KernelCache) -> None:
            for part in parts:
                part.compare(kernels)

        graphs = [(part.name, part.graph, part.keep) for part in parts]
        tune_together(graphs, settings, target_of_call(settings.target), request, compare)


def tunable(calls: Sequence[tuple[Compiled, Sequence[Any]]]) -> list[TunedPart]:
    """The parts that were called, without those that cannot be tuned."""
    found = []
    for part, arguments in calls:
        try:
            found.append(TunedPart(part, arguments))
        except GraphError:  # the next call says why, unless PyTorch runs the part
            continue
    return found


def _is_known(part: TunedPart) -> bool:
    cache = cache_here()
    return cache is not None and trials_of(cache, part.digest) is not None
