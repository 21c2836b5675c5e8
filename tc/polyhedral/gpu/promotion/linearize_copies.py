"""Linearizes the copies of a tile: one iterator, the number of an element, replaces the subscripts.

Threads take the elements of a tile cyclically, however long its rows are.  The row follows from the number by division,
which isl would have to invert if the subscripts were kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import INDEX_TYPE, Binary, Expression, IteratorReference, Literal, in_terms_of
from tc.polyhedral.ir.scop import Scop, ScopStatement

NUMBER: Final = "number"


def linearize_copies(scop: Scop, copy: ScopStatement, extents: Items[int]) -> tuple[Scop, ScopStatement]:
    """The scop in which one element number replaces the last subscripts of a copy, in a box of these extents."""
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
    numbering = _numbering(copy.domain, depth, extents)
    (access,) = copy.promoted
    renamed = replace(
        copy,
        domain=numbering.of_copies(copy.domain),
        body=body,
        promoted=(
            replace(
                access,
                location=numbering.of_relation(access.location),
                element=numbering.of_relation(access.element),
            ),
        ),
    )
    statements = tuple(renamed if statement is copy else statement for statement in scop.statements)
    return replace(scop, statements=statements), renamed


def _subscripts(extents: Items[int]) -> list[Expression]:
    """The subscripts of an element as functions of its number."""
    number = IteratorReference(NUMBER)
    found: list[Expression] = []
    for dimension, extent in enumerate(extents):
        run = math.prod(extents[dimension + 1 :])
        own = number if run == 1 else Binary(BinaryOperator.DIVIDE, number, Literal(run, INDEX_TYPE), INDEX_TYPE)
        last = Binary(BinaryOperator.REMAINDER, own, Literal(extent, INDEX_TYPE), INDEX_TYPE)
        found.append(last if dimension else own)
    return found


@dataclass(frozen=True)
class _Numbering:
    """Copies in a box, and the copy with element numbers.

    ``subscripts``: ``{ copy[prefix, number] -> copy[prefix, subscripts] }``, with quotients.  The image under the
    inverse would have the subscripts as existentially quantified variables.
    """

    box: isl.Set
    numbers: isl.Set
    subscripts: isl.MultiAff

    def of_copies(self, copies: isl.Set) -> isl.Set:
        """The set of copies, by element number."""
        return copies.gist(self.box).preimage_multi_aff(self.subscripts).intersect(self.numbers)

    def of_relation(self, relation: isl.Map) -> isl.Map:
        """A relation of the copies, by element number."""
        renamed = relation.gist_domain(self.box).preimage_domain_multi_aff(self.subscripts)
        return renamed.intersect_domain(self.numbers)


def _numbering(copies: isl.Set, depth: int, extents: Items[int]) -> _Numbering:
    context, name = copies.get_ctx(), copies.get_tuple_name()
    box = isl.Set.universe(copies.get_space())
    subscripts: list[str] = []
    for dimension, extent in enumerate(extents):
        box = _bounded(box, depth + dimension, extent)
        own = f"floor({NUMBER} / {math.prod(extents[dimension + 1 :])})"
        subscripts.append(f"({own}) mod {extent}" if dimension else own)
    prefix = [f"p{n}" for n in range(depth)]
    text = f"{{ {name}[{', '.join([*prefix, NUMBER])}] -> {name}[{', '.join(prefix + subscripts)}] }}"
    function = isl.MultiAff.read_from_str(context, text)
    return _Numbering(box, _bounded(isl.Set.universe(function.get_domain_space()), depth, math.prod(extents)), function)


def _bounded(points: isl.Set, dimension: int, extent: int) -> isl.Set:
    """The points from 0 on, so many, in one dimension."""
    points = points.lower_bound_val(isl.dim_type.set, dimension, isl.Val.zero(points.get_ctx()))
    return points.upper_bound_val(isl.dim_type.set, dimension, isl.Val.int_from_si(points.get_ctx(), extent - 1))
