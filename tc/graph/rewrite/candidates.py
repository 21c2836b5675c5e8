"""``Candidates``: which rules may fit a node, by its kind: most need not be tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.nodes import Call, Node, View
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.pattern import Any, Constant, Formula, Looked, Made, Pattern
from tc.graph.rewrite.rule import Rule


class Candidates:
    """The rules by kinds of nodes, as far as these were asked for."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules: Final = tuple(rules)
        self._known: Final[dict[object, tuple[Rule, ...]]] = {}

    def of(self, node: Node) -> tuple[Rule, ...]:
        """Those that may fit a node, in their order."""
        kind = _kind(node)
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = tuple(rule for rule in self._rules if _may_fit(rule.pattern, node))
        return found


def _kind(node: Node) -> object:
    """What the root of a pattern looks at."""
    match node:
        case Call(operator=Pointwise() as operator):
            return operator.expression
        case Call(operator=operator):
            return type(operator)
        case View(how=how):
            return type(how)
        case _:
            return None


def _may_fit(pattern: Pattern, node: Node) -> bool:
    match pattern, node:
        case Any(), _:
            return True
        case Constant(), _:
            return False
        case Made(operator=kind), Call(operator=operator):
            return isinstance(operator, kind)
        case Formula(expression=expression), Call(operator=Pointwise() as operator):
            return operator.expression == expression
        case Looked(how=kind), View(how=how):
            return isinstance(how, kind)
        case _:
            return False
