"""A transposing copy loop, printed as one call that transposes square blocks in vector registers."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.codegen.index.indices import values_of
from tc.language.program.program import Read
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexVariable, Instance, Loop, LoopKind, StatementBody

_PLAIN = (LoopKind.SEQUENTIAL, LoopKind.VECTOR, LoopKind.REGISTER)
# No distances between rows.
_ALONG = (IndexLiteral(0), IndexLiteral(1))
# Of the vectors that every compiler has.
_LEAST_BYTES = 16


@frozen
class Transposition:
    """``to[c * to_step + r] = from[r * from_step + c]``, with ``r`` from the loop ``rows``, ``c`` from ``columns``."""

    rows: Loop
    columns: Loop
    from_step: IndexExpression
    to_step: IndexExpression


def copied(body: StatementBody, layouts: Mapping[str, Layout]) -> Read | None:
    """What the statement copies, if all it does is to copy a number to another tensor."""
    value = body.value
    if body.reduction is not None or not isinstance(value, Read) or value.tensor == body.target:
        return None
    types = {layouts[body.target].type, layouts[value.tensor].type, value.type}
    return value if types in ({ScalarType.FLOAT32}, {ScalarType.FLOAT64}, {ScalarType.INT32}) else None


def transposed_nest(loop: Loop) -> tuple[Loop, Loop, Instance] | None:
    """The loop, the one right inside it, and the instance inside that, where there is nothing else."""
    inner = loop.body
    if not isinstance(inner, Loop) or not isinstance(inner.body, Instance):
        return None
    if any(node.kind not in _PLAIN or node.step != 1 for node in (loop, inner)):
        return None
    if IndexVariable(loop.iterator) in (inner.lower, inner.upper):
        return None
    return loop, inner, inner.body


def transposition(first: Loop, second: Loop, source: LinearForm, target: LinearForm) -> Transposition | None:
    """How two loops turn rows into columns; None where they do not, or where neighbours are at no constant distance."""
    for rows, columns in ((first, second), (second, first)):
        along = (target.slope(rows.iterator), source.slope(columns.iterator))
        from_step, to_step = source.step(rows.iterator), target.step(columns.iterator)
        if along != (1, 1) or from_step is None or to_step is None:
            continue
        if from_step not in _ALONG and to_step not in _ALONG:
            return Transposition(rows, columns, from_step, to_step)
    return None


def transposition_width(found: Transposition, type: ScalarType, vector_bytes: int) -> int:
    """Rows and columns of the largest squares to turn: as many as there are, and as a vector has lanes."""
    least = _LEAST_BYTES // type.itemsize
    most = max(least, vector_bytes // type.itemsize)
    counts = [len(values_of(loop)) or most for loop in (found.rows, found.columns)]
    return max(least, 1 << (min(most, *counts).bit_length() - 1))
