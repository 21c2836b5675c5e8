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
    from tc.graph.ir.graph import Graph
    from tc.graph.ir.values import Value


def compiled(plan: MemoryPlan, target: str | None) -> Mapping[tuple[str, ...], Kernel]:
    """The kernel of each call, by the names of its results; constants are computed meanwhile."""
    calls = calls_of(plan)
    kernels = compile_together(wanted_in(plan), target, meanwhile=lambda: list(plan.graph.constants.values()))
    return {call.results: kernel for call, kernel in zip(calls, kernels, strict=True)}


def wanted_in(plan: MemoryPlan) -> list[Wanted]:
    """The kernels of the calls of a plan, in order; what is written in place has one of its own."""
    return [wanted_of(plan, call) for call in calls_of(plan)]


def schedule_steps(plan: MemoryPlan, target: str | None) -> Mapping[tuple[str, ...], str]:
    """The steps of the schedule of each call's kernel as text, by the names of its results."""
    steps = steps_together(wanted_in(plan), target)
    return {call.results: text for call, text in zip(calls_of(plan), steps, strict=True)}


def calls_of(plan: MemoryPlan) -> list[Call]:
    """The calls of a plan, each of which is a kernel."""
    return [node for node in plan.graph.nodes if isinstance(node, Call)]


def wanted_of(plan: MemoryPlan, call: Call) -> Wanted:
    """The kernel of a call."""
    values, replaced = plan.graph.values, plan.storage.in_place
    arguments = dict(zip(call.operands, call.program.arguments, strict=True))
    results = list(zip(call.program.results, call.results, strict=True))
    in_place = tuple((own, arguments[replaced[name]]) for own, name in results if name in replaced)
    specs = tuple(spec_of(values[name]) for name in call.operands)
    return Wanted(comprehension_of(call.program), specs, in_place, layouts_of(plan.graph, call))


def layouts_of(graph: Graph, call: Call) -> tuple[tuple[str, ArraySpec], ...]:
    """The results that are not contiguous, by their names in the program."""
    results = zip(call.program.results, call.results, strict=True)
    return tuple((own, spec_of(graph.values[name])) for own, name in results if not graph.values[name].is_contiguous)


def spec_of(value: Value) -> ArraySpec:
    """What a kernel must know of a value."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    return ArraySpec(shape, value.type, None if value.strides is None else steps)
