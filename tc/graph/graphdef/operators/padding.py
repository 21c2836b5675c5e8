"""Elements around a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.sizes import shape_text
from tc.graph.ir.values import Value
from tc.graph.operators.neural.padding import padded


def _pad(operation: Operation) -> Sequence[Value]:
    operand, counts = operation.operand(0), operation.sizes(1)
    if len(counts) != 2 * len(operand.shape) or any(isinstance(count, int) and count < 0 for count in counts):
        raise operation.error(
            f"paddings must be {len(operand.shape)} pairs of numbers from 0 on, and are {shape_text(counts)}"
        )
    value = operation.operand(2, rank=0) if len(operation.operands) > 2 else None
    return [padded(operation.builder, operand, counts[::2], counts[1::2], value=value)]


OPERATORS: Final = {"Pad": Operator(_pad, 2), "PadV2": Operator(_pad, 3)}
