"""Proof of hoisted values: with what was computed once put back in its place, the statements are those of the program.

The statement that makes them stands in front of the one that reads them, and has its iterators, but for those that the
value does not depend on.  All of these have a value, and the program evaluates the value in every instance, so nothing
is evaluated that the program does not evaluate.  What it reads, the reading statement does not write.
"""

from __future__ import annotations

from dataclasses import replace

from tc.language.program.guards import guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Role,
    Statement,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.hoisted import Hoisted


def find_wrong_hoisting(before: Specialization, after: Specialization, done: Hoisted) -> Counterexample | None:
    """The first difference, or None."""
    statements = after.program.statements
    places = [n for n, own in enumerate(statements) if own.name == done.made]
    if len(places) != 1 or len(statements) <= places[0] + 1 or statements[places[0] + 1].name != done.statement:
        return Counterexample(Violation.REORDERED, f"{done.made} is not in front of {done.statement}")
    making, reading = statements[places[0] : places[0] + 2]
    old = next((own for own in before.program.statements if own.name == done.statement), None)
    if old is None or done.tensor in before.layouts or not _is_declared(after, making, done):
        return Counterexample(Violation.CHANGED, f"{done.tensor} is no tensor of its own")
    wrong = _wrong_value(making, reading, old, done)
    if wrong is not None:
        return wrong
    kept = tuple(own if own.name != done.statement else old for own in statements if own.name != done.made)
    tensors = tuple(own for own in after.program.tensors if own.name != done.tensor)
    layouts = {name: own for name, own in after.layouts.items() if name != done.tensor}
    others = (own for own in kept if own is not old)
    if any(read.tensor == done.tensor for own in others for part in _parts(own) for read in reads_in(part)):
        return Counterexample(Violation.CHANGED, f"{done.tensor} is read elsewhere")
    same = replace(after.program, statements=kept, tensors=tensors) == before.program and layouts == before.layouts
    return None if same else Counterexample(Violation.CHANGED, f"other statements or tensors than {done.statement}")


def _parts(statement: Statement) -> tuple[Expression, ...]:
    return (statement.value, *statement.subscripts, *statement.conditions, *statement.required)


def _is_declared(after: Specialization, making: Statement, done: Hoisted) -> bool:
    """Whether the tensor is a temporary of the value's type with an element for each instance that writes it."""
    extents = [own.end for own in making.iterators if own.begin == Literal(0, INDEX_TYPE)]
    shape = tuple(int(own.value) for own in extents if isinstance(own, Literal))
    if len(shape) != len(making.iterators) or making.target != done.tensor or not all(shape):
        return False
    type = making.value.type
    plain = Layout(type, shape, contiguous_strides(shape))
    tensor = after.program.tensor(done.tensor)
    declared = tensor.role is Role.TEMPORARY and tensor.type is type and not type.is_half
    places = tuple(IteratorReference(own.name) for own in making.iterators)
    return declared and after.layouts.get(done.tensor) == plain and making.subscripts == places


def _wrong_value(making: Statement, reading: Statement, old: Statement, done: Hoisted) -> Counterexample | None:
    """Whether the value in its place makes the statement of the program, which evaluates it in every instance."""
    wrong = Counterexample(Violation.CHANGED, f"what the instances of {done.statement} compute")
    plain = not (old.blocks or old.conditions or old.counts or old.atomic) and old.owned is None
    alone = making.reduction is None and not (making.conditions or making.blocks or making.required)
    if not plain or not alone or not set(making.iterators) <= set(old.iterators):
        return wrong
    sizes = [(own.begin, own.end) for own in old.iterators]
    # Each instance of what is made belongs to one of the program: all other iterators have a value.
    whole = all(begin == Literal(0, INDEX_TYPE) and isinstance(end, Literal) and end.value > 0 for begin, end in sizes)
    if not whole or iterators_in((making.value,)) - {own.name for own in making.iterators}:
        return wrong
    value = Read(done.tensor, making.subscripts, making.value.type)

    def restored(expression: Expression) -> Expression:
        return making.value if expression == value else rebuild(expression, restored)

    found = [own for own in guarded_reads(reading.value) if own.read.tensor == done.tensor]
    in_any_case = any(not own.guards for own in found) and all(own.read == value for own in found)
    if not in_any_case or replace(reading, value=restored(reading.value)) != old:
        return wrong
    reads = tuple(reads_in(making.value))
    if any(own.tensor in (old.target, done.tensor) for own in reads):
        return Counterexample(Violation.REORDERED, f"{done.statement} writes what {done.made} reads")
    return None
