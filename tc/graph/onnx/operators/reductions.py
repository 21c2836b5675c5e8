"""Reductions over axes, and what normalizes along one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.reductions import reduced


def _reduction(operator: str, term: str = "{x}", result: str | None = None) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        axes = operation.axes(1, len(operand.shape))
        if not axes:
            axes = () if operation.integer("noop_with_empty_axes", 0) else tuple(range(len(operand.shape)))
        keep = bool(operation.integer("keepdims", 1))
        # `abs` of a type that is rounded is exact; sums of halves are held in float32.
        return [
            reduced(
                operation.builder,
                operation.kind.lower(),
                operand,
                axes,
                keep=keep,
                operator=operator,
                term=term,
                result=result,
            )
        ]

    return rule


def _log_sum_exp(operation: Operation) -> Sequence[Value]:
    from tc.graph.operators.texts import access, definition, iterators, parameter, sizes

    operand = operation.operand(0)
    rank = len(operand.shape)
    axes = operation.axes(1, rank)
    if not axes:
        axes = () if operation.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    names, extents = iterators(rank), sizes(rank)
    kept = [name for axis, name in enumerate(names) if axis not in axes]
    x, m, s = access("A", names), access("M", kept), access("S", kept)
    greatest, total = ("max=!", "+=!") if axes else ("=", "=")
    finite = f"{m} - {m} == 0 ? {m} : 0"  # what is infinite would give NaN
    statements = [
        f"{m} {greatest} {x}",
        f"{access('F', kept)} = {finite}",
        f"{s} {total} exp({x} - {access('F', kept)})",
        f"{access('Y', kept)} = {operand.type}(log({s}) + {access('F', kept)})",
    ]
    text = definition("logsumexp", [parameter(operand.type, extents, "A")], ["Y"], statements)
    found = operation.one(text, operand)
    if not operation.integer("keepdims", 1):
        return [found]
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(operand.shape))
    return [operation.builder.reshape(found, shape)]


BOOL: Final = ScalarType.BOOL
RULES: Final[dict[str, Rule]] = {
    "ReduceL1": _reduction("+=!", "abs({x})"),
    "ReduceL2": _reduction("+=!", "{x} * {x}", "sqrt({s})"),
    "ReduceLogSum": _reduction("+=!", "{x}", "log({s})"),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _reduction("max=!"),
    "ReduceMean": _reduction("+=!", "{x}", "{s} / {n}"),
    "ReduceMin": _reduction("min=!"),
    "ReduceProd": _reduction("*=!"),
    "ReduceSum": _reduction("+=!"),
    "ReduceSumSquare": _reduction("+=!", "{x} * {x}"),
}
