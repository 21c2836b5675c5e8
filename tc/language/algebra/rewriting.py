"""Statements and expressions with other names and other expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from tc.language.algebra.extents import rename_extent
from tc.language.program.program import (
    Expression,
    IterationVariable,
    IteratorReference,
    Read,
    SizeReference,
    Statement,
    rebuild,
)


def fresh_name(name: str, taken: Collection[str]) -> str:
    """``name`` if it is free, else the first free one of ``name_1``, ``name_2``, ..."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def rename(expression: Expression, tensors: Mapping[str, str], iterators: Mapping[str, str]) -> Expression:
    """The expression with tensors and iterators renamed; names that are not mentioned stay."""
    match expression:
        case Read(tensor, subscripts, type):
            return Read(tensors.get(tensor, tensor), tuple([rename(s, tensors, iterators) for s in subscripts]), type)
        case IteratorReference(name):
            return IteratorReference(iterators.get(name, name))
        case SizeReference():
            return rename_extent(expression, tensors) or expression
        case _:
            return rebuild(expression, lambda child: rename(child, tensors, iterators))


def map_statement(statement: Statement, change: Callable[[Expression], Expression]) -> Statement:
    """The statement with ``change`` applied to every expression."""
    return replace(
        statement,
        iterators=tuple(IterationVariable(i.name, change(i.begin), change(i.end)) for i in statement.iterators),
        conditions=tuple(change(c) for c in statement.conditions),
        subscripts=tuple(change(s) for s in statement.subscripts),
        value=change(statement.value),
        required=tuple(r for r in map(change, statement.required) if isinstance(r, Read)),
        distinct=tuple(r for r in map(change, statement.distinct) if isinstance(r, Read)),
        counts=tuple(r for r in map(change, statement.counts) if isinstance(r, Read)),
        owned=None if (own := statement.owned) is None else replace(own, begin=change(own.begin), end=change(own.end)),
    )
