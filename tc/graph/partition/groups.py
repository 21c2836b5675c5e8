"""``Groups``: nodes of a graph joined to groups, of which none waits for itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.partition.edges import Edge
from tc.graph.partition.kinds import Kind, kinds_of

# A kernel with more statements takes longer to schedule than it saves.
MOST_STATEMENTS: Final = 12

Group = tuple[int, ...]


class Groups:
    """Groups of nodes, by places in the graph, and what depends on what; at first, each node is alone."""

    def __init__(self, graph: Graph) -> None:
        makers = {result: at for at, node in enumerate(graph.nodes) for result in node.results}
        self._graph: Final = graph
        self._kinds: Final = kinds_of(graph)
        self._own_needs: Final = [{makers[name] for name in node.operands if name in makers} for node in graph.nodes]
        # The number of a node's group, which is that of one of its members; then what is known of groups, by number.
        self._of = list(range(len(graph.nodes)))
        self._members: dict[int, Group] = {}
        self._needs: dict[int, set[int]] = {}
        self._pointwise: dict[int, bool] = {}
        self._statements: dict[int, int] = {}
        for at in range(len(graph.nodes)):
            self._alone(at)

    def of(self, node: int) -> Group:
        """The group of a node."""
        return self._members[self._of[node]]

    def among(self, nodes: Iterable[int]) -> frozenset[Group]:
        """The groups of these nodes."""
        return frozenset(self._members[self._of[node]] for node in nodes)

    def all(self) -> tuple[Group, ...]:
        """The groups of calls, in order."""
        found = sorted(self._members.values())
        return tuple(group for group in found if isinstance(self._graph.nodes[group[0]], Call))

    def divided(self, nodes: Sequence[int]) -> Groups:
        """The same with these nodes, all those of their groups, each in a group of its own."""
        made = Groups.__new__(Groups)
        made.__dict__.update(self.__dict__)
        made._of = list(self._of)
        made._members, made._needs = dict(self._members), dict(self._needs)
        made._pointwise, made._statements = dict(self._pointwise), dict(self._statements)
        for node in nodes:
            made._alone(node)
        return made

    def join(self, edge: Edge) -> None:
        """Joins the groups of both ends of an edge, if they may be one kernel."""
        first, second = self._of[edge.producer], self._of[edge.consumer]
        if first == second:
            return
        if not edge.epilogue and not self._pointwise[first]:
            return
        # Two reductions beside each other would share tiles that fit neither.
        if edge.epilogue and not self._pointwise[first] and not self._pointwise[second]:
            return
        if self._statements[first] + self._statements[second] > MOST_STATEMENTS or self._leads_around(first, second):
            return
        self._members[first] = tuple(sorted((*self._members[first], *self._members.pop(second))))
        self._needs[first] = (self._needs[first] | self._needs.pop(second)) - {first, second}
        self._pointwise[first] = self._pointwise[first] and self._pointwise.pop(second)
        self._statements[first] += self._statements.pop(second)
        for at in self._members[first]:
            self._of[at] = first

    def _alone(self, at: int) -> None:
        node = self._graph.nodes[at]
        self._of[at], self._members[at], self._needs[at] = at, (at,), self._own_needs[at]
        self._pointwise[at] = self._kinds[at] in (None, Kind.POINTWISE)
        self._statements[at] = len(node.program.statements) if isinstance(node, Call) else 0

    def _leads_around(self, first: int, second: int) -> bool:
        """Whether ``second`` depends on ``first`` by way of another group, which would then wait for itself."""
        waiting = [group for group in self._groups_needed(second) if group != first]
        seen: set[int] = set(waiting)
        while waiting:
            for needed in self._groups_needed(waiting.pop()):
                if needed == first:
                    return True
                if needed not in seen:
                    seen.add(needed)
                    waiting.append(needed)
        return False

    def _groups_needed(self, group: int) -> set[int]:
        return {self._of[at] for at in self._needs[group]} - {group}
