"""Statements that write where the elements of other tensors say."""

from __future__ import annotations

import math

from tests.fuzz.body import Body
from tests.fuzz.gathers import INDEX_TYPES
from tests.fuzz.skeleton import clauses, draw_skeleton
from tests.fuzz.statements import FACTORS, numeric_type

_OPERATORS = ("+=!", "+=!", "*=!", "min=!", "max=!")


def scatter(body: Body) -> None:
    """``O(I(i), j) +=! f(i, j, k)``, with one index or two, on top of a value or not."""
    source = body.source
    skeleton = draw_skeleton(body, source.choice([1, 1, 2]))
    if skeleton is None or not skeleton.iterators:
        return
    iterators = list(skeleton.iterators)
    source.shuffle(iterators)
    through = iterators[: source.randint(1, min(2, len(iterators)))]
    kept = [iterator for iterator in iterators[len(through) :] if source.chance(0.5)]
    subscripts, extents = [i.name for i in kept], [i.end.value for i in kept]
    where = clauses(body, iterators)
    for _ in range(source.choice([1, 1, 1, 2])):
        extent = body.known_extent()
        if not extent.value:
            return
        type = source.choice([t for t in INDEX_TYPES if t.maximum >= extent.value])
        indices = body.add_input(type, [body.extent(i.end.value) for i in through], below=extent.value)
        place = source.randint(0, len(subscripts))
        position = f"{indices.name}({', '.join(i.name for i in through)})"
        subscripts.insert(place, position)
        extents.insert(place, extent.value)
        where.append(f"{position} in 0:{extent.text}")
    expressions = body.expressions(iterators)
    value = expressions.value(skeleton.terms, source.randint(0, 1))
    operator = source.choice(_OPERATORS)
    if operator == "*=!" and math.prod(i.length for i in iterators) > FACTORS:
        operator = "+=!"
    if operator in ("+=!", "*=!") and value.is_bool:
        value = expressions.cast(value, numeric_type(body))
    source.shuffle(where)
    body.write(body.fresh_target(), subscripts, operator, value, extents, where, expressions.read | skeleton.read)
    body.scatters += 1
