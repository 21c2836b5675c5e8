"""Loops over a row that a reduction has read before, as one loop: threads then have the same elements both times.

A group norm adds up ``x(n,g,d,h,w)`` along ``d``, ``h`` and ``w``, which go through memory one after the other and are
split as one loop, and then computes ``y(n,g,d,h,w)`` of it, with ``gamma(g,d)``.  Of ``y(n,g,r/(H*W),r/W%H,r%W)``, with
one loop over all of the row, each thread has the elements that it has added up.

This proposes; ``tc.polyhedral.proof.rewrites.verify_pulled`` says whether the instances are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from tc.language.algebra.rewriting import fresh_name, map_statement
from tc.language.program.program import (
    INDEX_TYPE,
    DerivedOrigin,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.analysis.reads import used_as_values
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.schedule.join_terms import with_statement
from tc.polyhedral.schedule.split import Walk, reads_of, walk_of

# Iterators with their values, outermost first.
Loops: TypeAlias = tuple[tuple[IterationVariable, range], ...]


def join_reread_rows(specialization: Specialization, least: int) -> Iterator[tuple[Specialization, PulledStatement]]:
    """The program with the loops of one more statement joined; ``least``: elements of a row that is worth it."""
    for name in [own.name for own in specialization.program.statements]:
        statement = next(own for own in specialization.program.statements if own.name == name)
        walk = _walk(statement, specialization)
        if walk is not None and walk.iterations >= least:
            changed, made = _joined(statement, walk)
            specialization = with_statement(specialization, changed)
            yield specialization, made


def _walk(statement: Statement, specialization: Specialization) -> Walk | None:
    """The loops of a statement over a row of what a reduction reads, if it writes such a row, too, and reads others."""
    plain = statement.reduction is None and not (statement.blocks or statement.conditions or statement.counts)
    if not plain or statement.owned is not None or is_scatter(statement):
        return None
    if any(read.tensor == statement.target for read in reads_in(statement.value)):
        return None
    bounds = iterators_in(end for own in statement.iterators for end in (own.begin, own.end))
    fixed = bounds | used_as_values(statement.value)
    for read in reads_of(statement):
        for walk in _rows(read, specialization):
            loops = _alike(statement, read, *walk)
            names = {own.name for own, _ in loops or ()}
            if loops is None or names & fixed:
                continue
            others = [own for own in reads_in(statement.value) if iterators_in(own.subscripts) & names]
            target = Read(statement.target, statement.subscripts, read.type)
            apart = not all(_goes_on(own, loops, specialization) for own in others)
            if apart and _goes_on(target, loops, specialization):
                return Walk(loops)
    return None


def _rows(read: Read, specialization: Specialization) -> Iterator[tuple[Read, Walk]]:
    """What reductions read of a tensor along several loops that go on in memory, one after the other."""
    for statement in specialization.program.statements:
        if statement.reduction is None:
            continue
        for other in reads_of(statement):
            if other.tensor != read.tensor:
                continue
            for iterator in statement.iterators:
                walk = walk_of(statement, iterator, specialization.layouts)
                if walk is not None and len(walk.loops) > 1:
                    yield other, walk


def _alike(statement: Statement, read: Read, other: Read, walk: Walk) -> Loops | None:
    """The loops of a statement that choose what those of a walk choose of the same tensor."""
    own = {i.name: i for i in statement.iterators}
    found = []
    for iterator, values in walk.loops:
        reference = IteratorReference(iterator.name)
        if reference not in other.subscripts:
            return None
        chosen = read.subscripts[other.subscripts.index(reference)]
        if not isinstance(chosen, IteratorReference):
            return None
        mine = own[chosen.name]
        if mine.begin != Literal(values.start, INDEX_TYPE) or mine.end != Literal(values.stop, INDEX_TYPE):
            return None
        found.append((mine, values))
    return tuple(found) if len({i.name for i, _ in found}) == len(found) else None


def _goes_on(read: Read, loops: Loops, specialization: Specialization) -> bool:
    """Whether the loops go through memory one after the other, element by element."""
    length = 1
    for iterator, values in reversed(loops):
        if stride(read.subscripts, specialization.layouts[read.tensor], iterator.name) != length:
            return False
        length *= len(values)
    return True


def _joined(statement: Statement, walk: Walk) -> tuple[Statement, PulledStatement]:
    """The statement with one iterator in the place of those of a walk."""
    (first, _), *others = walk.loops
    name = fresh_name("".join(own.name for own, _ in walk.loops), {own.name for own in statement.iterators})
    values = walk.values(IteratorReference(name))
    one = IterationVariable(name, Literal(0, INDEX_TYPE), Literal(walk.iterations, INDEX_TYPE))
    gone = {own.name for own, _ in others}
    changed = replace(
        map_statement(statement, lambda expression: in_terms_of(expression, values)),
        iterators=tuple(one if own.name == first.name else own for own in statement.iterators if own.name not in gone),
        origin=DerivedOrigin("a row that is read again, in one loop", statement.origin),
    )
    every = {own.name: values.get(own.name, IteratorReference(own.name)) for own in statement.iterators}
    return changed, PulledStatement(statement.name, every)
