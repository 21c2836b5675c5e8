"""The subscripts of promoted elements that are further iterators of a statement.

Whoever puts them into loops (``tc.polyhedral.generate.localize``) and whoever proves what stands there asks for them
here.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from tc.polyhedral.ir.scop import ScopStatement


def local_subscripts(statement: ScopStatement) -> Iterator[isl.Map]:
    """``{ instance -> [subscript] }`` for every local subscript that is a further iterator of the statement, in order.

    Those of a copy follow from the subscripts of its instances, but for the slot.
    """
    further = len(statement.body.iterators) - statement.domain.dim(isl.dim_type.set)
    for access in statement.promoted:
        yield from access.subscripts[:further]
        further -= min(len(access.subscripts), further)


def local_places(statement: ScopStatement) -> Iterator[isl.Map]:
    """``{ instance -> [subscripts] }``: the same, those of each access together."""
    further = len(statement.body.iterators) - statement.domain.dim(isl.dim_type.set)
    for access in statement.promoted:
        width = access.place.dim(isl.dim_type.out)
        count = min(width, further)
        if count:
            yield access.place.project_out(isl.dim_type.out, count, width - count) if count < width else access.place
        further -= count
