"""Proof of statements that are computed once more: their reader finds what it found before.

The copy stands right behind its statement, does the same with the same, into a temporary that nothing else writes and
its reader alone reads.  Of the tensor that the reader read before, the statement is the only one that writes it, and it
reads none of it, so that nothing of what it held before comes into either result.
"""

from __future__ import annotations

from dataclasses import replace

from tc.language.program.program import Expression, Read, Role, Statement, reads_in, rebuild
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.chained import Recomputed
from tc.polyhedral.ir.counterexample import Counterexample, Violation


def find_wrong_recomputation(before: Specialization, after: Specialization, done: Recomputed) -> Counterexample | None:
    """The first difference, or None."""
    statements = after.program.statements
    places = [n for n, own in enumerate(statements) if own.name == done.made]
    if len(places) != 1 or places[0] == 0 or statements[places[0] - 1].name != done.statement:
        return Counterexample(Violation.REORDERED, f"{done.made} is not behind {done.statement}")
    original, copy = statements[places[0] - 1 : places[0] + 1]
    if copy != replace(original, name=done.made, target=done.tensor):
        return Counterexample(Violation.CHANGED, f"what {done.made} computes")
    begins = original.reduction is None or original.initialize
    plain = not (original.blocks or original.atomic or original.counts or is_scatter(original))
    if not (begins and plain and original.owned is None):
        return Counterexample(Violation.CHANGED, f"{done.statement} goes on with what was there")
    if _uses(after, done.tensor) != {done.made, done.reader}:
        return Counterexample(Violation.CHANGED, f"{done.tensor} is used elsewhere")
    tensor = original.target
    writers = [own.name for own in statements if own.target == tensor]
    if writers != [original.name] or _reads(original, tensor):
        return Counterexample(Violation.CHANGED, f"{tensor} is written elsewhere")
    kind, aliased = before.program.tensor(tensor), {name for pair in before.signature.aliases for name in pair}
    fresh = all(own.name != done.tensor for own in before.program.tensors) and done.tensor not in before.layouts
    same = after.program.tensor(done.tensor) == replace(kind, name=done.tensor)
    if kind.role is not Role.TEMPORARY or tensor in aliased or not fresh or not same:
        return Counterexample(Violation.CHANGED, f"{done.tensor} is no temporary of its own")
    return _other_difference(before, after, done, tensor)


def _uses(after: Specialization, tensor: str) -> set[str]:
    return {own.name for own in after.program.statements if own.target == tensor or _reads(own, tensor)}


def _reads(statement: Statement, tensor: str) -> bool:
    parts = (statement.value, *statement.subscripts, *statement.conditions, *statement.required)
    others = (*statement.counts, *statement.distinct)
    bounds = (end for own in statement.iterators for end in (own.begin, own.end))
    return any(read.tensor == tensor for part in (*parts, *others, *bounds) for read in reads_in(part))


def _other_difference(
    before: Specialization, after: Specialization, done: Recomputed, tensor: str
) -> Counterexample | None:
    """Whether anything else differs, once the reader reads the tensor again."""
    kept = tuple(
        _reading(own, done.tensor, tensor) if own.name == done.reader else own
        for own in after.program.statements
        if own.name != done.made
    )
    tensors = tuple(own for own in after.program.tensors if own.name != done.tensor)
    layouts = {name: own for name, own in after.layouts.items() if name != done.tensor}
    restored = replace(after.program, statements=kept, tensors=tensors)
    alike = after.layouts.get(done.tensor) == before.layouts[tensor]
    same = alike and replace(after, program=restored, layouts=layouts) == before
    return None if same else Counterexample(Violation.CHANGED, f"other statements or tensors than {done.reader}")


def _reading(statement: Statement, old: str, new: str) -> Statement:
    """The statement that reads another tensor in its value."""

    def changed(expression: Expression) -> Expression:
        found = rebuild(expression, changed)
        return replace(found, tensor=new) if isinstance(found, Read) and found.tensor == old else found

    return replace(statement, value=changed(statement.value))
