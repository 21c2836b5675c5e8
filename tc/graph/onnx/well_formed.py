"""What must hold of a model before anything of it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tc.base.errors import GraphError, nearest
from tc.graph.onnx.fold import OF_SHAPES
from tc.graph.onnx.functions import MAIN_DOMAINS, body_of
from tc.graph.onnx.rules import RULES

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def require_known(
    nodes: Sequence[NodeProto], opsets: Mapping[str, int], functions: Mapping[tuple[str, str], object]
) -> None:
    """GraphError, which lists what is supported, where an operator is not: before anything runs."""
    for node in nodes:
        domain = node.domain if node.domain not in MAIN_DOMAINS else ""
        if (domain, node.op_type) in RULES or (node.domain, node.op_type) in functions or node.op_type in OF_SHAPES:
            continue
        if body_of(node, domain, opsets.get(domain, 1), None) is not None:
            continue
        supported = sorted({*(name for own, name in RULES if own == domain), *(OF_SHAPES if not domain else ())})
        guess = nearest(node.op_type, supported)
        hint = f"did you mean `{guess}`? " if guess else ""
        full = f"{domain}.{node.op_type}" if domain else node.op_type
        raise GraphError(
            f"node `{node.name or ''}`: the operator `{full}` is not supported; {hint}Supported: {', '.join(supported)}"
        )


def require_texts(model: ModelProto) -> None:
    """GraphError where a name is no text: what is not in UTF-8 comes as bytes."""
    graph = model.graph
    names = [graph.name, *(entry.domain for entry in model.opset_import)]
    names += [entry.name for entry in (*graph.input, *graph.output, *graph.initializer)]
    names += [
        extent.dim_param for entry in graph.input for extent in entry.type.tensor_type.shape.dim if extent.dim_param
    ]
    for node in _nodes(graph):
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    for name in names:
        if not isinstance(name, str):
            raise GraphError(f"a name of the model is no text: {name!r}")


def require_single(graph: GraphProto) -> None:
    """GraphError where two nodes, inputs or initializers make a value of one name."""
    made = [tensor.name for tensor in graph.initializer]
    made += [entry.name for entry in graph.input if entry.name not in made]
    made += [name for node in graph.node for name in node.output if name]
    seen: set[str] = set()
    for name in made:
        if name in seen:
            raise GraphError(f"two values are called `{name}`")
        seen.add(name)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph, and those of the graphs inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
