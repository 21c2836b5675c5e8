"""``Preparation``: what becomes of a graph before it runs: rewriting, constants, kernels, memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.errors import GraphError
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

_HOST: Final = "cpu"


@frozen
class Settings:
    """How graphs are prepared.

    ``rules``: of rewriting, in the order in which they are tried; none, and nothing is rewritten.  ``fuse``: whether
    calls share kernels.  ``in_place`` and ``reorder``: see ``tc.graph.memory.plan``.
    ``arena``: intermediate values lie in one block of memory; otherwise each is allocated and freed.
    """

    target: str | None = None
    rules: tuple[Rule, ...] = RULES
    fuse: bool = True
    in_place: bool = True
    reorder: bool = True
    arena: bool = True


@frozen
class Prepared:
    """A graph before and after rewriting, how it is divided into kernels, and its memory."""

    elaborated: Graph
    rewritten: Graph
    trace: tuple[Applied, ...]
    partition: Partition
    memory: MemoryPlan


def prepared(graph: Graph, settings: Settings) -> Prepared:
    """The plan of a graph.  Compiles only what depends on constants alone.

    GraphError where a size is open.
    """
    _require_numbers(graph)
    changed, trace = simplified(graph, settings)
    if settings.rules:
        # What is constant now may be so for another rule.
        changed, further = simplified(folded(changed, _computed), settings)
        changed, last = simplified(folded(changed, _computed), settings, late=True)
        changed, trace = laid_out(changed), (*trace, *further, *last)
    partition = partition_of(changed) if settings.fuse else unfused(changed)
    memory = planned(composed(changed, partition), in_place=settings.in_place, reorder=settings.reorder)
    return Prepared(graph, changed, trace, partition, memory)


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
