"""``Edge``: a value through which two calls may share a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Node
from tc.graph.partition.kinds import Kind, kinds_of
from tc.language.program.program import reads_in


@frozen
class Edge:
    """A value through which two calls may share a kernel: places of the nodes in the graph.

    ``epilogue``: the consumer is pointwise; otherwise the producer is.
    """

    producer: int
    consumer: int
    value: str
    epilogue: bool


def edges_of(graph: Graph) -> tuple[Edge, ...]:
    """The edges that may join two calls, in the order of the consumers, epilogues first."""
    found = list(_edges(graph, kinds_of(graph)))
    return (*(edge for edge in found if edge.epilogue), *(edge for edge in found if not edge.epilogue))


def _edges(graph: Graph, kinds: Sequence[Kind | None]) -> Iterator[Edge]:
    makers = {result: at for at, node in enumerate(graph.nodes) for result in node.results}
    users = graph.users()
    for at, node in enumerate(graph.nodes):
        if not isinstance(node, Call):
            continue
        for name in dict.fromkeys(node.operands):
            source = makers.get(name)
            if source is None or kinds[source] is None:
                continue
            if kinds[at] is Kind.POINTWISE:
                # The consumer runs over the elements of the value, or repeats one that is computed once.
                joins = graph.values[name].shape == graph.values[node.results[0]].shape
            else:
                joins = kinds[source] is Kind.POINTWISE and _is_all_for(graph, name, node, users)
            if joins:
                yield Edge(source, at, name, kinds[at] is Kind.POINTWISE)


def _is_all_for(graph: Graph, name: str, consumer: Call, users: Mapping[str, list[Node]]) -> bool:
    return users[name] == [consumer] and name not in graph.outputs and _reads_in_order(consumer)


def _reads_in_order(consumer: Call) -> bool:
    """Whether a consumer reads its operands a few times only, so that it does not want them packed: no product does."""
    statements = consumer.program.statements
    return all(len({read.tensor for read in reads_in(s.value)}) <= 1 for s in statements if s.reduction is not None)
