"""Scores of classes: what becomes of them, and which class they are for."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation
from tc.graph.operators.gathers import arg_reduced, gathered
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.texts import definition, parameter

# In the order of their numbers.
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_SOFTMAX: Final = (
    "M(b) max=! X(b, k)",
    "E(b, k) = {term}",
    "S(b) +=! E(b, k)",
    "Y(b, k) = {share}",
)


def post_transformed(operation: Operation, scores: Value, name: str) -> Value:
    """The scores after one of ``TRANSFORMS``."""
    builder = operation.builder
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return pointwise(builder, "logistic", "1 / (1 + exp(-{0}))", [scores], scores.type)
    if name == "PROBIT":
        return pointwise(builder, "probit", "normcdfinv({0})", [scores], scores.type)
    if name == "SOFTMAX":
        term, share = "exp(X(b, k) - M(b))", "E(b, k) / S(b)"
    elif name == "SOFTMAX_ZERO":  # scores of 0 stay 0
        term = "abs(X(b, k)) > 0.0000001 ? exp(X(b, k) - M(b)) : X(b, k) * exp(-M(b))"
        share = "S(b) == 0 ? 0.5 : E(b, k) / S(b)"
    else:
        raise operation.error(f"the transform `{name}` is not known; use {', '.join(TRANSFORMS)}")
    statements = [statement.format(term=term, share=share) for statement in _SOFTMAX]
    text = definition(name.lower(), [parameter(scores.type, ["B", "K"], "X")], ["Y"], statements)
    return operation.one(text, scores)


def both_classes(operation: Operation, scores: Value, rest: str) -> Value:
    """Scores of two classes for those of the second one, ``{x}`` in the formula of the first."""
    formula = f"j == 1 ? {{x}} : {rest}".format(x="X(b, 0)")
    statement = f"Y(b, j) = {formula} where j in 0:2"
    text = definition("both_classes", [parameter(scores.type, ["B", 1], "X")], ["Y"], [statement])
    return operation.one(text, scores)


def labels(operation: Operation, scores: Value, classes: tuple[int, ...]) -> Value:
    """The class with the greatest score of each row."""
    best = arg_reduced(operation.builder, scores, 1, greatest=True)
    if classes == tuple(range(len(classes))):
        return best
    return gathered(
        operation.builder, operation.builder.constant(np.array(classes, np.int64), "classes"), best, 0, "label"
    )


def rows_of(operation: Operation) -> Value:
    """The first operand as rows of floats; a single row where it has one dimension."""
    operand = operation.operand(0)
    if len(operand.shape) == 1:
        operand = operation.builder.reshape(operand, (1, *operand.shape))
    if len(operand.shape) != 2:
        raise operation.error(f"the features have {len(operand.shape)} dimensions; give rows of them")
    wanted = ScalarType.FLOAT64 if operand.type is ScalarType.FLOAT64 else ScalarType.FLOAT32
    return operand if operand.type is wanted else pointwise(operation.builder, "features", "{0}", [operand], wanted)
