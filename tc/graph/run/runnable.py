"""A plan that is ready to run, in an arena or without one, on this machine or on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tc.api.available import target_of_call
from tc.base.errors import OptionsError
from tc.graph.run.allocate import Allocating
from tc.graph.run.execute import Execution
from tc.targets.target import CudaTarget

if TYPE_CHECKING:
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.run.cuda_execute import CudaExecution
    from tc.graph.run.parts import Kernels

    Runnable: TypeAlias = Execution | Allocating | CudaExecution


def runnable(plan: MemoryPlan, target: str | None, *, arena: bool, kernels: Kernels | None = None) -> Runnable:
    """The plan for a target.  ``kernels``: those of its calls, by the names of results; None compiles them."""
    chosen = target_of_call(target)
    if not isinstance(chosen, CudaTarget):
        return Execution(plan, target, kernels) if arena else Allocating(plan, target, kernels)
    if not arena:
        raise OptionsError(f"arena=False is not for {chosen}: memory of GPUs is not allocated value by value")
    from tc.graph.run.cuda_execute import CudaExecution

    return CudaExecution(plan, chosen, kernels)
