"""Loop-invariant reads on a condition, which are loaded before a loop over lanes.

Compilers hoist what every iteration loads.  What only some load might fault where the others are, as far as they know,
so GCC 12 makes no lanes of a loop with ``x(i) > 0 ? x(i) : w(c) * x(i)``.  Where an element is in the memory of its
tensor for all values of the loops around, it is loaded once before the loop, whether an iteration needs it or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from tc.base.frozen import frozen
from tc.language.program.guards import guarded_reads
from tc.language.program.program import Read
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.offsets import Arguments, LinearForm
from tc.polyhedral.analysis.ranges import Ranges, range_of
from tc.polyhedral.analysis.strides import element_offset
from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    Scheduled,
    StatementBody,
    leaves,
    variables,
)


@frozen
class HoistedRead:
    """An element of a tensor that the variable ``name`` has; ``read`` of ``instance`` is a read of it."""

    name: str
    instance: Scheduled
    read: Read
    offset: LinearForm


def held_by(reads: Sequence[HoistedRead], tensor: str, offset: LinearForm) -> str | None:
    """The name of the variable that has an element; None where there is none."""
    return next((own.name for own in reads if own.read.tensor == tensor and own.offset == offset), None)


def hoisted_reads(
    loop: Loop,
    bodies: Mapping[str, StatementBody],
    layouts: Mapping[str, Layout],
    sizes: Sizes,
    ranges: Ranges,
    known: Sequence[HoistedRead],
) -> tuple[HoistedRead, ...]:
    """``known`` and the reads in a loop to load before it, each element once.

    ``ranges``: of the variables around the loop.
    """
    instances = [leaf for leaf in leaves(loop.body) if isinstance(leaf, Scheduled)]
    written = {bodies[instance.statement].target for instance in instances}
    found = list(known)
    for instance in instances:
        body = bodies[instance.statement]
        arguments = dict(zip(body.iterators, instance.arguments, strict=True))
        for read in _on_condition(body):
            if read.tensor in written:
                continue
            offset = _offset(read, layouts[read.tensor], arguments, sizes, ranges)
            if offset is None or not variables(offset.expression()) <= ranges.keys():
                continue
            if held_by(found, read.tensor, offset) is None:
                found.append(HoistedRead(f"hoisted{len(found)}", instance, read, offset))
    return tuple(found)


def _on_condition(body: StatementBody) -> Iterator[Read]:
    """What not every instance reads."""
    reads = list(guarded_reads(body.value))
    always = {own.read for own in reads if not own.guards}
    yield from (own.read for own in reads if own.guards and own.read not in always)


def _offset(read: Read, layout: Layout, arguments: Arguments, sizes: Sizes, ranges: Ranges) -> LinearForm | None:
    """Where the element is; None where that may be outside of the memory of the tensor, as far as ranges say.

    isl divides what is not negative where the instance runs, and may be elsewhere.
    """
    offset = None if layout.extents else element_offset(read.subscripts, layout, arguments, sizes, ranges)
    if offset is None or not _divides_safely(offset.expression(), ranges):
        return None
    values = range_of(offset.expression(), ranges)
    return offset if layout.offsets.start <= values.least <= values.most < layout.offsets.stop else None


def _divides_safely(expression: IndexExpression, ranges: Ranges) -> bool:
    """Whether an expression has its range for all values of the variables, not only where isl has it computed."""
    match expression:
        case IndexLiteral() | IndexVariable():
            return True
        case IndexOperation(IndexOperator.EXACT_DIVIDE):
            return False
        case IndexOperation(operator, operands):
            divided = operator in (IndexOperator.NONNEGATIVE_DIVIDE, IndexOperator.NONNEGATIVE_REMAINDER)
            if divided and range_of(operands[0], ranges).least < 0:
                return False
            return all(_divides_safely(operand, ranges) for operand in operands)
        case _:
            assert_never(expression)
