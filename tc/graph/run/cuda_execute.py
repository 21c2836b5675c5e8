"""``CudaExecution``: a planned graph that runs on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tc.base.once import Once
from tc.dispatch.array_placement import cuda_place, device_of
from tc.dispatch.sites import CudaSite, cuda_site
from tc.graph.run.arrays import numbers
from tc.graph.run.cuda_program import CudaProgram
from tc.graph.run.cuda_results import fetched_result, made_result, result_in, to_gpu
from tc.graph.run.kernels import compiled
from tc.graph.run.results import Result, announced
from tc.runtime.views.view import Framework

if TYPE_CHECKING:
    from tc.dispatch.arguments import Arguments
    from tc.dispatch.warm_cuda import CudaPlan
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.run.parts import Kernels
    from tc.targets.target import CudaTarget


class CudaExecution:
    """A plan whose intermediate values and constants lie on a GPU.  Safe to call from many threads.

    Arrays on a GPU are used where they are.  Those of this machine are copied to it; where all arrays of a call are
    such, results are, too.  ``kernels``: those of the calls, by the names of results; None compiles them.
    """

    def __init__(self, plan: MemoryPlan, target: CudaTarget, kernels: Kernels | None = None) -> None:
        self.plan: Final = plan
        self.target: Final = target
        self.kernels: Final = compiled(plan, str(target)) if kernels is None else kernels
        self._made: Final[Once[None, CudaProgram]] = Once()

    def run(self, bound: Arguments, names: Sequence[str]) -> tuple[object, ...]:
        """The outputs in order, which the caller calls ``names``."""
        program = self._program()  # first of all, since it says so where this machine has no such GPU
        graph, at_home = self.plan.graph, device_of(bound) is None
        call = to_gpu(bound)
        site = self._site(call)
        results = self._results(site, bound, names)
        announced(bound.outputs)
        addresses = [call.inputs[name].address if name in call.inputs else 0 for name in graph.inputs]
        site.launch([*addresses, *(result.address for result in results)], ())
        found = tuple(result.finish() for result in results)
        if at_home:  # results were waited for
            program.raise_faults()
        return found

    def warm(self, bound: Arguments, names: Sequence[str]) -> CudaPlan | None:
        """How calls are repeated that bring arrays like these, in the same order; None where they are not alike."""
        from tc.dispatch.cuda_plan import plan_of

        graph = self.plan.graph
        on_host = not bound.inputs or any(view.memory is None for view in bound.views)
        if on_host or bound.framework is Framework.JAX or bound.aliases(graph.name):
            return None
        values = [graph.values[name] for name in graph.outputs]
        results = {name: (numbers(v.shape, v.name), v.type) for name, v in zip(names, values, strict=True)}
        order, first = list(bound.inputs), len(bound.inputs)
        sources = (*map(order.index, graph.inputs), *range(first, first + len(names)))
        return plan_of(self._site(bound), bound, results, sources)

    def _results(self, site: CudaSite, bound: Arguments, names: Sequence[str]) -> list[Result]:
        graph, at_home = self.plan.graph, device_of(bound) is None
        shared = {output for output, _ in bound.aliases(graph.name)} if bound.outputs else set()
        found = []
        for name, own in zip(names, graph.outputs, strict=True):
            value, view = graph.values[own], bound.outputs.get(name)
            if view is not None:
                found.append(result_in(name, view, value, site, apart=name in shared))
            elif at_home:
                found.append(fetched_result(value, site, bound.framework))
            else:
                found.append(made_result(value, site))
        return found

    def _site(self, call: Arguments) -> CudaSite:
        return cuda_site(self._program(), cuda_place(call, self.plan.graph.name, self.target), call)

    def _program(self) -> CudaProgram:
        return self._made.get(None, lambda: CudaProgram(self.plan, self.kernels))
