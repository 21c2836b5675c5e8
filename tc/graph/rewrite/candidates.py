"""``Candidates``: which rules may fit a node, by its kind and those of its operands: most need not be tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

from tc.graph.ir.nodes import Call, Node, View
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.net import Net
from tc.graph.rewrite.pattern import Any, Constant, Formula, Looked, Made, Pattern
from tc.graph.rewrite.rule import Rule

# What a pattern asks of a node: the expression of a pointwise operator, the class of another one or of a view; None of
# a node of another sort.
_Kind: TypeAlias = str | type | None
# What it asks of a value: whether its contents are known, and what makes it.
_Operand: TypeAlias = tuple[bool, _Kind]


class Candidates:
    """The rules by kinds of nodes, as far as these were asked for."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules: Final = tuple(rules)
        self._known: Final[dict[tuple[_Kind, tuple[_Operand, ...]], tuple[Rule, ...]]] = {}

    def of(self, net: Net, node: Node) -> tuple[Rule, ...]:
        """Those that may fit a node, in their order."""
        kind, operands = _kind(node), tuple(_operand(net, name) for name in node.operands)
        found = self._known.get((kind, operands))
        if found is None:
            found = tuple(rule for rule in self._rules if _node_may_fit(rule.pattern, kind, operands))
            self._known[kind, operands] = found
        return found


def _kind(node: Node | None) -> _Kind:
    match node:
        case Call(operator=Pointwise() as operator):
            return operator.expression
        case Call(operator=operator):
            return type(operator)
        case View(how=how):
            return type(how)
        case _:
            return None


def _operand(net: Net, name: str) -> _Operand:
    return net.contents(name) is not None, _kind(net.maker(name))


def _node_may_fit(pattern: Pattern, kind: _Kind, operands: tuple[_Operand, ...]) -> bool:
    match pattern:
        case Any():
            return True
        case Constant():
            return False
        case Made(operands=wanted) | Formula(operands=wanted):
            if len(wanted) != len(operands):
                return False
        case Looked(operand=operand):
            wanted = (operand,)
        case _:
            assert_never(pattern)
    return _made_as(pattern, kind) and all(map(_may_fit, wanted, operands))


def _may_fit(pattern: Pattern, operand: _Operand) -> bool:
    known, kind = operand
    match pattern:
        case Any():
            return True
        case Constant():
            return known
        case Made() | Formula() | Looked():
            return _made_as(pattern, kind)
        case _:
            assert_never(pattern)


def _made_as(pattern: Made | Formula | Looked, kind: _Kind) -> bool:
    """Whether a node of a kind may be what a pattern has at its root."""
    match pattern:
        case Made(operator=wanted):
            made = Pointwise if isinstance(kind, str) else kind
            return made is not None and issubclass(made, wanted)
        case Formula(expression=expression):
            return kind == expression
        case Looked(how=how):
            return isinstance(kind, type) and issubclass(kind, how)
        case _:
            assert_never(pattern)
