"""``Graph``: nodes in order, each of which uses values of those before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from tc.base.frozen import frozen
from tc.graph.ir.constants import Constants
from tc.graph.ir.nodes import Node
from tc.graph.ir.values import Value

if TYPE_CHECKING:
    import numpy as np


@frozen
class Graph:
    """Inputs, constants with their contents, nodes in order, and the names of the values that it returns.

    ``values`` has every value by name, inputs and constants too.  A name has one value.  Who looks at ``constants`` may
    compute them.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Mapping[str, Value]
    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray] = field(hash=False, compare=False)

    def producers(self) -> dict[str, Node]:
        """The node that makes each value, by name; inputs and constants have none."""
        return {result: node for node in self.nodes for result in node.results}

    def users(self) -> dict[str, list[Node]]:
        """The nodes that use each value, by name, in order; a node that uses it twice comes once."""
        found: dict[str, list[Node]] = {name: [] for name in self.values}
        for node in self.nodes:
            for operand in dict.fromkeys(node.operands):
                found[operand].append(node)
        return found

    def needed(self, outputs: Iterable[str] | None = None) -> Graph:
        """What the outputs depend on, or others in their place; all inputs stay."""
        wanted = self.outputs if outputs is None else tuple(outputs)
        used, kept = set(wanted), []
        for node in reversed(self.nodes):
            if not used.isdisjoint(node.results):
                kept.append(node)
                used.update(node.operands)
        names = {*used, *self.inputs, *(result for node in kept for result in node.results)}
        return replace(
            self,
            outputs=wanted,
            nodes=tuple(reversed(kept)),
            values={name: value for name, value in self.values.items() if name in names},
            constants=Constants.of(self.constants).only(names),
        )

    def in_order(self) -> Graph:
        """The graph with each node after those whose results it uses, otherwise in the order given."""
        makers = self.producers()
        done: set[int] = set()
        order: list[Node] = []
        for root in self.nodes:
            waiting = [(root, False)]
            while waiting:
                node, ready = waiting.pop()
                if id(node) in done:
                    continue
                if ready:
                    done.add(id(node))
                    order.append(node)
                    continue
                waiting.append((node, True))
                waiting += [(makers[name], False) for name in reversed(node.operands) if name in makers]
        return replace(self, nodes=tuple(order))
