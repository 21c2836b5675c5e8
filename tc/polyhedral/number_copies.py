"""Copies of a tile that are numbered row by row, one iterator in place of a subscript for every dimension.

Threads take the elements of a tile in turn, however long its rows are.  To say which row that is, a number is divided;
to say which number a row begins at, isl would have to invert that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.program import INDEX_TYPE, Binary, Expression, IteratorReference, Literal, in_terms_of
from tc.polyhedral.scop import Scop, ScopStatement

NUMBER: Final = "number"


def number_copies(scop: Scop, copy: ScopStatement, extents: Items[int]) -> tuple[Scop, ScopStatement]:
    """The scop with the last subscripts of a copy's instances, in a box of these extents, replaced by their number."""
    if len(extents) < 2:
        return scop, copy
    depth = copy.domain.dim(isl.dim_type.set) - len(extents)
    own, behind = copy.body.iterators[:depth], copy.body.iterators[depth + len(extents) :]
    values = dict(zip(copy.body.iterators[depth:], _subscripts(extents), strict=False))
    body = replace(
        copy.body,
        iterators=(*own, NUMBER, *behind),
        subscripts=tuple(in_terms_of(subscript, values) for subscript in copy.body.subscripts),
        value=in_terms_of(copy.body.value, values),
    )
    numbers = _numbers(copy.domain, depth, extents)
    (access,) = copy.promoted
    renamed = replace(
        copy,
        domain=copy.domain.apply(numbers),
        body=body,
        promoted=(
            replace(
                access,
                location=access.location.apply_domain(numbers),
                element=access.element.apply_domain(numbers),
            ),
        ),
    )
    statements = tuple(renamed if statement is copy else statement for statement in scop.statements)
    return replace(scop, statements=statements), renamed


def _subscripts(extents: Items[int]) -> list[Expression]:
    """The subscripts of the element with a number."""
    number = IteratorReference(NUMBER)
    found: list[Expression] = []
    for dimension, extent in enumerate(extents):
        run = math.prod(extents[dimension + 1 :])
        own = number if run == 1 else Binary(BinaryOperator.DIVIDE, number, Literal(run, INDEX_TYPE), INDEX_TYPE)
        last = Binary(BinaryOperator.REMAINDER, own, Literal(extent, INDEX_TYPE), INDEX_TYPE)
        found.append(last if dimension else own)
    return found


def _numbers(copies: isl.Set, depth: int, extents: Items[int]) -> isl.Map:
    """``{ copy[prefix, subscripts] -> copy[prefix, number] }``."""
    prefix, local = [f"p{n}" for n in range(depth)], [f"a{n}" for n in range(len(extents))]
    number = " + ".join(f"{math.prod(extents[n + 1 :])}*{a}" for n, a in enumerate(local))
    inside = " and ".join(f"0 <= {a} < {extent}" for a, extent in zip(local, extents, strict=True))
    text = f"{{ [{', '.join(prefix + local)}] -> [{', '.join([*prefix, number])}] : {inside} }}"
    name = copies.get_tuple_name()
    numbers = isl.Map.read_from_str(copies.get_ctx(), text)
    return numbers.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(isl.dim_type.out, name)
