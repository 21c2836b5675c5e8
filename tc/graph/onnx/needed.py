"""Which nodes the wanted results depend on, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tc.base.errors import GraphError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def needed(nodes: Sequence[NodeProto], wanted: Sequence[str], known: Mapping[str, object]) -> list[NodeProto]:
    """The nodes that the wanted names depend on, those first that others use; GraphError for cycles."""
    makers = {name: node for node in nodes for name in node.output if name}
    order: list[NodeProto] = []
    state: dict[int, bool] = {}  # whether a node is done
    waiting = [(name, False) for name in reversed(wanted)]
    while waiting:
        name, done = waiting.pop()
        node = makers.get(name)
        if node is None or (name in known and not done):
            continue
        if done:
            if not state[id(node)]:
                state[id(node)] = True
                order.append(node)
            continue
        if id(node) in state:
            if not state[id(node)]:
                raise GraphError(f"node `{node.name or name}` ({node.op_type}) depends on itself")
            continue
        state[id(node)] = False
        waiting.append((name, True))
        waiting += [(operand, False) for operand in reversed(operands_of(node))]
    return order


def operands_of(node: NodeProto) -> list[str]:
    """All names that a node uses, and the graphs inside."""
    return [name for name in (*node.input, *_captured(node)) if name]


def _captured(node: NodeProto) -> list[str]:
    """What the graphs inside a node use of those around it."""
    found: list[str] = []
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            found += captured_of(graph)
    return found


def captured_of(graph: GraphProto) -> list[str]:
    """Names that a graph uses and does not make."""
    own = {entry.name for entry in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in (*node.input, *_captured(node))]
    used += [entry.name for entry in graph.output]
    return [name for name in dict.fromkeys(used) if name and name not in own]
