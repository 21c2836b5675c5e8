"""Outputs that lie in order, as callers want them."""

from __future__ import annotations

from dataclasses import replace

from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph


def with_own_outputs(graph: Graph) -> Graph:
    """The graph with a copy of each output whose elements do not lie in order; the same graph if there is none."""
    if all(graph.values[name].is_contiguous for name in graph.outputs):
        return graph
    builder = Builder.continuing(graph)
    outputs = tuple(builder.contiguous(graph.values[name]).name for name in graph.outputs)
    return replace(graph, nodes=(*graph.nodes, *builder.nodes_from(0)), values=builder.values(), outputs=outputs)
