"""``Preparation``: what becomes of a graph before it runs: rewriting, constants, kernels, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.api.available import target_of_call
from tc.base.errors import GraphError, OptionsError
from tc.base.frozen import frozen
from tc.graph.export.own_outputs import with_own_outputs
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import shape_text
from tc.graph.memory.plan import MemoryPlan, planned
from tc.graph.partition.compose import composed
from tc.graph.partition.partition import Partition, partition_of
from tc.graph.rewrite.constants import folded, laid_out
from tc.graph.rewrite.engine import Applied, rewritten
from tc.graph.rewrite.rule import Rule
from tc.graph.rewrite.rules import RULES
from tc.graph.run.execute import Execution
from tc.targets.target import CpuTarget

if TYPE_CHECKING:
    from tc.graph.libraries.choose import Choice

_HOST: Final = "cpu"


@frozen
class Settings:
    """How graphs are prepared.

    ``rules``: of rewriting, in the order in which they are tried; none, and nothing is rewritten.  ``fuse``: whether
    calls share kernels.  ``in_place`` and ``reorder``: see ``tc.graph.memory.plan``.
    ``arena``: intermediate values lie in one block of memory; otherwise each is allocated and freed.
    ``libraries``: PyTorch, if it is installed, and SciPy's BLAS compute the products and convolutions with which they
    were measured to be quicker than our kernels, on the processor (see ``tc.graph.libraries``).
    """

    target: str | None = None
    rules: tuple[Rule, ...] = RULES
    fuse: bool = True
    in_place: bool = True
    reorder: bool = True
    arena: bool = True
    libraries: bool = False


@frozen
class Prepared:
    """A graph before and after rewriting, how it is divided into kernels, and its memory.

    ``choices``: who computes the nodes that libraries can; None where none was asked for.
    """

    elaborated: Graph
    rewritten: Graph
    trace: tuple[Applied, ...]
    partition: Partition
    memory: MemoryPlan
    choices: tuple[Choice, ...] | None = None


def prepared(graph: Graph, settings: Settings) -> Prepared:
    """The plan of a graph.  Compiles only what depends on constants alone.

    GraphError where a size is open.  OptionsError where libraries are asked for on other targets than processors.
    """
    _require_numbers(graph)
    changed, trace = simplified(graph, settings)
    if settings.rules:
        # What is constant now may be so for another rule.
        changed, further = simplified(folded(changed, _computed), settings)
        trace = (*trace, *further)
    choices = None
    if settings.libraries:  # before rules that make several nodes of one
        changed, choices = _chosen(changed, settings)
    if settings.rules:
        changed, last = simplified(folded(changed, _computed), settings, late=True)
        changed, trace = laid_out(changed), (*trace, *last)
    partition = _divided(changed, settings)
    memory = planned(composed(changed, partition), in_place=settings.in_place, reorder=settings.reorder)
    return Prepared(graph, changed, trace, partition, memory, choices)


def _divided(graph: Graph, settings: Settings) -> Partition:
    return partition_of(graph) if settings.fuse else unfused(graph)


def _chosen(graph: Graph, settings: Settings) -> tuple[Graph, tuple[Choice, ...]]:
    """The graph with the nodes of libraries, and why."""
    from tc.graph.libraries.choose import with_libraries
    from tc.graph.libraries.installed import installed

    target = target_of_call(settings.target)
    if not isinstance(target, CpuTarget):
        raise OptionsError(f"libraries=True is for the target 'cpu', not for '{target}'; leave it out")
    own = replace(settings, libraries=False)

    def ready(part: Graph) -> Callable[[Mapping[str, np.ndarray]], object]:
        return Execution(prepared(part, own).memory, settings.target).run

    said = f"{target} {[rule.name for rule in own.rules]} {own.fuse} {own.in_place} {own.reorder}"
    return with_libraries(graph, _divided(graph, settings), installed(), said, ready)


def exportable(graph: Graph, settings: Settings) -> MemoryPlan:
    """The plan of a graph whose outputs lie in order, as callers of an exported model want them."""
    memory = prepared(graph, settings).memory
    changed = with_own_outputs(memory.graph)
    if changed is memory.graph:
        return memory
    return planned(changed, in_place=settings.in_place, reorder=settings.reorder)


def _require_numbers(graph: Graph) -> None:
    for value in graph.values.values():
        if not all(isinstance(extent, int) for extent in value.shape):
            raise GraphError(
                f"`{value.name}` has the open shape ({shape_text(value.shape)}); give shapes of the inputs"
            )


def simplified(graph: Graph, settings: Settings, *, late: bool = False) -> tuple[Graph, tuple[Applied, ...]]:
    """The graph after rewriting, and what was rewritten.  ``late``: also by the rules that come last."""
    rules = [rule for rule in settings.rules if late or not rule.late]
    return rewritten(graph, rules) if settings.rules else (graph, ())


def unfused(graph: Graph) -> Partition:
    """A kernel for each call."""
    from tc.graph.ir.nodes import Call

    return Partition(tuple((at,) for at, node in enumerate(graph.nodes) if isinstance(node, Call)))


def _computed(graph: Graph) -> Sequence[np.ndarray]:
    # Ahead of time, there need not be the machine that the model is for.
    return Execution(planned(composed(graph, partition_of(graph))), _HOST).run({})
