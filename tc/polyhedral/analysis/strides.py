"""Strides: how far apart in memory neighbouring iterations access a tensor, for vectorization and tiling."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tc.language.isl.pieces import functions_of
from tc.language.program.affine_form import coefficient
from tc.language.program.program import (
    Expression,
    Read,
    iterators_in,
)
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.ir.loops import StatementBody


def iterator_of(function: isl.UnionPwAff, body: StatementBody) -> str | None:
    """The one iterator of the statement that a band member depends on; None for none or several."""
    found = functions_of(function)
    for piece in found:
        if piece.get_domain_space().get_tuple_name(isl.dim_type.set) == body.name:
            count = piece.dim(isl.dim_type.in_)
            used = [i for i in range(count) if piece.involves_dims(isl.dim_type.in_, i, 1)]
            return body.iterators[used[0]] if len(used) == 1 else None
    return None


def stride(subscripts: tuple[Expression, ...], layout: Layout, iterator: str) -> int | None:
    """Distance in elements between the elements of neighbouring iterations; None where it is not constant."""
    total = 0
    for subscript, step in zip(subscripts, layout.strides, strict=True):
        factor = coefficient(subscript, iterator)
        if factor is None:
            return None
        total += factor * step
    return total


def is_turned(read: Read, layout: Layout, iterator: str | None) -> bool:
    """Whether the iterator walks across the rows of a tensor, which another iterator goes along."""
    if iterator is None or stride(read.subscripts, layout, iterator) in (None, 0, 1):
        return False
    used = [iterators_in((subscript,)) for subscript in read.subscripts]
    names = frozenset().union(*used)
    # Every subscript has one of its own, so that nothing lies between the elements that are read.
    plain = all(len(own) <= 1 for own in used) and sum(map(len, used)) == len(names)
    return plain and any(stride(read.subscripts, layout, name) == 1 for name in names)


def scattered_accesses(body: StatementBody, layouts: Mapping[str, Layout], iterator: str) -> int:
    """How many accesses of the statement are neither contiguous nor constant along the iterator."""
    found = (stride(subscripts, layouts[tensor], iterator) for tensor, subscripts in accesses(body))
    return sum(step not in (0, 1) for step in found)
