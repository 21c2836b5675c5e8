"""Sums of products of bytes and of bfloat16, of which processors take several terms at a time."""

from __future__ import annotations

from tc.base.types import ScalarType
from tests.fuzz.body import Body, whole
from tests.fuzz.model import Term, reading
from tests.fuzz.skeleton import clauses

_BYTES = (ScalarType.INT8, ScalarType.UINT8)
_HALVES = (ScalarType.BFLOAT16,)
_SUMS = (ScalarType.BFLOAT16, ScalarType.FLOAT32)
# Steps and uses from which on it is worth words.
_STEPS = (15, 16, 17, 19, 20, 35)
_USES = (8, 9, 17)


def word_product(body: Body) -> None:
    """``O(m, n) +=! int32(A(m, k)) * int32(B(k, n))`` in any order of the dimensions, sometimes in batches.

    Or of bfloat16, in their own type or in float32.
    """
    source = body.source
    types, result = (_BYTES, ScalarType.INT32) if source.chance(0.6) else (_HALVES, source.choice(_SUMS))
    names = body.names.iterators(4)
    extents = [body.extent(source.choice(own)) for own in (_USES, _USES, _STEPS)]
    if source.chance(0.3):
        extents.append(body.extent(source.randint(1, 3)))
    m, n, k, *batches = (whole(name, extent, bound=True) for name, extent in zip(names, extents, strict=False))
    if not body.fits([m, n, k, *batches]):
        return
    terms: list[Term] = []
    for own in ([m, k, *batches], [k, n, *batches]):
        source.shuffle(own)
        tensor = body.add_input(source.choice(types), [iterator.end for iterator in own])
        terms.append(reading(tensor, [iterator.name for iterator in own]))
    kept = [m, n, *batches]
    source.shuffle(kept)
    product = " * ".join(term.text if term.type is result else f"{result}({term.text})" for term in terms)
    value = Term(product, result, exact=result is ScalarType.INT32)
    where = clauses(body, [*kept, k])
    read = frozenset(tensor.name for tensor in body.inputs[-2:])
    body.write(body.fresh_target(), [i.name for i in kept], "+=!", value, [i.end.value for i in kept], where, read)
