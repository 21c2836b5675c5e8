"""Patterns: what a rule matches, as data."""

from __future__ import annotations

from typing import TypeAlias, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.nodes import Call, Node, Operator, View
from tc.graph.ir.values import Value
from tc.graph.ir.views import Viewing
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.net import Net


@frozen
class Any:
    """Any value; the same one wherever the name stands."""

    name: str


@frozen
class Constant:
    """A value whose contents are known."""

    name: str


@frozen
class Made:
    """The result of an operator of a class.  ``name``: of the node.  ``once``: nothing else uses the result."""

    name: str
    operator: type[Operator]
    operands: tuple[Pattern, ...]
    once: bool = False


@frozen
class Formula:
    """The result of a pointwise operator with this expression, whatever it is cast to; ``type`` None is any."""

    expression: str
    operands: tuple[Pattern, ...]
    once: bool = False


@frozen
class Looked:
    """A view of a kind.  ``name``: of the node."""

    name: str
    how: type[Viewing]
    operand: Pattern
    once: bool = False


Pattern: TypeAlias = Any | Constant | Made | Formula | Looked


class Match:
    """Values and nodes by the names of a pattern; ``root`` is the node that is replaced."""

    def __init__(self, net: Net, root: Node) -> None:
        self.net = net
        self.root = root
        self.values: dict[str, Value] = {}
        self.nodes: dict[str, Node] = {}

    @property
    def result(self) -> Value:
        """The only result of the root."""
        return self.net.value(self.root.results[0])

    def array(self, name: str) -> np.ndarray:
        """The contents of a constant."""
        found = self.net.constant(self.values[name].name)
        assert found is not None
        return found

    def call(self, name: str) -> Call:
        """A node that is a call."""
        found = self.nodes[name]
        assert isinstance(found, Call)
        return found

    def view(self, name: str) -> View:
        """A node that is a view."""
        found = self.nodes[name]
        assert isinstance(found, View)
        return found


def matched(net: Net, root: Node, pattern: Pattern) -> Match | None:
    """The match at a node; None if there is none."""
    found = Match(net, root)
    if len(root.results) != 1:
        return None
    fits = isinstance(pattern, Any) or _node_fits(found, root, pattern)
    return found if fits else None


def _fits(match: Match, name: str, pattern: Pattern) -> bool:
    match pattern:
        case Any(own):
            value = match.net.value(name)
            return match.values.setdefault(own, value).name == name
        case Constant(own):
            if match.net.contents(name) is None:
                return False
            return match.values.setdefault(own, match.net.value(name)).name == name
        case Made() | Formula() | Looked():
            maker = match.net.maker(name)
            if maker is None or len(maker.results) != 1 or (pattern.once and match.net.uses(name) != 1):
                return False
            return _node_fits(match, maker, pattern)
        case _:
            assert_never(pattern)


def _node_fits(match: Match, node: Node, pattern: Pattern) -> bool:
    match pattern, node:
        case Made(name, kind, operands), Call(operator=operator) if isinstance(operator, kind):
            match.nodes[name] = node
            return _all_fit(match, node, operands)
        case Formula(expression, operands), Call(operator=Pointwise() as operator):
            if operator.expression != expression:
                return False
            # A cast to another type is more than the formula.
            own = match.net.value(node.results[0]).type
            same = all(match.net.value(name).type is own for name in node.operands)
            return same and _all_fit(match, node, operands)
        case Looked(name, how, operand), View():
            match.nodes[name] = node
            return isinstance(node.how, how) and _fits(match, node.operand, operand)
        case _:
            return False


def _all_fit(match: Match, node: Node, operands: tuple[Pattern, ...]) -> bool:
    if len(node.operands) != len(operands):
        return False
    return all(_fits(match, name, pattern) for name, pattern in zip(node.operands, operands, strict=True))
