"""Proof of transposed operands: with the copy taken out, the statements are those of the program, value by value.

The copy is made of all elements, once, outside of blocks; nothing writes the tensor behind it, nothing else writes the
copy, and nothing reads it before.  Each of its reads then finds the element with the same subscripts, in their order.
"""

from __future__ import annotations

from dataclasses import replace

from tc.language.program.program import (
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.transposed import TransposedOperand


def find_wrong_transposition(
    before: Specialization, after: Specialization, made: TransposedOperand
) -> Counterexample | None:
    """The first difference, or None."""
    whole = before.layouts[made.tensor]
    if sorted(made.order) != list(range(len(whole.shape))) or made.copy in before.layouts:
        return Counterexample(Violation.CHANGED, f"{made.order} is no order of the dimensions of {made.tensor}")
    wrong = _wrong_layout(whole, after.layouts[made.copy], made)
    if wrong is not None:
        return wrong
    if {name: own for name, own in after.layouts.items() if name != made.copy} != before.layouts:
        return Counterexample(Violation.CHANGED, "the elements of another tensor")
    copies = [n for n, own in enumerate(after.program.statements) if own.target == made.copy]
    if len(copies) != 1 or not _copies_all(after.program.statements[copies[0]], whole, made):
        return Counterexample(Violation.NOT_LOADED, f"{made.copy} is not a copy of all elements of {made.tensor}")
    earlier, later = after.program.statements[: copies[0]], after.program.statements[copies[0] + 1 :]
    inside = set(earlier[-1].blocks if earlier else ()) & set(later[0].blocks if later else ())
    if any(own.target == made.tensor for own in later) or inside:
        return Counterexample(Violation.REORDERED, f"{made.tensor} is written behind its copy")
    if any(read.tensor == made.copy for own in earlier for part in _parts(own) for read in reads_in(part)):
        return Counterexample(Violation.NOT_LOADED, f"{made.copy} is read before it is made")
    restored = (*earlier, *(_restored(own, made) for own in later))
    if restored != before.program.statements or not _same_tensors(before.program, after.program, made):
        return Counterexample(Violation.CHANGED, f"other statements or tensors than with {made.tensor} transposed")
    return None


def _parts(statement: Statement) -> tuple[Expression, ...]:
    return (statement.value, *statement.subscripts, *statement.conditions, *statement.required)


def _wrong_layout(whole: Layout, copy: Layout, made: TransposedOperand) -> Counterexample | None:
    if copy.type is not whole.type:
        return Counterexample(Violation.WRONG_TYPE, made.copy)
    if whole.extents or copy.extents or copy.shape != tuple(whole.shape[dimension] for dimension in made.order):
        return Counterexample(Violation.OUT_OF_BOUNDS, f"{made.copy} has another shape")
    held = 1
    for step, extent in sorted(zip(copy.strides, copy.shape, strict=True)):
        if extent > 1 and step < held:
            return Counterexample(Violation.OVERLAPPING, made.copy)
        held = step * extent if extent > 1 else held
    return None


def _copies_all(statement: Statement, whole: Layout, made: TransposedOperand) -> bool:
    ranges = {own.name: (own.begin, own.end) for own in statement.iterators}
    match statement.value:
        case Read(tensor, subscripts) if tensor == made.tensor:
            names = [own.name for own in subscripts if isinstance(own, IteratorReference)]
        case _:
            return False
    plain = len(set(names)) == len(subscripts) == len(whole.shape) == len(statement.iterators) and not statement.blocks
    return (
        plain
        and statement.subscripts == tuple(subscripts[dimension] for dimension in made.order)
        and statement.reduction is None
        and not (statement.conditions or statement.required or statement.distinct or statement.counts)
        and statement.owned is None
        and all(_is_whole(ranges.get(name), extent) for name, extent in zip(names, whole.shape, strict=True))
    )


def _is_whole(values: tuple[Expression, Expression] | None, extent: int) -> bool:
    match values:
        case Literal(begin), Literal(end):
            return (begin, end) == (0, extent)
        case _:
            return False


def _restored(statement: Statement, made: TransposedOperand) -> Statement:
    """The statement with reads of the tensor in place of those of the copy."""

    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        if not isinstance(found, Read) or found.tensor != made.copy:
            return found
        places = dict(zip(made.order, found.subscripts, strict=True))
        return replace(found, tensor=made.tensor, subscripts=tuple(places[n] for n in range(len(places))))

    return replace(statement, value=change(statement.value))


def _same_tensors(before: Program, after: Program, made: TransposedOperand) -> bool:
    copy = after.tensor(made.copy)
    others = tuple(own for own in after.tensors if own is not copy)
    rest = replace(after, tensors=before.tensors, statements=before.statements)
    return others == before.tensors and copy.role is Role.TEMPORARY and rest == before
