"""Variables, and what assigns to them: the result of an assignment is the new value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator, Rule
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise

VARIABLES: Final = frozenset(("Variable", "VariableV2", "VarHandleOp"))
# These replace what a variable holds, which they do not read.
INITIAL: Final = frozenset(("Assign", "AssignVariableOp"))
# These have no results that another node could use.
NOTHING: Final = frozenset(("Assert", "Const", "NoOp", "Save", "SaveV2", *INITIAL))


def _first(operation: Operation) -> Sequence[Value]:
    return [operation.operands[0]]


def _update(expression: str) -> Rule:
    """A formula of what the variable holds, ``{0}``, and of further operands."""

    def rule(operation: Operation) -> Sequence[Value]:
        operands = operation.operands
        return [pointwise(operation.builder, "update", expression, operands, operands[0].type)]

    return rule


_UPDATES: Final = {
    "AssignAdd": Operator(_update("{0} + {1}"), 2),
    "AssignAddVariableOp": Operator(_update("{0} + {1}"), 2),
    "AssignSub": Operator(_update("{0} - {1}"), 2),
    "AssignSubVariableOp": Operator(_update("{0} - {1}"), 2),
    "ApplyGradientDescent": Operator(_update("{0} - {1} * {2}"), 3),
    "ResourceApplyGradientDescent": Operator(_update("{0} - {1} * {2}"), 3),
}
ASSIGNMENTS: Final = frozenset((*INITIAL, *_UPDATES))
OPERATORS: Final = {
    **_UPDATES,
    **dict.fromkeys(INITIAL, Operator(_first, 2)),
    **dict.fromkeys(VARIABLES, Operator(_first, 0)),
    "ReadVariableOp": Operator(_first, 1),
}
