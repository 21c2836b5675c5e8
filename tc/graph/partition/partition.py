"""``Partition``: which calls of a graph share a kernel.

A call joins those that make its operands where that saves memory traffic and computes nothing twice: what is pointwise
joins the kernel of its operand (an epilogue), and then, where no reduction came before it, the kernel of its only user
(a prologue).
"""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.partition.edges import Edge, edges_of
from tc.graph.partition.groups import Group, Groups


@frozen
class Partition:
    """Groups of calls, by places in the graph; every call is in one group.  ``cuts``: edges that join nothing."""

    groups: tuple[Group, ...]
    cuts: frozenset[Edge] = frozenset()


def partition_of(graph: Graph, cuts: frozenset[Edge] = frozenset(), edges: Sequence[Edge] | None = None) -> Partition:
    """The groups that come of joining all edges that are not cut, one after the other, where no cycle arises.

    ``edges``: those of the graph, where they are known.
    """
    joined = Groups(graph)
    for edge in edges_of(graph) if edges is None else edges:
        if edge not in cuts:
            joined.join(edge)
    return Partition(joined.all(), cuts)
