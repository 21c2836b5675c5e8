"""``Keeper``: the stages of a model in the cache of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tc.api.available import target_of_call
from tc.base.environment import environment
from tc.dispatch.kernel import Kernel
from tc.graph.ir.source import Demand
from tc.graph.kept.beside import Beside
from tc.graph.kept.interface import interface_to_json
from tc.graph.kept.record import Steps, made_plan
from tc.graph.kept.request import request_text
from tc.graph.kept.sound import require_sound
from tc.graph.run.runnable import runnable
from tc.store.cached import KernelCache, kernel_cache
from tc.store.plans import PlanCache, WantedPlan

if TYPE_CHECKING:
    from tc.cache.format.records import Plan
    from tc.graph.ir.source import Request, Source
    from tc.graph.kept.contents import Contents
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.run.runnable import Runnable
    from tc.graph.run.stages import Stage
    from tc.graph.settings import Settings
    from tc.targets.target import Target


def keeper_of(contents: Contents, source: Source, settings: Settings) -> Keeper | None:
    """The keeper of a model; None where the process has no cache, and where it is to show how kernels are made."""
    kernels = kernel_cache(environment())
    return None if kernels is None or environment().dump is not None else Keeper.of(kernels, contents, source, settings)


class Keeper:
    """Finds stages that an earlier process has prepared, and keeps those that this one prepares.

    ``kernels``: the cache that has them, and those of plans.  ``interface``: what callers must know of the model, in
    JSON.
    """

    def __init__(
        self, kernels: KernelCache, contents: Contents, interface: Callable[[], str], settings: Settings
    ) -> None:
        self._cache: Final = PlanCache.beside(kernels)
        self._kernels: Final = kernels
        self._contents: Final = contents
        self._interface: Final = interface
        self._settings: Final = settings

    @staticmethod
    def of(kernels: KernelCache, contents: Contents, source: Source, settings: Settings) -> Keeper:
        """That of a model that is a source."""
        return Keeper(kernels, contents, lambda: interface_to_json(source), settings)

    def find(self, request: Request) -> Stage[Runnable] | None:
        """The stage for a request, ready to run; None where it is to be prepared: also where a kernel is missing."""
        wanted = self._wanted(request)
        record = None if wanted is None else self._cache.find(wanted)
        if wanted is None or record is None:
            return None
        with self._cache.reading(f"a plan of {record.title}"):
            return self._stage(record, wanted.target)
        return None

    def keep(self, request: Request, stage: Stage[Runnable]) -> None:
        """Stores a stage, if it can be found again.

        It cannot where Python computes what comes next, by a function that has no name.
        """
        ready, end = stage
        if not isinstance(end, Demand):
            self.keep_plan(request, ready.plan)
        elif end.compute is None:
            self.keep_plan(request, ready.plan, demanded=end.names)

    def keep_plan(self, request: Request, plan: MemoryPlan, *, demanded: tuple[str, ...] | None = None) -> None:
        """The same for a plan that does not run here, as of ``made_plan``."""
        wanted = self._wanted(request)
        if wanted is None or not self._cache.keeps:
            return
        made = made_plan(self._interface(), plan, wanted.target, self._contents.arrays(), demanded=demanded)
        if made is not None:
            self._cache.keep(wanted, made)

    def _wanted(self, request: Request) -> WantedPlan | None:
        text = request_text(request, self._settings)
        if text is None:
            return None
        return WantedPlan(self._contents.model, text, target_of_call(self._settings.target))

    def _stage(self, record: Plan, target: Target) -> Stage[Runnable] | None:
        steps = Steps(record)
        large = self._cache.constants(record)
        if large is None:
            return None
        held = steps.held(self._contents.arrays)
        # Constants are mostly copies of many bytes, and kernels mostly Python.
        restored = Beside(lambda: steps.plan(large, held))
        try:
            executables = self._kernels.found_together(steps.kernels(target))
        finally:
            restored.wait()
        if executables is None:
            return None
        plan, numbers = restored.value()
        signatures = steps.signatures
        require_sound(plan, {results: signatures[number] for results, number in numbers.items()})
        kernels = [Kernel(executable) for executable in executables]
        by_results = {results: kernels[number] for results, number in numbers.items()}
        settings = self._settings
        ready = runnable(plan, settings.target, arena=settings.arena, kernels=by_results)
        return ready, plan.graph if steps.demanded is None else Demand(plan.graph, names=steps.demanded)
