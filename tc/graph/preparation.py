"""``Preparation``: what becomes of a graph before it runs: rewriting, constants, kernels, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tc.api.available import target_of_call
from tc.api.progress import Progress
from tc.base.environment import environment
from tc.base.errors import DeviceError, GraphError, OptionsError
from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import shape_text
from tc.graph.memory.blocks import Block
from tc.graph.memory.joins import joined
from tc.graph.memory.own_outputs import with_own_outputs
from tc.graph.memory.plan import MemoryPlan, needed_blocks, planned
from tc.graph.partition.compose import composed
from tc.graph.partition.costs import NO_RECORD, Costs, Record
from tc.graph.partition.cuts import named_cuts
from tc.graph.partition.decide import Decision, decided
from tc.graph.partition.partition import Partition, partition_of
from tc.graph.partition.rates import rates_of
from tc.graph.rewrite.constants import folded, laid_out
from tc.graph.rewrite.engine import Applied, rewritten
from tc.graph.rewrite.rule import Where
from tc.graph.rewrite.rules import RULES
from tc.graph.run.arrays import on_arrays
from tc.graph.run.execute import Execution
from tc.graph.run.recorded import recorded
from tc.graph.run.repeated import Repeated
from tc.graph.settings import Settings
from tc.runtime.host.threads import get_threads
from tc.targets.target import CpuTarget

if TYPE_CHECKING:
    from tc.graph.libraries.choose import Choice

_HOST: Final = "cpu"
_STEPS: Final = 7

# Says which step of planning begins.
At: TypeAlias = Callable[[int, str], None]


def _silent(_done: int, _what: str) -> None:
    """Who plans says it otherwise."""


@frozen
class Prepared:
    """A graph before and after rewriting, how it is divided into kernels, what these cost, and its memory.

    ``choices``: who computes the nodes that libraries can; None where none was asked for.
    """

    elaborated: Graph
    rewritten: Graph
    trace: tuple[Applied, ...]
    decision: Decision
    costs: Costs
    memory: MemoryPlan
    choices: tuple[Choice, ...] | None = None


@frozen
class Optimized:
    """A graph after rewriting, with constants computed, and with joins; what was rewritten; who computes what."""

    graph: Graph
    trace: tuple[Applied, ...]
    choices: tuple[Choice, ...] | None = None


def prepared(graph: Graph, settings: Settings) -> Prepared:
    """The plan of a graph.  Compiles only what depends on constants alone.

    On a terminal, a bar on the standard error says how far it is, if it takes longer than two seconds.
    GraphError where a size is open, and for cuts that the graph has not.  OptionsError where libraries are asked for on
    other targets than processors.
    """
    with Progress(f"planning {graph.name}", _STEPS) as bar:
        return divided(graph, optimized(graph, settings, bar.at), settings, at=bar.at)


def optimized(graph: Graph, settings: Settings, at: At = _silent) -> Optimized:
    """The graph after all that comes before it is divided into kernels.

    Joins come before kernels, since they move nothing, whatever shares a kernel.
    """
    _require_numbers(graph)
    changed, trace = simplified(graph, settings)
    if settings.rules != ():
        at(1, "computing constants")
        known = folded(changed, _computed)
        if known is not changed:
            # What is constant now may be so for another rule.
            at(2, "rewriting")
            changed, further = simplified(known, settings)
            trace = (*trace, *further)
    choices = None
    if settings.libraries:  # before rules that make several nodes of one
        changed, choices = _chosen(changed, settings)
    if settings.rules != ():
        at(3, "rewriting the rest")
        changed, last = simplified(folded(changed, _computed), settings, late=True)
        changed, trace = laid_out(changed), (*trace, *last)
    if settings.join:
        at(4, "joining")
        changed = joined(changed, lambda found: _needed(found, settings))
    return Optimized(changed, trace, choices)


def _chosen(graph: Graph, settings: Settings) -> tuple[Graph, tuple[Choice, ...]]:
    """The graph with the nodes of libraries, and why."""
    from tc.graph.libraries.choose import with_libraries
    from tc.graph.libraries.installed import installed

    target = target_of_call(settings.target)
    if not isinstance(target, CpuTarget):
        raise OptionsError(f"libraries=True is for the target 'cpu', not for '{target}'; leave it out")
    own = replace(settings, libraries=False, cuts=None)

    def ready(part: Graph) -> Callable[[Mapping[str, np.ndarray]], object]:
        repeated = Repeated(Execution(prepared(part, own).memory, settings.target), part.inputs)
        return lambda arrays: repeated(tuple(arrays[name] for name in part.inputs))

    rules = RULES if own.rules is None else own.rules
    said = f"{target} {[rule.name for rule in rules]} {own.fuse} {own.in_place} {own.reorder}"
    return with_libraries(graph, _by_rule(graph, settings), installed(), said, ready)


def _by_rule(graph: Graph, settings: Settings) -> Partition:
    return partition_of(graph) if settings.fuse else unfused(graph)


def _needed(graph: Graph, settings: Settings) -> Sequence[Block]:
    """What a graph needs of memory if it is divided by the rule."""
    parts = composed(graph, _by_rule(graph, settings))
    return needed_blocks(parts, in_place=settings.in_place, reorder=settings.reorder)


def _planned(graph: Graph, settings: Settings) -> MemoryPlan:
    memory = planned(
        graph,
        in_place=settings.in_place,
        reorder=settings.reorder,
        placing=settings.offsets,
        workspace=settings.workspace,
    )
    _require_room(memory, settings)
    return memory


def _require_room(memory: MemoryPlan, settings: Settings) -> None:
    needed = memory.arena if settings.arena else memory.peak
    if settings.workspace is not None and needed > settings.workspace:
        raise GraphError(
            f"`{memory.graph.name}` needs {needed} bytes for intermediate values, {memory.peak} of them at a time, and "
            f"Settings(workspace={settings.workspace}) allows less; allow {needed}, or give inputs of smaller shapes"
        )


def _require_numbers(graph: Graph) -> None:
    for value in graph.values.values():
        if not all(isinstance(extent, int) for extent in value.shape):
            raise GraphError(
                f"`{value.name}` has the open shape ({shape_text(value.shape)}); give shapes of the inputs"
            )


def simplified(graph: Graph, settings: Settings, *, late: bool = False) -> tuple[Graph, tuple[Applied, ...]]:
    """The graph after rewriting, and what was rewritten.  ``late``: also by the rules that come last."""
    every = RULES if settings.rules is None else settings.rules
    kept = [rule for rule in every if late or not rule.late]
    other = Where.PROCESSORS if _is_for_gpus(settings) else Where.GPUS
    kept = [rule for rule in kept if rule.where is not other]
    return rewritten(graph, kept) if every else (graph, ())


def _is_for_gpus(settings: Settings) -> bool:
    # By its name: the machine may not be here.
    return not (settings.target or environment().target or "cpu").startswith("cpu")


def divided(
    graph: Graph, found: Optimized, settings: Settings, record: Record | None = None, at: At = _silent
) -> Prepared:
    """The plan of a graph that was rewritten: how it is divided is decided by a record of measurements, None for that
    of the cache of this process.
    """
    at(5, "dividing")
    changed = found.graph
    costs = _costs(changed, settings, record)
    if not settings.fuse:
        decision = Decision(unfused(changed))
    elif settings.cuts is not None:
        decision = Decision(partition_of(changed, named_cuts(changed, settings.cuts)))
    else:
        decision = decided(costs)
    parts = with_own_outputs(composed(changed, decision.partition))
    at(6, "placing values")
    memory = _planned(parts, settings)
    return Prepared(graph, changed, found.trace, decision, costs, memory, found.choices)


def _costs(graph: Graph, settings: Settings, record: Record | None) -> Costs:
    try:
        target = target_of_call(settings.target)
    except DeviceError:  # graphs are planned for machines that are not here
        return Costs(graph, rates_of(CpuTarget("x86-64"), get_threads()), record or NO_RECORD)
    return Costs(graph, rates_of(target, get_threads()), recorded(target) if record is None else record)


def unfused(graph: Graph) -> Partition:
    """A kernel for each call."""
    from tc.graph.ir.nodes import Call

    return Partition(tuple((at,) for at, node in enumerate(graph.nodes) if isinstance(node, Call)))


def _computed(graph: Graph) -> Sequence[np.ndarray]:
    # Ahead of time, there need not be the machine that the model is for.
    found = Execution(planned(composed(graph, partition_of(graph))), _HOST).run(on_arrays({}), graph.outputs)
    return [array for array in found if isinstance(array, np.ndarray)]
