"""Pointwise temporaries become part of the sum that reads them: nothing is stored between the one and the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tc.language.lower.assemble import in_order_of_appearance
from tc.language.program.program import (
    Cast,
    Expression,
    IteratorReference,
    Program,
    Read,
    Role,
    Statement,
    in_terms_of,
    reads_in,
    rebuild,
    touches,
    walk,
)

# Parts of a term: each use of a temporary repeats what it is computed from.
_MOST_PARTS: Final = 200


def inlined(program: Program) -> Program:
    """The program in which each instance of a reduction computes itself what it alone reads."""
    found: tuple[int, int] | None = _pair(program)
    while found is not None:
        program = _without(program, *found)
        found = _pair(program)
    return program


def _pair(program: Program) -> tuple[int, int] | None:
    """The places of a statement and of the only one that reads what it writes; None if there are no such."""
    types = {tensor.name: tensor.type for tensor in program.tensors if tensor.role is Role.TEMPORARY}
    for at, own in enumerate(program.statements):
        if own.target not in types or types[own.target].is_half or not _is_plain(own) or own.reduction is not None:
            continue
        users = [n for n, other in enumerate(program.statements) if n != at and _mentions(other, own.target)]
        if len(users) == 1 and users[0] > at and _fits(program, at, users[0]):
            return at, users[0]
    return None


def _mentions(statement: Statement, tensor: str) -> bool:
    """Whether a statement writes a tensor, or reads it anywhere."""
    bounds = (bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end))
    asked = (*statement.conditions, *statement.required, *statement.distinct, *statement.counts, *bounds)
    return touches(statement, tensor) or any(read.tensor == tensor for part in asked for read in reads_in(part))


def _is_plain(statement: Statement) -> bool:
    """Whether a statement has an instance for each value of its iterators, and no order among them."""
    special = statement.blocks or statement.conditions or statement.required or statement.counts or statement.distinct
    return not special and statement.owned is None


def _fits(program: Program, at: int, user: int) -> bool:
    own, reader = program.statements[at], program.statements[user]
    names = _names(own.subscripts)
    if names is None or len(names) != len(own.iterators) or not _is_plain(reader) or reader.reduction is None:
        return False
    used = {read.tensor for read in reads_in(own.value)}
    changed = {statement.target for statement in program.statements[at + 1 : user + 1]}
    if used & changed or reader.target == own.target or any(own.target == r.tensor for r in _placing(reader)):
        return False
    ranges = {iterator.name: iterator for iterator in own.iterators}
    theirs = {iterator.name: iterator for iterator in reader.iterators}
    reads = [read for read in reads_in(reader.value) if read.tensor == own.target]
    for read in reads:
        found = _names(read.subscripts)
        if found is None or set(found) != set(theirs):
            return False
        for mine, other in zip(names, found, strict=True):
            if (ranges[mine].begin, ranges[mine].end) != (theirs[other].begin, theirs[other].end):
                return False
    parts = sum(1 for _ in walk(own.value)) * len(reads) + sum(1 for _ in walk(reader.value))
    return parts <= _MOST_PARTS


def _placing(statement: Statement) -> list[Read]:
    return [read for subscript in statement.subscripts for read in reads_in(subscript)]


def _names(subscripts: tuple[Expression, ...]) -> list[str] | None:
    """The iterators of subscripts that are iterators, each another one."""
    names = [own.name for own in subscripts if isinstance(own, IteratorReference)]
    return names if len(names) == len(subscripts) == len(set(names)) else None


def _without(program: Program, at: int, user: int) -> Program:
    own, reader = program.statements[at], program.statements[user]
    type = program.tensor(own.target).type
    value = own.value if own.value.type is type else Cast(own.value, type)
    names = _names(own.subscripts)
    assert names is not None

    def changed(expression: Expression) -> Expression:
        if isinstance(expression, Read) and expression.tensor == own.target:
            values: Mapping[str, Expression] = dict(zip(names, expression.subscripts, strict=True))
            return in_terms_of(value, values)
        return rebuild(expression, changed)

    statements = list(program.statements)
    statements[user] = in_order_of_appearance(replace(reader, value=changed(reader.value)))
    del statements[at]
    numbered = (replace(one, name=before.name) for one, before in zip(statements, program.statements, strict=False))
    tensors = tuple(tensor for tensor in program.tensors if tensor.name != own.target)
    return replace(program, statements=tuple(numbered), tensors=tensors)
