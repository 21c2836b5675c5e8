"""Which values share memory: views and parts with the whole, results with operands that end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Join, Node, View
from tc.graph.ir.sizes import Dimension, elements
from tc.graph.ir.values import Value
from tc.graph.partition.kinds import Kind, kind_of

# What is written in place of an operand must be as large as that.
_SAME: Final = 1


@frozen
class Storage:
    """``roots``: by value, the one whose memory it lies in.  ``in_place``: by value, the operand that it overwrites.

    ``starts``: by value that is part of another one and no view, where it begins there, in elements.
    """

    roots: Mapping[str, str]
    in_place: Mapping[str, str]
    starts: Mapping[str, int]


def bytes_of(value: Value) -> int:
    """How many bytes a contiguous value takes."""
    count = elements(value.shape)
    assert isinstance(count, int)
    return count * value.type.itemsize


def first_uses(graph: Graph, roots: Mapping[str, str]) -> dict[str, int]:
    """By root, the first node that writes to its memory."""
    found: dict[str, int] = {}
    for at, node in enumerate(graph.nodes):
        for name in node.results:
            found.setdefault(roots[name], at)
    return found


def last_uses(graph: Graph, roots: Mapping[str, str]) -> dict[str, int]:
    """By root, the last node that uses its memory; one past the end for what is returned."""
    found: dict[str, int] = {}
    for at, node in enumerate(graph.nodes):
        for name in (*node.operands, *node.results):
            found[roots[name]] = at
    for name in graph.outputs:
        found[roots[name]] = len(graph.nodes)
    return found


def written(graph: Graph, roots: Mapping[str, str]) -> dict[str, int]:
    """By root, the first output that is all of it, and so is computed in the memory that the caller gets."""
    given = {*graph.inputs, *graph.constants}
    found: dict[str, int] = {}
    for number, name in enumerate(graph.outputs):
        root = roots[name]
        if root not in given and bytes_of(graph.values[name]) == bytes_of(graph.values[root]):
            found.setdefault(root, number)
    return found


def viewed_by(makers: Mapping[str, Node], name: str) -> str:
    """The value that a view looks at in the end, one that is no view itself."""
    while isinstance(node := makers.get(name), View):
        name = node.operand
    return name


def part_starts(graph: Graph, join: Join) -> list[int]:
    """Where the operands begin in the result, in elements."""
    step = graph.values[join.result].steps[join.axis]
    found: list[Dimension] = []
    before: Dimension = 0
    for name in join.operands:
        found.append(before * step)
        before = before + graph.values[name].shape[join.axis]
    return [start for start in found if isinstance(start, int)]


def storage_of(graph: Graph, *, in_place: bool = True) -> Storage:
    """The storage of all values: views lie where their operands do, and pointwise results may replace an operand.

    That is so where the operand ends with the node, and each element is read at its own place only, which the proof of
    the kernel shows again.  Operands of joins lie in the result.
    """
    roots = {name: name for name in graph.values}
    starts: dict[str, int] = {}
    makers = graph.producers()
    for node in reversed(graph.nodes):  # a join may be part of a later one
        if isinstance(node, Join):
            for name, start in zip(node.operands, part_starts(graph, node), strict=True):
                part = viewed_by(makers, name)
                roots[part], starts[part] = roots[node.result], starts.get(node.result, 0) + start
    for node in graph.nodes:
        if isinstance(node, View):
            roots[node.result] = roots[node.operand]
    replaced = _replaced(graph, roots) if in_place else {}
    return Storage(roots, replaced, starts)


def _replaced(graph: Graph, roots: dict[str, str]) -> dict[str, str]:
    """The operands that results replace, by result; ``roots`` says so, too, in the end."""
    replaced: dict[str, str] = {}
    kept = {roots[name] for name in (*graph.inputs, *graph.constants, *graph.outputs)}
    last = last_uses(graph, roots)
    views = {node.result for node in graph.nodes if isinstance(node, View)}
    for at, node in enumerate(graph.nodes):
        if not isinstance(node, Call) or len(node.results) != 1:
            continue
        name = node.results[0]
        if roots[name] != name or name in kept:
            continue
        for operand in dict.fromkeys(node.operands):
            root = roots[operand]
            fits = root not in kept and last[root] == at and node.operands.count(operand) == _SAME
            alone = sum(roots[other] == root for other in node.operands) == _SAME
            # In the place of a part, a result would hold all of its memory.
            whole = bytes_of(graph.values[root]) == bytes_of(graph.values[name])
            if fits and alone and whole and operand not in views and may_replace(graph, node, operand):
                replaced[name] = operand
                end = last[name]
                for other in [other for other, own in roots.items() if own == name]:
                    roots[other] = root
                last[root] = end
                break
    return replaced


def may_replace(graph: Graph, node: Call, operand: str) -> bool:
    """Whether the result is as large as the operand, and computed element by element."""
    source, result = graph.values[operand], graph.values[node.results[0]]
    same = source.type is result.type and source.shape == result.shape
    same = same and source.is_contiguous and result.is_contiguous
    return same and kind_of(node.program) is Kind.POINTWISE
