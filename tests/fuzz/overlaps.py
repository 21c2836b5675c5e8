"""Reductions into elements that several points of the left-hand side share: ``O(i + k) +=! X(i, k)``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tc.base.types import ScalarType
from tests.fuzz.body import Body
from tests.fuzz.model import Extent, Iterator, Term
from tests.fuzz.skeleton import clauses, draw_skeleton
from tests.fuzz.source import Source

_OPERATORS = ("+", "+", "+", "*", "min", "max")
_FACTORS = 40


@dataclass(frozen=True, slots=True)
class _Subscript:
    """One of a left-hand side, over all the values from 0 to below ``length``."""

    text: str
    length: int


def overlap(body: Body) -> None:
    """Sums of diagonals, overlapping windows, products of polynomials, remainders and quotients; with holes, too."""
    source = body.source
    skeleton = draw_skeleton(body, source.choice([1, 1, 2]))
    if skeleton is None or not skeleton.iterators:
        return
    iterators = list(skeleton.iterators)
    if any(i.length == 0 for i in iterators):
        return
    source.shuffle(iterators)
    kept = iterators[: source.randint(1, min(4, len(iterators)))]
    subscripts = _subscripts(source, list(kept))
    expressions = body.expressions(iterators)
    value = expressions.value(skeleton.terms, source.randint(0, 1))
    operator = source.choice(_OPERATORS)
    if operator == "*" and math.prod(i.length for i in iterators) > _FACTORS:
        operator = "+"
    if operator in "+*" and value.is_bool:
        value = expressions.cast(value, ScalarType.INT32)
    name, read = body.fresh_target(), expressions.read | skeleton.read
    texts, extents = [s.text for s in subscripts], [s.length for s in subscripts]
    where = clauses(body, iterators)
    if source.chance(0.2) and name not in read:
        # Every other element is written by another statement.
        axis = source.randrange(len(texts))
        texts[axis] = f"2 * ({texts[axis]})"
        others = [Iterator(i, Extent(0, "0"), Extent(n, str(n)), bound=False) for i, n in _named(body, extents)]
        odd = [f"2 * {i.name} + 1" if d == axis else i.name for d, i in enumerate(others)]
        extents[axis] *= 2
        filler = Term(f"{value.type.value}(1)", value.type, exact=True)
        body.write(name, texts, f"{operator}=!", value, extents, where, read)
        body.write(name, odd, "=", filler, extents, [i.clause for i in others])
        return
    body.write(name, texts, f"{operator}=!", value, extents, where, read)


def _named(body: Body, extents: list[int]) -> list[tuple[str, int]]:
    return list(zip(body.names.iterators(8), extents, strict=False))


def _subscripts(source: Source, left: list[Iterator]) -> list[_Subscript]:
    """All the iterators, in one subscript or two of them in one."""
    found: list[_Subscript] = []
    while left:
        first = left.pop()
        second = left.pop() if left and source.chance(0.75) else None
        found.append(_single(source, first) if second is None else _pair(source, first, second))
    return found


def _single(source: Source, i: Iterator) -> _Subscript:
    divisor = source.randint(1, min(4, i.length))
    forms = (
        _Subscript(i.name, i.length),
        _Subscript(f"{i.name} / {divisor}", (i.length - 1) // divisor + 1),
        _Subscript(f"{i.name} % {divisor}", divisor),
        _Subscript(f"{i.end.text} - 1 - {i.name}", i.length),
    )
    return source.choice(forms)


def _pair(source: Source, i: Iterator, j: Iterator) -> _Subscript:
    both = i.length + j.length - 1
    forms = [
        _Subscript(f"{i.name} + {j.name}", both),
        _Subscript(f"{i.name} - {j.name} + {j.end.text} - 1", both),
        _Subscript(f"max({i.name}, {j.name})", max(i.length, j.length)),
    ]
    step = source.randint(2, 3)
    if j.length >= step:
        forms += [_Subscript(f"{step} * {i.name} + {j.name}", step * (i.length - 1) + j.length)] * 2
    return source.choice(forms)
