"""Which values share memory: views with what they look at, and what is written in the place of an operand that ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, View
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.partition.kinds import Kind, kind_of

# What is written in place of an operand must be as large as that.
_SAME: Final = 1


@frozen
class Storage:
    """``roots``: by value, the one whose memory it lies in.  ``in_place``: by value, the operand that it overwrites."""

    roots: Mapping[str, str]
    in_place: Mapping[str, str]


def bytes_of(value: Value) -> int:
    """How many bytes a contiguous value takes."""
    count = elements(value.shape)
    assert isinstance(count, int)
    return count * value.type.itemsize


def last_uses(graph: Graph, roots: Mapping[str, str]) -> dict[str, int]:
    """By root, the last node that uses its memory; one past the end for what is returned."""
    found: dict[str, int] = {}
    for at, node in enumerate(graph.nodes):
        for name in (*node.operands, *node.results):
            found[roots[name]] = at
    for name in graph.outputs:
        found[roots[name]] = len(graph.nodes)
    return found


def storage_of(graph: Graph, *, in_place: bool = True) -> Storage:
    """The storage of all values: views lie where their operands do, and pointwise results may replace an operand.

    That is so where the operand ends with the node, and each element is read at its own place only, which the proof of
    the kernel shows again.
    """
    roots = {name: name for name in graph.values}
    for node in graph.nodes:
        if isinstance(node, View):
            roots[node.result] = roots[node.operand]
    replaced: dict[str, str] = {}
    if not in_place:
        return Storage(roots, replaced)
    kept = {roots[name] for name in (*graph.inputs, *graph.constants, *graph.outputs)}
    last = last_uses(graph, roots)
    views = {node.result for node in graph.nodes if isinstance(node, View)}
    for at, node in enumerate(graph.nodes):
        if not isinstance(node, Call) or len(node.results) != 1 or node.results[0] in kept:
            continue
        name = node.results[0]
        for operand in dict.fromkeys(node.operands):
            root = roots[operand]
            fits = root not in kept and last[root] == at and node.operands.count(operand) == _SAME
            alone = sum(roots[other] == root for other in node.operands) == _SAME
            if fits and alone and operand not in views and may_replace(graph, node, operand):
                replaced[name] = operand
                users_of = [other for other, own in roots.items() if own == roots[name]]
                end = last[name]
                for other in users_of:
                    roots[other] = root
                last[root] = end
                break
    return Storage(roots, replaced)


def may_replace(graph: Graph, node: Call, operand: str) -> bool:
    """Whether the result is as large as the operand, and computed element by element."""
    source, result = graph.values[operand], graph.values[node.results[0]]
    same = source.type is result.type and source.shape == result.shape and source.is_contiguous
    return same and kind_of(node.program) is Kind.POINTWISE
