"""Reductions over ranges that other tensors say."""

from __future__ import annotations

import math

from tests.fuzz.body import Body, whole
from tests.fuzz.gathers import INDEX_TYPES
from tests.fuzz.model import Extent
from tests.fuzz.skeleton import clauses, draw_skeleton
from tests.fuzz.statements import FACTORS, numeric_type

_OPERATORS = ("+=!", "+=!", "*=!", "min=!", "max=!")


def ranged(body: Body) -> None:
    """``O(i, k) +=! f(j, k) where j in R(i):R(i+1)``, or from 0 to a length."""
    source = body.source
    skeleton = draw_skeleton(body, source.choice([1, 1, 2]))
    if skeleton is None or not skeleton.iterators:
        return
    others = list(skeleton.iterators)
    source.shuffle(others)
    along = others.pop()
    able = [type for type in INDEX_TYPES if type.maximum > along.end.value]
    free = [n for n in body.names.iterators(8) if n not in {i.name for i in skeleton.iterators}]
    segments, pair = body.known_extent(), source.chance(0.6)
    row = whole(free[0], Extent(segments.value, segments.text), bound=True)
    if not able or not body.fits([*skeleton.iterators, row]):
        return
    extent = body.extent(segments.value + 1) if pair else segments
    bounds = body.add_input(source.choice(able), [extent], below=along.end.value + 1)
    end = f"{bounds.name}({row.name})"
    span = f"{end}:{bounds.name}({row.name} + 1)" if pair else f"0:{end}"
    kept = [row, *(iterator for iterator in others if source.chance(0.6))]
    expressions = body.expressions([*skeleton.iterators, row])
    value = expressions.value(skeleton.terms, source.randint(0, 1))
    operator = source.choice(_OPERATORS)
    if operator == "*=!" and math.prod(i.length for i in skeleton.iterators) > FACTORS:
        operator = "+=!"
    if operator in ("+=!", "*=!") and value.is_bool:
        value = expressions.cast(value, numeric_type(body))
    where = [f"{along.name} in {span}", *clauses(body, skeleton.iterators), row.clause]
    source.shuffle(where)
    source.shuffle(kept)
    read = expressions.read | skeleton.read | {bounds.name}
    names, extents = [i.name for i in kept], [i.end.value for i in kept]
    body.write(body.fresh_target(), names, operator, value, extents, where, read)
