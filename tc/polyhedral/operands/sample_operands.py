"""Copies of what products read every second element of, or fewer: strided convolutions of one element.

``y(n,f,h,w) +=! x(n,c,2*h,2*w) * k(f,c)`` reads a quarter of ``x``, for each of the filters again: vectors along ``w``
have gaps, and the rows of one step after the other lie far apart.  The copy ``x'(n,c,h,w) = x(n,c,2*h,2*w)`` is made
once.  Then it is a product of matrices, of elements side by side.

This proposes; ``tc.polyhedral.proof.rewrites.verify_copied_operands`` says whether each read finds what the program
reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from tc.language.algebra.rewriting import fresh_name
from tc.language.algebra.single_values import settled, single_values
from tc.language.program.affine_form import affine_form
from tc.language.program.program import Expression, IteratorReference, Read, Statement, iterators_in, reads_in
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.relaid import CopiedOperand
from tc.polyhedral.operands.copied import is_static, place_of, reads_alike, with_copy
from tc.polyhedral.schedule.scatter import length_of

# Fewer uses of each element, or fewer terms, are not worth a copy.
_LEAST_USES: Final = 16
_LEAST_STEPS: Final = 8


def sample_operands(specialization: Specialization) -> Iterator[tuple[Specialization, CopiedOperand]]:
    """The program with one more operand sampled, as often as there is one that gains by it."""
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for statement in specialization.program.statements:
        for read in dict.fromkeys(reads_in(statement.value)):
            steps = _steps(statement, read, specialization)
            if steps is not None and read.tensor not in aliased:
                found.setdefault((read.tensor, steps), []).append(statement.name)
    for (tensor, steps), readers in found.items():
        names = {own.name for own in specialization.program.tensors}
        order = tuple(range(len(steps)))
        made = CopiedOperand(tensor, fresh_name(f"{tensor}_sampled", names), order, steps, tuple(readers))
        place = place_of(specialization.program, made)
        if place is not None:
            specialization = with_copy(specialization, made, place)
            yield specialization, made


def _steps(statement: Statement, read: Read, specialization: Specialization) -> tuple[int, ...] | None:
    """How far the elements along each dimension are apart that a sum of products reads; None where it needs no copy."""
    plain = statement.reduction is not None and not (statement.blocks or ranges_in(statement.value))
    layout = specialization.layouts[read.tensor]
    if not plain or is_scatter(statement) or not is_static(layout) or read.tensor == statement.target:
        return None
    single = single_values(statement)
    steps = tuple(_step(settled(subscript, single)) for subscript in read.subscripts)
    if any(any(reads_in(subscript)) for subscript in read.subscripts):
        return None
    skips = any(step > 1 and stride == 1 for step, stride in zip(steps, layout.strides, strict=True))
    if not skips or not reads_alike(statement, read):
        return None
    lengths = {own.name: length_of(own) or 0 for own in statement.iterators}
    copied = math.prod(-(-extent // step) for extent, step in zip(layout.shape, steps, strict=True))
    uses = math.prod(lengths.values()) // max(1, copied)
    written = iterators_in(statement.subscripts)
    terms = math.prod(length for name, length in lengths.items() if name not in written)
    return steps if uses >= _LEAST_USES and terms >= _LEAST_STEPS else None


def _step(subscript: Expression) -> int:
    """Of ``n * i``, n; 1 of everything else."""
    form = affine_form(subscript)
    match list(form.factors.items()):
        case [(IteratorReference(), int() as step)] if form.constant == 0 and step > 1:
            return step
        case _:
            return 1
