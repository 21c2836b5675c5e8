"""Plans run without kernels: the oracle computes each call, and its results go where the plan says.

What lies in memory that something else is written to comes out wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from tc.graph.ir.nodes import Call
from tc.graph.memory.plan import MemoryPlan
from tc.graph.run.allocate import Allocating
from tc.graph.run.comprehensions import comprehension_of
from tc.graph.run.execute import Execution

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel
    from tc.language.program.program import Program


class _Oracle:
    """A call as the oracle computes it, in the form of a kernel."""

    def __init__(self, program: Program) -> None:
        self._comprehension = comprehension_of(program)

    def __call__(self, *operands: np.ndarray, out: object) -> None:
        found = self._comprehension.reference(*operands)
        made = found if isinstance(found, tuple) else (found,)
        for array, place in zip(made, out if isinstance(out, tuple) else (out,), strict=True):
            place[...] = array


def run_in_arena(plan: MemoryPlan, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of the plan in one arena, in which another call has left what it made."""
    execution = Execution(plan, None, _kernels(plan))
    execution.run(inputs)
    return execution.run(inputs)


def run_allocating(plan: MemoryPlan, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of the plan with memory for each value; it holds what the table says."""
    execution = Allocating(plan, None, _kernels(plan))
    found = execution.run(inputs)
    assert execution.peak == max((row.total for row in plan.rows()), default=0)
    assert execution.peak <= plan.peak
    return found


def _kernels(plan: MemoryPlan) -> Mapping[tuple[str, ...], Kernel]:
    calls = [node for node in plan.graph.nodes if isinstance(node, Call)]
    return {call.results: cast("Kernel", _Oracle(call.program)) for call in calls}
