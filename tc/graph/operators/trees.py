"""Decision trees: all rows go down all trees at once, a level a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import definition, parameter

# Comparisons of a feature with the number of a node, by ONNX's names; a leaf has none.
COMPARISONS: Final[Mapping[str, str]] = {
    "BRANCH_LEQ": "<=",
    "BRANCH_LT": "<",
    "BRANCH_GTE": ">=",
    "BRANCH_GT": ">",
    "BRANCH_EQ": "==",
    "BRANCH_NEQ": "!=",
}
LEAF: Final = "LEAF"


@frozen
class Node:
    """What a node compares with what, and the places of the nodes to which it leads; a leaf leads to itself.

    ``missing``: whether NaN leads to where the comparison holds.
    """

    mode: str
    feature: int
    split: float
    yes: int
    no: int
    missing: bool = False


@frozen
class Forest:
    """The nodes of all trees, and the places of their roots."""

    nodes: tuple[Node, ...]
    roots: tuple[int, ...]

    def depth(self, what: str) -> int:
        """Steps from the roots to the last leaf; GraphError where a node leads to none, or back to itself."""
        level = set(self.roots)
        for step in range(len(self.nodes) + 1):
            if not all(0 <= place < len(self.nodes) for place in level):
                raise GraphError(f"{what}: a node of a tree leads to a node that there is not")
            inner = [self.nodes[place] for place in level if self.nodes[place].mode != LEAF]
            if not inner:
                return step
            level = {place for node in inner for place in (node.yes, node.no)}
        raise GraphError(f"{what}: a node of a tree leads back to itself")


def leaves(builder: Builder, rows: Value, forest: Forest) -> Value:
    """The leaf at which each row ends in each tree: its place among the nodes."""
    nodes = forest.nodes
    used = [name for name in COMPARISONS if any(node.mode == name for node in nodes)]
    for node in nodes:
        if node.mode not in (*COMPARISONS, LEAF):
            known = ", ".join(COMPARISONS)
            raise GraphError(f"{builder.origin}: the comparison `{node.mode}` is not known; use {known}")
    real = np.float64 if rows.type is ScalarType.FLOAT64 else np.float32
    constants = {
        "feature": np.array([node.feature for node in nodes], np.int32),
        "split": np.array([node.split for node in nodes], real),
        "yes": np.array([node.yes for node in nodes], np.int32),
        "no": np.array([node.no for node in nodes], np.int32),
    }
    if len(used) > 1:
        constants["mode"] = np.array([used.index(n.mode) if n.mode in used else 0 for n in nodes], np.int8)
    holds = _chosen([f"x(b, t) {COMPARISONS[name]} split(P(b, t))" for name in used] or ["x(b, t) == 0"])
    if any(node.missing for node in nodes):
        constants["missing"] = np.array([node.missing for node in nodes], np.bool_)
        holds = f"({holds}) || x(b, t) != x(b, t) && missing(P(b, t))"
    statements = [
        "P(b, t) = root(t) where b in 0:B",
        f"for step in 0:{forest.depth(builder.origin)} {{",
        "    x(b, t) = X(b, feature(P(b, t)))",
        f"    P(b, t) = ({holds}) ? yes(P(b, t)) : no(P(b, t))",
        "}",
        "Y(b, t) = P(b, t)",
    ]
    values = {name: builder.constant(array, name) for name, array in constants.items()}
    root = builder.constant(np.array(forest.roots, np.int32), "root")
    parameters = [parameter(rows.type, ["B", "F"], "X"), parameter(root.type, ["T"], "root")]
    parameters += [parameter(value.type, ["N"], name) for name, value in values.items()]
    (found,) = builder.call(definition("leaves", parameters, ["Y"], statements), rows, root, *values.values())
    return found


def _chosen(conditions: Sequence[str]) -> str:
    """The condition that the mode of a node chooses."""
    found = conditions[-1]
    for place, condition in reversed(list(enumerate(conditions[:-1]))):
        found = f"mode(P(b, t)) == {place} ? {condition} : {found}"
    return found


def voted(builder: Builder, ends: Value, votes: np.ndarray, how: str) -> Value:
    """What the leaves say of each target, over all trees: their ``SUM``, ``AVERAGE``, ``MIN`` or ``MAX``.

    ``votes``: for each node and target a number.
    """
    operator = {"SUM": "+=!", "AVERAGE": "+=!", "MIN": "min=!", "MAX": "max=!"}[how]
    table = builder.constant(votes, "votes")
    total = "S(b, k) / T" if how == "AVERAGE" else "S(b, k)"
    statements = [f"S(b, k) {operator} votes(leaf(b, t), k)", f"Y(b, k) = {total}"]
    parameters = [parameter(ends.type, ["B", "T"], "leaf"), parameter(table.type, ["N", "K"], "votes")]
    (found,) = builder.call(definition("votes_of_trees", parameters, ["Y"], statements), ends, table)
    return found
