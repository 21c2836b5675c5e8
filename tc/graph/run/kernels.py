"""The kernels of a plan, compiled together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tc.api.together import Wanted, compile_together, steps_together
from tc.graph.ir.nodes import Call
from tc.graph.memory.plan import MemoryPlan
from tc.graph.run.arrays import numbers
from tc.graph.run.comprehensions import comprehension_of
from tc.language.program.specialization import ArraySpec

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel
    from tc.graph.ir.values import Value


def compiled(plan: MemoryPlan, target: str | None) -> Mapping[tuple[str, ...], Kernel]:
    """The kernel of each call, by the names of its results."""
    calls = calls_of(plan)
    kernels = compile_together([_wanted(plan, call) for call in calls], target)
    return {call.results: kernel for call, kernel in zip(calls, kernels, strict=True)}


def schedule_steps(plan: MemoryPlan, target: str | None) -> Mapping[tuple[str, ...], str]:
    """The steps of the schedule of each call's kernel as text, by the names of its results."""
    calls = calls_of(plan)
    steps = steps_together([_wanted(plan, call) for call in calls], target)
    return {call.results: text for call, text in zip(calls, steps, strict=True)}


def calls_of(plan: MemoryPlan) -> list[Call]:
    """The calls of a plan, each of which is a kernel."""
    return [node for node in plan.graph.nodes if isinstance(node, Call)]


def _wanted(plan: MemoryPlan, call: Call) -> Wanted:
    values, replaced = plan.graph.values, plan.storage.in_place
    arguments = dict(zip(call.operands, call.program.arguments, strict=True))
    results = zip(call.program.results, call.results, strict=True)
    in_place = tuple((own, arguments[replaced[name]]) for own, name in results if name in replaced)
    return Wanted(comprehension_of(call.program), tuple(_spec(values[name]) for name in call.operands), in_place)


def _spec(value: Value) -> ArraySpec:
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    return ArraySpec(shape, value.type, None if value.strides is None else steps)
