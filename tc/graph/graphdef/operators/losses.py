"""Softmax, and the cross entropy of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.values import Value
from tc.graph.operators.neural.normalizations import softmax
from tc.graph.operators.pointwise import broadcast_shape
from tc.graph.operators.texts import definition, parameter


def _softmax(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    if not operand.shape:
        raise operation.error("operand 0 must have a dimension")
    logarithm = operation.kind == "LogSoftmax"
    return [softmax(operation.builder, operand, [len(operand.shape) - 1], logarithm=logarithm)]


# The greatest logit of each row, and the sum of the exponentials, none of which overflows.
_ROWS: Final = ["M(b) max=! A(b, c)", "S(b) +=! exp(A(b, c) - M(b))"]


def _cross_entropy(operation: Operation) -> Sequence[Value | None]:
    logits, labels = operation.operand(0, rank=2), operation.operand(1, rank=2)
    shape = broadcast_shape([logits.shape, labels.shape], operation.node.place)
    operands = [operation.builder.expand(operand, shape) for operand in (logits, labels)]
    parameters = [parameter(operand.type, ["B", "C"], name) for operand, name in zip(operands, "AL", strict=True)]
    loss = [
        "T(b) +=! L(b, c) * (log(S(b)) - (A(b, c) - M(b)))",
        f"Y(b) = {logits.type}(T(b))",
    ]
    gradient = [f"Z(b, c) = {logits.type}(exp(A(b, c) - M(b)) / S(b) - L(b, c))"]
    return _wanted(operation, parameters, operands, loss, gradient)


def _sparse_cross_entropy(operation: Operation) -> Sequence[Value | None]:
    logits, labels = operation.operand(0, rank=2), operation.operand(1, rank=1)
    parameters = [parameter(logits.type, ["B", "C"], "A"), parameter(labels.type, ["B"], "L")]
    loss = [f"Y(b) = {logits.type}(log(S(b)) - (A(b, L(b)) - M(b)))"]
    gradient = [f"Z(b, c) = {logits.type}(exp(A(b, c) - M(b)) / S(b) - (L(b) == c ? 1 : 0))"]
    return _wanted(operation, parameters, [logits, labels], loss, gradient)


def _wanted(
    operation: Operation,
    parameters: Sequence[str],
    operands: Sequence[Value],
    loss: Sequence[str],
    gradient: Sequence[str],
) -> Sequence[Value | None]:
    """The loss of each row and its gradient, or the one of them that is used."""
    both = {0: ("Y", loss), 1: ("Z", gradient)}
    kept = [index for index in both if index in operation.wanted]
    statements = [*_ROWS, *(statement for index in kept for statement in both[index][1])]
    text = definition("cross_entropy", parameters, [both[index][0] for index in kept], statements)
    found = dict(zip(kept, operation.builder.call(text, *operands), strict=True))
    return [found.get(0), found.get(1)]


OPERATORS: Final = {
    "LogSoftmax": Operator(_softmax, 1),
    "Softmax": Operator(_softmax, 1),
    "SoftmaxCrossEntropyWithLogits": Operator(_cross_entropy, 2),
    "SparseSoftmaxCrossEntropyWithLogits": Operator(_sparse_cross_entropy, 2),
}
