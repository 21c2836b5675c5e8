"""What variables hold where a node reads them: assignments that run before it, by control dependencies too."""

from __future__ import annotations

from typing import Final

from tc.base.errors import GraphError
from tc.graph.graphdef.nodes import Input, Nodes
from tc.graph.graphdef.operators.state import ASSIGNMENTS, INITIAL, VARIABLES


class Assignments:
    """The nodes that assign to each variable, which is their first operand; their result is its new value."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes: Final = nodes
        self._of: Final[dict[str, list[str]]] = {}
        for name in nodes:
            inputs = nodes.inputs(name)
            if nodes.operator(name) in ASSIGNMENTS and inputs and inputs[0].node in nodes:
                self._of.setdefault(inputs[0].node, []).append(name)

    def initial(self, variable: str) -> Input | None:
        """What a variable is initialized with; None where nothing is assigned to it."""
        found = [
            name
            for name in self._of.get(variable, [])
            if self._nodes.operator(name) in INITIAL and len(self._nodes.inputs(name)) > 1
        ]
        first = f"{variable}/Assign" if f"{variable}/Assign" in found else next(iter(found), None)
        return None if first is None else self._nodes.inputs(first)[1]

    def read(self, variable: Input, reader: str) -> Input:
        """Where the value of a variable is that a node reads: the variable, or what is assigned to it before.

        GraphError where several nodes assign to it before, in no order.
        """
        if self._nodes.operator(variable.node) not in VARIABLES:
            return variable
        assigning = [name for name in self._of.get(variable.node, []) if name != reader]
        before = self._before(reader) if assigning else frozenset()
        found = [name for name in assigning if name in before]
        last = [name for name in found if not any(name in self._before(other) for other in found if other != name)]
        if len(last) > 1:
            nodes = " and ".join(f"`{name}`" for name in last)
            raise GraphError(f"node `{reader}` reads the variable `{variable.node}` after {nodes}, in no order")
        return Input(last[0]) if last else variable

    def _before(self, name: str) -> frozenset[str]:
        """All nodes that a node waits for."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            at = waiting.pop()
            names = [operand.node for operand in self._nodes.inputs(at)] + list(self._nodes.controls(at))
            new = {one for one in names if one in self._nodes} - found
            found |= new
            waiting += new
        return frozenset(found)
