"""Statements that are computed once more for one of their readers, so that their results need not be kept until then.

This proposes; ``tc.polyhedral.proof.rewrites.verify_recomputed`` says whether readers find what they found before, and
``tc.polyhedral.proof.rewrites.verify_hoisted`` of copies whether they hold what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace

from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.program.program import DerivedOrigin, IteratorReference, Read, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.chained import Recomputed
from tc.polyhedral.ir.hoisted import Hoisted


def recompute(specialization: Specialization, wanted: Items[Recomputed]) -> Iterator[tuple[Specialization, Recomputed]]:
    """The program with one more statement computed again."""
    for made in wanted:
        specialization = _recomputed(specialization, made)
        yield specialization, made


def handed_over(specialization: Specialization, totals: Items[str]) -> Iterator[tuple[Specialization, Hoisted]]:
    """The program in which these statements read partial results from a copy: those stay in registers until then."""
    for name in totals:
        specialization, made = _with_copy(specialization, name)
        yield specialization, made


def _with_copy(specialization: Specialization, name: str) -> tuple[Specialization, Hoisted]:
    program = specialization.program
    old = next(own for own in program.statements if own.name == name)
    value = old.value
    assert isinstance(value, Read), "it combines partial results"
    tensor = program.tensor(value.tensor)
    made = fresh_name(f"{name}_handed", {own.name for own in program.statements})
    copy = fresh_name(f"{tensor.name}_handed", {own.name for own in program.tensors})
    origin = DerivedOrigin("partial results for other threads", old.origin)
    place = tuple(IteratorReference(own.name) for own in old.iterators)
    making = replace(old, name=made, target=copy, subscripts=place, reduction=None, initialize=False, origin=origin)
    reading = replace(old, value=Read(copy, place, value.type))
    statements = (own for s in program.statements for own in ((making, reading) if s.name == name else (s,)))
    layout = specialization.layouts[tensor.name]
    changed = replace(
        specialization,
        program=replace(
            program, statements=tuple(statements), tensors=(*program.tensors, replace(tensor, name=copy, origin=origin))
        ),
        layouts={**specialization.layouts, copy: layout},
    )
    return changed, Hoisted(name, made, copy)


def _recomputed(specialization: Specialization, made: Recomputed) -> Specialization:
    program = specialization.program
    old = next(own for own in program.statements if own.name == made.statement)
    tensor = program.tensor(old.target)
    origin = DerivedOrigin("computed once more", old.origin)
    copy = replace(old, name=made.made, target=made.tensor, origin=origin)
    names = {old.target: made.tensor}
    statements = list[Statement]()
    for own in program.statements:
        reader = own.name == made.reader
        statements.append(map_statement(own, lambda value: rename(value, names, {})) if reader else own)
        statements += [copy] if own.name == made.statement else []
    tensors = (*program.tensors, replace(tensor, name=made.tensor, origin=origin))
    return replace(
        specialization,
        program=replace(program, statements=tuple(statements), tensors=tensors),
        layouts={**specialization.layouts, made.tensor: specialization.layouts[old.target]},
    )
