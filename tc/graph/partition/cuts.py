"""Cuts by name: ``value -> result``, the value that is passed on, and the first result of the call that takes it."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.errors import GraphError, nearest
from tc.graph.ir.graph import Graph
from tc.graph.partition.edges import Edge, edges_of


def cut_name(graph: Graph, edge: Edge) -> str:
    """The name of an edge that is cut."""
    return f"{edge.value} -> {graph.nodes[edge.consumer].results[0]}"


def named_cuts(graph: Graph, names: Sequence[str]) -> frozenset[Edge]:
    """The edges with these names; the name of a value alone stands for all that take it.

    GraphError for a name that no edge has.
    """
    known: dict[str, set[Edge]] = {}
    for edge in edges_of(graph):
        for name in (edge.value, cut_name(graph, edge)):
            known.setdefault(name, set()).add(edge)
    for name in names:
        if name not in known:
            guess = nearest(name, known)
            some = ", ".join(f"`{edge}`" for edge in [one for one in known if " -> " in one][:5])
            hint = f"did you mean `{guess}`?" if guess else f"there are {some}" if some else "there are none"
            raise GraphError(f"`{graph.name}` has no calls that share a kernel through `{name}`; {hint}")
    return frozenset().union(*(known[name] for name in names))
