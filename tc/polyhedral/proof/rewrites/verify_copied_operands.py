"""Proof of copied operands: with the copy taken out, the statements are those of the program, value by value.

The copy is made of all elements, or of every n-th one along a dimension, once, outside of blocks; nothing writes the
tensor behind it, nothing else writes the copy, and nothing reads it before.  Each of its reads then finds the element
with the subscripts of the program, in their order, which are n times those of the copy where it has every n-th element.
An iterator that has one value is that value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc.language.algebra.single_values import single_values
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    in_terms_of,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.relaid import CopiedOperand


def find_wrong_copy(before: Specialization, after: Specialization, made: CopiedOperand) -> Counterexample | None:
    """The first difference, or None."""
    whole = before.layouts[made.tensor]
    if sorted(made.order) != list(range(len(whole.shape))) or made.copy in before.layouts:
        return Counterexample(Violation.CHANGED, f"{made.order} is no order of the dimensions of {made.tensor}")
    if len(made.steps) != len(whole.shape) or min(made.steps, default=1) < 1:
        return Counterexample(Violation.CHANGED, f"{made.steps} are no steps along the dimensions of {made.tensor}")
    wrong = _wrong_layout(whole, after.layouts[made.copy], made)
    if wrong is not None:
        return wrong
    if {name: own for name, own in after.layouts.items() if name != made.copy} != before.layouts:
        return Counterexample(Violation.CHANGED, "the elements of another tensor")
    copies = [n for n, own in enumerate(after.program.statements) if own.target == made.copy]
    if len(copies) != 1 or not _copies_all(after.program.statements[copies[0]], whole, made):
        return Counterexample(Violation.NOT_LOADED, f"{made.copy} is not a copy of the elements of {made.tensor}")
    earlier, later = after.program.statements[: copies[0]], after.program.statements[copies[0] + 1 :]
    inside = set(earlier[-1].blocks if earlier else ()) & set(later[0].blocks if later else ())
    if any(own.target == made.tensor for own in later) or inside:
        return Counterexample(Violation.REORDERED, f"{made.tensor} is written behind its copy")
    if any(read.tensor == made.copy for own in earlier for part in _parts(own) for read in reads_in(part)):
        return Counterexample(Violation.NOT_LOADED, f"{made.copy} is read before it is made")
    originals = {own.name: own for own in before.program.statements}
    restored = (*earlier, *(_restored(own, originals.get(own.name), made) for own in later))
    if restored != before.program.statements or not _same_tensors(before.program, after.program, made):
        return Counterexample(Violation.CHANGED, f"other statements or tensors than with {made.tensor} copied")
    return None


def _parts(statement: Statement) -> tuple[Expression, ...]:
    return (statement.value, *statement.subscripts, *statement.conditions, *statement.required)


def _wrong_layout(whole: Layout, copy: Layout, made: CopiedOperand) -> Counterexample | None:
    if copy.type is not whole.type:
        return Counterexample(Violation.WRONG_TYPE, made.copy)
    if whole.extents or copy.extents or copy.packed or copy.shape != made.shape(whole.shape):
        return Counterexample(Violation.OUT_OF_BOUNDS, f"{made.copy} has another shape")
    held = 1
    for step, extent in sorted(zip(copy.strides, copy.shape, strict=True)):
        if extent > 1 and step < held:
            return Counterexample(Violation.OVERLAPPING, made.copy)
        held = step * extent if extent > 1 else held
    return None


def _copies_all(statement: Statement, whole: Layout, made: CopiedOperand) -> bool:
    ranges = {own.name: (own.begin, own.end) for own in statement.iterators}
    match statement.value:
        case Read(tensor, subscripts, type) if tensor == made.tensor and type is whole.type:
            names = [_iterator(own, step) for own, step in zip(subscripts, made.steps, strict=True)]
        case _:
            return False
    plain = len(set(names)) == len(subscripts) == len(whole.shape) == len(statement.iterators) and not statement.blocks
    counts = dict(zip(made.order, made.shape(whole.shape), strict=True))
    return (
        plain
        and statement.subscripts == tuple(names[dimension] for dimension in made.order)
        and statement.reduction is None
        and not (statement.conditions or statement.required or statement.distinct or statement.counts)
        and statement.owned is None
        and not statement.atomic
        and all(own is not None and _is_whole(ranges.get(own.name), counts[n]) for n, own in enumerate(names))
    )


def _iterator(subscript: Expression, step: int) -> IteratorReference | None:
    """The iterator of which a subscript is that multiple."""
    form = affine_form(subscript)
    match list(form.factors.items()):
        case [(IteratorReference() as own, factor)] if form.constant == 0 and factor == step:
            return own
        case _:
            return None


def _is_whole(values: tuple[Expression, Expression] | None, extent: int) -> bool:
    match values:
        case Literal(begin), Literal(end):
            return (begin, end) == (0, extent)
        case _:
            return False


def _restored(statement: Statement, original: Statement | None, made: CopiedOperand) -> Statement:
    """The statement with reads of the tensor in place of those of the copy; ``original``: where these were."""
    reads = () if original is None else tuple(reads_in(original.value))
    single = single_values(statement)

    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        if not isinstance(found, Read) or found.tensor != made.copy or len(found.subscripts) != len(made.order):
            return found
        places = dict(zip(made.order, found.subscripts, strict=True))
        of_it = (own for own in reads if own.tensor == made.tensor and own.type is found.type)
        return next((own for own in of_it if _are_same(own.subscripts, places, made, single)), found)

    return replace(statement, value=change(statement.value))


def _are_same(
    subscripts: tuple[Expression, ...],
    places: Mapping[int, Expression],
    made: CopiedOperand,
    single: Mapping[str, Expression],
) -> bool:
    """Whether subscripts are the multiples of those of the copy, by dimension."""
    for dimension, (subscript, step) in enumerate(zip(subscripts, made.steps, strict=True)):
        if step == 1 and subscript == places[dimension]:
            continue
        wanted = affine_form(in_terms_of(subscript, single))
        if wanted != affine_form(in_terms_of(places[dimension], single)).times(step):
            return False
    return True


def _same_tensors(before: Program, after: Program, made: CopiedOperand) -> bool:
    copy = after.tensor(made.copy)
    others = tuple(own for own in after.tensors if own is not copy)
    rest = replace(after, tensors=before.tensors, statements=before.statements)
    return others == before.tensors and copy.role is Role.TEMPORARY and rest == before
