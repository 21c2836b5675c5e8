"""``Net``: a graph while it is rewritten: who makes and who uses each value, and a builder for what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Contents
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Node, View
from tc.graph.ir.values import Value
from tc.graph.ir.views import viewed
from tc.graph.run.arrays import view_of


class Net:
    """The nodes by number; numbers grow, and say nothing of the order."""

    def __init__(self, graph: Graph) -> None:
        self._graph: Final = graph
        self.builder: Final = Builder.continuing(graph)
        self.nodes: Final[dict[int, Node]] = dict(enumerate(graph.nodes))
        self.outputs: Final = list(graph.outputs)
        self._makers = {name: at for at, node in self.nodes.items() for name in node.results}
        self._users: Final[dict[str, set[int]]] = {}
        for at, node in self.nodes.items():
            self._note(at, node)
        self._seen = self.builder.made

    def value(self, name: str) -> Value:
        """The value of a name."""
        return self.builder.value(name)

    def maker(self, name: str) -> Node | None:
        """The node that makes a value; None of inputs and constants."""
        at = self._makers.get(name)
        return None if at is None else self.nodes[at]

    def users(self, name: str) -> list[int]:
        """Numbers of the nodes that use a value."""
        return sorted(self._users.get(name, ()))

    def uses(self, name: str) -> int:
        """How many nodes use a value, and the graph where it returns it."""
        return len(self._users.get(name, ())) + (name in self.outputs)

    def constant(self, name: str) -> np.ndarray | None:
        """The contents of a constant, or of a view of one; None of other values."""
        contents = self.contents(name)
        return None if contents is None else contents()

    def contents(self, name: str) -> Contents | None:
        """What gives the contents of a constant, or of a view of one; None of other values."""
        maker = self.maker(name)
        if not isinstance(maker, View):
            return self.builder.contents_of(self.value(name))
        held = self.contents(maker.operand)
        if held is None:
            return None
        operand, value = self.value(maker.operand), self.value(name)
        return lambda: view_of(held(), maker, operand, value)

    def added(self) -> list[int]:
        """Numbers of the nodes that the builder has made since this was last asked."""
        found = []
        for node in self.builder.nodes_from(self._seen):
            number = len(self._graph.nodes) + self._seen
            self._seen += 1
            self.nodes[number] = node
            self._makers |= dict.fromkeys(node.results, number)
            self._note(number, node)
            found.append(number)
        return found

    def exchange(self, old: str, new: str) -> list[int]:
        """Uses of a value become those of another one; returns numbers of the nodes that use it now."""
        changed = self.users(old)
        for at in changed:
            node = self.nodes[at]
            self._users[old].discard(at)
            made: Node
            if isinstance(node, View):
                made = self._viewed(node, new)
            else:
                made = replace(node, operands=tuple(new if name == old else name for name in node.operands))
            self.nodes[at] = made
            self._note(at, made)
        self.outputs[:] = [new if name == old else name for name in self.outputs]
        return changed

    def _viewed(self, node: View, new: str) -> View:
        """The view of another operand, whose strides may differ, and with them those of the result."""
        found = viewed(self.value(new), node.how, node.result)
        if found is None:
            new = self.builder.contiguous(self.value(new)).name
            self.added()
            found = viewed(self.value(new), node.how, node.result)
            assert found is not None
        value, offset = found
        old = self.value(node.result)
        made = replace(node, operand=new, offset=offset)
        self.builder.change(value)
        if value.strides != old.strides:
            for user in self.users(node.result):
                other = self.nodes[user]
                if isinstance(other, View):
                    self.nodes[user] = self._viewed(other, node.result)
        return made

    def drop_unused(self, at: int) -> None:
        """Takes a node away that nothing uses, and those that only it has used."""
        waiting = [at]
        while waiting:
            number = waiting.pop()
            node = self.nodes.get(number)
            if node is None or any(self.uses(name) for name in node.results):
                continue
            del self.nodes[number]
            for name in node.operands:
                self._users[name].discard(number)
                if name in self._makers:
                    waiting.append(self._makers[name])

    def graph(self) -> Graph:
        """The graph as it is now."""
        made = Graph(
            self._graph.name,
            self._graph.inputs,
            tuple(self.outputs),
            self.builder.values(),
            tuple(self.nodes.values()),
            self.builder.constants(),
        )
        return made.in_order().needed()

    def _note(self, at: int, node: Node) -> None:
        for name in node.operands:
            self._users.setdefault(name, set()).add(at)
