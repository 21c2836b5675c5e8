"""Which nodes the wanted values depend on, in the order in which they run; and whether all of them are supported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tc.base.errors import GraphError, nearest
from tc.base.frozen import frozen
from tc.graph.graphdef.nodes import Input, NodeDef, Nodes
from tc.graph.graphdef.operators import OPERATORS
from tc.graph.graphdef.operators.state import INITIAL, VARIABLES
from tc.graph.graphdef.variables import Assignments


@frozen
class Needed:
    """A node, where its operands are, and which of its results are used."""

    node: NodeDef
    operands: tuple[Input, ...]
    wanted: frozenset[int]


def needed(
    nodes: Nodes, assignments: Assignments, wanted: Sequence[Input], given: frozenset[str]
) -> tuple[Needed, ...]:
    """The nodes that are computed for the wanted values, after those that they wait for.

    ``given``: names of inputs that have values.  GraphError, before anything runs, for names that no node has, inputs
    that are missing, operators that are not supported, operands that are too many or too few, and cycles.
    """
    for operand in wanted:
        nodes.require(operand.node, "")
    search = _Search(nodes, assignments, given)
    search.visit([operand.node for operand in wanted])
    used: dict[str, set[int]] = {}
    for operand in (*wanted, *(operand for operands in search.operands.values() for operand in operands)):
        used.setdefault(operand.node, set()).add(operand.index)
    return tuple(
        Needed(nodes[name], search.operands[name], frozenset(used[name])) for name in _ordered(nodes, search.operands)
    )


class _Search:
    """Finds the nodes whose values are used; ``operands`` of each."""

    def __init__(self, nodes: Nodes, assignments: Assignments, given: frozenset[str]) -> None:
        self.nodes: Final = nodes
        self.assignments: Final = assignments
        self.given: Final = given
        self.operands: Final[dict[str, tuple[Input, ...]]] = {}

    def visit(self, names: Iterable[str]) -> None:
        """The nodes with what they depend on; each with the variable for whose initial value it is needed, if any."""
        waiting = [(name, "", "") for name in names]
        while waiting:
            name, user, variable = waiting.pop()
            if name in self.operands or name in self.given:
                continue
            self.nodes.require(name, f"{user}: " if user else "")
            try:
                found, variable = self._operands(name, user, variable)
            except GraphError as error:
                raise GraphError(f"{error}{_instead(variable)}") from None
            self.operands[name] = found
            place = f"node `{name}` ({self.nodes.operator(name)})"
            waiting += [(operand.node, place, variable) for operand in found]

    def _operands(self, name: str, user: str, variable: str) -> tuple[tuple[Input, ...], str]:
        kind = self.nodes.operator(name)
        if kind in VARIABLES:
            initial = self.assignments.initial(name)
            if initial is None:
                raise GraphError(f"the variable `{name}` has no value{_use(user)}: give it by name")
            return (initial,), name
        operator = OPERATORS.get(kind)
        if operator is None:
            guess = nearest(kind, OPERATORS)
            hint = f"did you mean `{guess}`? " if guess else ""
            supported = ", ".join(sorted(OPERATORS))
            raise GraphError(f"node `{name}`: the operator `{kind}` is not supported; {hint}Supported: {supported}")
        node = self.nodes[name]
        if kind in ("Placeholder", "PlaceholderV2"):
            raise GraphError(f"the input `{name}` is missing{_use(user)}")
        if kind == "NoOp":
            asked = ", ".join(f"`{control}`" for control in node.controls)
            raise GraphError(f"{node.place} has no value" + (f"; ask for what it waits for: {asked}" if asked else ""))
        operator.require_arity(node)
        inputs = node.inputs[1:] if kind in INITIAL else node.inputs
        for operand in inputs:
            self.nodes.require(operand.node, f"{node.place}: ")
        return tuple(self.assignments.read(operand, name) for operand in inputs), variable


def _use(user: str) -> str:
    return f", which {user} uses" if user else ""


def _instead(variable: str) -> str:
    return f"; or give the variable `{variable}` a value, which is initialized with it" if variable else ""


def _ordered(nodes: Nodes, operands: dict[str, tuple[Input, ...]]) -> list[str]:
    """The nodes of ``operands`` after those that they use, and after those that control dependencies name.

    GraphError for what waits for itself.  Nodes that are only waited for are followed, and not computed: what they
    compute nothing uses.
    """
    order: list[str] = []
    done: dict[str, bool] = {}
    waiting = [(name, False) for name in reversed(operands)]
    while waiting:
        name, left = waiting.pop()
        if left:
            done[name] = True
            if name in operands:
                order.append(name)
            continue
        if name in done:
            if not done[name] and name in operands:
                raise GraphError(f"{nodes[name].place} depends on itself")
            continue
        done[name] = False
        waiting.append((name, True))
        inputs = operands.get(name)
        before = list(inputs) if inputs is not None else list(nodes.inputs(name))
        names = [*(operand.node for operand in before), *nodes.controls(name)]
        for control in nodes.controls(name):
            nodes.require(control, f"node `{name}` ({nodes.operator(name)}): ")
        waiting += [(one, False) for one in reversed(names) if one in nodes]
    return order
