"""Statements that read where the elements of other tensors say."""

from __future__ import annotations

from tc.base.types import ScalarType
from tests.fuzz.body import Body, whole
from tests.fuzz.model import reading
from tests.fuzz.skeleton import clauses

INDEX_TYPES = (ScalarType.INT32, ScalarType.INT32, ScalarType.INT64, ScalarType.INT16, ScalarType.UINT8,
               ScalarType.INT8, ScalarType.UINT16, ScalarType.UINT32, ScalarType.UINT64)  # fmt: skip


def gather(body: Body) -> None:
    """``O(i, j) = X(I(i), j)``, or a sum over the gathered rows; the indices are a new argument or an old one."""
    source = body.source
    able = [t for t in body.readable() if t.extents and t.below is None and all(e.value for e in t.extents)]
    if not able:
        return
    tensor = source.choice(able)
    axis = source.randrange(len(tensor.extents))
    names = body.names.iterators(8)
    outer = [whole(names.pop(), body.extent(), bound=True) for _ in range(source.randint(0, 2))]
    type = source.choice([t for t in INDEX_TYPES if t.maximum >= tensor.extents[axis].value])
    indices = body.add_input(type, [i.end for i in outer], below=tensor.extents[axis].value)
    inner = [whole(names.pop(), extent, bound=True) for d, extent in enumerate(tensor.extents) if d != axis]
    subscripts = [i.name for i in inner]
    position = f"{indices.name}({', '.join(i.name for i in outer)})"
    subscripts.insert(axis, position)
    iterators = [*outer, *inner]
    if not body.fits(iterators):
        return
    expressions = body.expressions(iterators)
    value = expressions.value([reading(tensor, subscripts)], source.randint(0, 1))
    read = expressions.read | {tensor.name}
    source.shuffle(iterators)
    kept = iterators if source.chance(0.6) else source.some(iterators, 0.5)
    operator = (
        "=" if len(kept) == len(iterators) else source.choice(["min=!", "max=!"] if value.is_bool else ["+=!", "max=!"])
    )
    extents = [i.end.value for i in kept]
    where = clauses(body, iterators)
    body.write(body.fresh_target(), [i.name for i in kept], operator, value, extents, where, read)
