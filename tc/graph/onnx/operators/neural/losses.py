"""Losses: negative logarithms of the probabilities of the classes that targets name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType, computation_type
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes, widened

_REDUCTIONS: Final = ("none", "sum", "mean")


def _negative_log_likelihood(operation: Operation) -> Sequence[Value]:
    return _loss(operation, probabilities=True)


def _softmax_cross_entropy(operation: Operation) -> Sequence[Value]:
    return _loss(operation, probabilities=False)


def _loss(operation: Operation, *, probabilities: bool) -> Sequence[Value]:
    """The loss of logarithms of ``probabilities``, or of scores, whose logarithms may be a result, too."""
    scores, targets, weights = operation.operand(0), operation.operand(1), operation.optional(2)
    reduction = operation.text("reduction", "mean")
    if reduction not in _REDUCTIONS:
        raise operation.error(f"`reduction` is {reduction!r}, and must be one of {', '.join(_REDUCTIONS)}")
    rank = len(scores.shape)
    if rank < 2 or len(targets.shape) != rank - 1:
        raise operation.error(
            f"the scores have {rank} dimensions, and the targets {len(targets.shape)}: all but the second"
        )
    names, extents = iterators(rank), sizes(rank)
    kept = [names[0], *names[2:]]
    target = access("target", kept)
    own = access("score", [names[0], target, *names[2:]])
    parameters = [
        parameter(scores.type, extents, "score"),
        parameter(targets.type, [extents[0], *extents[2:]], "target"),
        *([] if weights is None else [parameter(weights.type, [extents[1]], "weight")]),
    ]
    results, statements = ["Y"], []
    term = f"-{widened(own, scores.type)}"
    if not probabilities:
        statements += _logarithms(scores.type, names, kept)
        term = f"({access('normal', kept)} - {own})"
        if any(operation.results[1:2]):
            results.append("log_prob")
            statements.append(
                f"{access('log_prob', names)} = {scores.type}({access('score', names)} - {access('normal', kept)})"
            )
    statements += _reduced(operation, scores.type, term, target, kept, weights is not None, reduction)
    name = "nll_loss" if probabilities else "cross_entropy"
    given = [scores, targets] if weights is None else [scores, targets, weights]
    return operation.call(definition(name, parameters, results, statements), *given)


def _logarithms(type: ScalarType, names: Sequence[str], kept: Sequence[str]) -> list[str]:
    """What scores less are logarithms of probabilities: the logarithm of the sum of their exponentials."""
    score = widened(access("score", names), type)
    top, total = access("top", kept), access("total", kept)
    return [
        f"{top} max=! {score}",
        f"{total} +=! exp({score} - {top})",
        f"{access('normal', kept)} = {top} + log({total})",
    ]


def _reduced(
    operation: Operation, type: ScalarType, term: str, target: str, kept: Sequence[str], weighted: bool, reduction: str
) -> list[str]:
    """The terms by the weights of their classes; ignored targets have none."""
    wide, share = computation_type(type), f"weight({target})" if weighted else "1"
    value = f"{term} * {share}" if weighted else term
    if "ignore_index" in operation.attributes:
        ignored = f"{target} == {operation.integer('ignore_index')}"
        value, share = f"{ignored} ? 0 : {value}", f"{ignored} ? 0 : {share}"
    loss = access("loss", kept)
    statements = [f"{loss} = {value}"]
    if reduction == "none":
        return [*statements, f"{access('Y', kept)} = {type}({loss})"]
    statements.append(f"total_loss +=! {loss}")
    if reduction == "sum":
        return [*statements, f"Y = {type}(total_loss)"]
    statements.append(f"total_share +=! {wide}({share}) where exists {target}")
    return [*statements, f"Y = {type}(total_loss / total_share)"]


RULES: Final[dict[str, Rule]] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _softmax_cross_entropy,
}
