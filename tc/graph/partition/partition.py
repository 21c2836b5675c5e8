"""``Partition``: which calls of a graph share a kernel.

A call joins those that make its operands where that saves memory traffic and computes nothing twice: what is pointwise
joins the kernel of its operand (an epilogue), and then, where no reduction came before it, the kernel of its only user
(a prologue).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Node
from tc.graph.partition.kinds import Kind, kind_of

# A kernel with more statements takes longer to schedule than it saves.
MOST_STATEMENTS: Final = 12


@frozen
class Edge:
    """A value through which two calls may share a kernel: places of the nodes in the graph.

    ``epilogue``: the consumer is pointwise; otherwise the producer is.
    """

    producer: int
    consumer: int
    value: str
    epilogue: bool


@frozen
class Partition:
    """Groups of calls, by places in the graph; every call is in one group.  ``cuts``: edges that join nothing."""

    groups: tuple[tuple[int, ...], ...]
    cuts: frozenset[Edge] = frozenset()


def edges_of(graph: Graph) -> Iterator[Edge]:
    """The edges that may join two calls, in the order of the consumers, epilogues first."""
    found = list(_edges(graph))
    yield from (edge for edge in found if edge.epilogue)
    yield from (edge for edge in found if not edge.epilogue)


def _edges(graph: Graph) -> Iterator[Edge]:
    makers = {result: at for at, node in enumerate(graph.nodes) for result in node.results}
    users = graph.users()
    for at, node in enumerate(graph.nodes):
        if not isinstance(node, Call):
            continue
        for name in dict.fromkeys(node.operands):
            source = makers.get(name)
            producer = None if source is None else graph.nodes[source]
            if source is not None and isinstance(producer, Call) and _joins(graph, producer, node, name, users):
                yield Edge(source, at, name, kind_of(node.program) is Kind.POINTWISE)


def _joins(graph: Graph, producer: Call, consumer: Call, name: str, users: Mapping[str, list[Node]]) -> bool:
    value, made = graph.values[name], kind_of(producer.program)
    if kind_of(consumer.program) is Kind.POINTWISE:
        # The consumer runs over the elements of the value, or repeats one that is computed once.
        return value.shape == graph.values[consumer.results[0]].shape
    only = users[name] == [consumer] and name not in graph.outputs
    return made is Kind.POINTWISE and only and _reads_in_order(consumer)


def _reads_in_order(consumer: Call) -> bool:
    """Whether a consumer reads its operands a few times only, so that it does not want them packed: no product does."""
    statements = consumer.program.statements
    from tc.language.program.program import reads_in

    return all(len({read.tensor for read in reads_in(s.value)}) <= 1 for s in statements if s.reduction is not None)


def partition_of(graph: Graph, cuts: frozenset[Edge] = frozenset()) -> Partition:
    """The groups that come of joining all edges that are not cut, one after the other, where no cycle arises."""
    joined = _Groups(graph)
    for edge in edges_of(graph):
        if edge not in cuts:
            joined.join(edge)
    return Partition(joined.groups(), cuts)


class _Groups:
    """Nodes joined to groups; what depends on what, so that no group waits for itself."""

    def __init__(self, graph: Graph) -> None:
        makers = {result: at for at, node in enumerate(graph.nodes) for result in node.results}
        self._graph = graph
        self._of = list(range(len(graph.nodes)))
        self._members = {at: [at] for at in range(len(graph.nodes))}
        self._needs = {
            at: {makers[name] for name in node.operands if name in makers} for at, node in enumerate(graph.nodes)
        }

    def join(self, edge: Edge) -> None:
        first, second = self._of[edge.producer], self._of[edge.consumer]
        if not edge.epilogue and not self._is_pointwise(first):
            return
        # Two reductions beside each other would share tiles that fit neither.
        if edge.epilogue and not self._is_pointwise(first) and not self._is_pointwise(second):
            return
        if first == second or self._statements(first) + self._statements(second) > MOST_STATEMENTS:
            return
        if self._leads_around(first, second):
            return
        self._members[first] += self._members.pop(second)
        self._needs[first] = (self._needs[first] | self._needs.pop(second)) - {first, second}
        for at in self._members[first]:
            self._of[at] = first

    def _is_pointwise(self, group: int) -> bool:
        nodes = (self._graph.nodes[at] for at in self._members[group])
        return all(kind_of(node.program) is Kind.POINTWISE for node in nodes if isinstance(node, Call))

    def _statements(self, group: int) -> int:
        nodes = (self._graph.nodes[at] for at in self._members[group])
        return sum(len(node.program.statements) for node in nodes if isinstance(node, Call))

    def _leads_around(self, first: int, second: int) -> bool:
        """Whether ``second`` depends on ``first`` by way of another group, which would then wait for itself."""
        waiting = [group for group in self._groups_needed(second) if group != first]
        seen: set[int] = set(waiting)
        while waiting:
            for group in self._groups_needed(waiting.pop()):
                if group == first:
                    return True
                if group not in seen:
                    seen.add(group)
                    waiting.append(group)
        return False

    def _groups_needed(self, group: int) -> set[int]:
        return {self._of[at] for at in self._needs[group]} - {group}

    def groups(self) -> tuple[tuple[int, ...], ...]:
        found = (tuple(sorted(members)) for members in self._members.values())
        return tuple(group for group in sorted(found) if isinstance(self._graph.nodes[group[0]], Call))
