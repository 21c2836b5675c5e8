"""A plan that is ready to run, in an arena or without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tc.graph.run.allocate import Allocating
from tc.graph.run.execute import Execution, Kernels

if TYPE_CHECKING:
    from tc.graph.memory.plan import MemoryPlan


def runnable(
    plan: MemoryPlan, target: str | None, *, arena: bool, kernels: Kernels | None = None
) -> Execution | Allocating:
    """The plan for a target.  ``kernels``: those of its calls, by the names of results; None compiles them."""
    return Execution(plan, target, kernels) if arena else Allocating(plan, target, kernels)
