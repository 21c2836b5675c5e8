"""Which operands of a reduction are worth a packed copy whose elements the vector lanes find side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping

import islpy as isl

from tc.language.program import Read, guarded_reads, walk
from tc.language.specialization import Layout
from tc.polyhedral.loops import StatementBody
from tc.polyhedral.scop import ScopStatement
from tc.polyhedral.strides import stride

# Copying an element across memory costs about as much as this many multiply-adds in full vectors.
WORTH_COPYING = 16


def value_reads(body: StatementBody) -> list[Read]:
    """The reads of a statement's value, in the order of its access relations."""
    return [guarded.read for guarded in guarded_reads(body.value)]


def worth_packing(statement: ScopStatement, layouts: Mapping[str, Layout], lane: str) -> tuple[int, ...]:
    """Positions of the reads that lie across the lanes, can be packed, and are used often enough to pay for it."""
    if statement.body.reduction is None:
        return ()
    extents = _extents(statement)
    found: list[int] = []
    for position, read in enumerate(value_reads(statement.body)):
        steps = {name: stride(read.subscripts, layouts[read.tensor], name) for name in statement.body.iterators}
        gathers = any(isinstance(part, Read) for subscript in read.subscripts for part in walk(subscript))
        if steps[lane] in (None, 0, 1) or gathers or read.tensor == statement.body.target:
            continue
        uses = math.prod(extents[name] for name, step in steps.items() if step == 0 and name in extents)
        if uses >= WORTH_COPYING:
            found.append(position)
    return tuple(found)


def can_pack(statement: ScopStatement, position: int) -> bool:
    """Whether a read may go to a packed copy: it gathers nothing, and the statement does not write its tensor."""
    read = value_reads(statement.body)[position]
    gathers = any(isinstance(part, Read) for subscript in read.subscripts for part in walk(subscript))
    return not gathers and read.tensor != statement.body.target


def _extents(statement: ScopStatement) -> dict[str, int]:
    """Number of values of every iterator of the program's statement."""
    count = statement.domain.dim(isl.dim_type.set)
    return {
        name: int(statement.domain.dim_max_val(n).to_python()) - int(statement.domain.dim_min_val(n).to_python()) + 1
        for n, name in enumerate(statement.body.iterators[:count])
    }
