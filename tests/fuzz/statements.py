"""The kinds of statements: each adds one or more of them to a definition, or nothing if it finds no room."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tc.base.types import ScalarType
from tc.language.draft.typed import Strength
from tests.fuzz.body import Body, whole
from tests.fuzz.expressions import Expressions
from tests.fuzz.model import Extent, Iterator, Tensor, Term, reading
from tests.fuzz.skeleton import broadcast, clauses, draw_skeleton, narrowed

_OPERATORS = ("+", "+", "+", "*", "min", "max")
FACTORS = 40


def _extents(iterators: Sequence[Iterator]) -> list[int]:
    return [i.end.value for i in iterators]


def _names(iterators: Sequence[Iterator]) -> list[str]:
    return [i.name for i in iterators]


def _number(body: Body, expressions: Expressions, term: Term) -> Term:
    """The term, cast if it is bool: sums and products need numbers."""
    return expressions.cast(term, numeric_type(body)) if term.is_bool else term


def numeric_type(body: Body) -> ScalarType:
    """A type of the program that is no bool."""
    numbers = [t for t in body.types if t is not ScalarType.BOOL]
    return body.source.choice(numbers or [ScalarType.INT32])


def elementwise(body: Body) -> None:
    """``O(j, i) = f(A(i, j), B(j))``, often transposed, sometimes broadcast."""
    skeleton = draw_skeleton(body, body.source.choice([0, 1, 1, 2, 3]))
    if skeleton is None:
        return
    iterators = list(skeleton.iterators)
    extra = broadcast(body, iterators) if not iterators or body.source.chance(0.15) else None
    if extra is not None:
        iterators.append(extra)
    expressions = body.expressions(iterators)
    value = expressions.value(skeleton.terms, body.source.randint(0, 3))
    if body.source.chance(0.5):
        body.source.shuffle(iterators)
    read = expressions.read | skeleton.read
    body.write(body.fresh_target(), _names(iterators), "=", value, _extents(iterators), clauses(body, iterators), read)


def reduction(body: Body) -> None:
    """``O(i) +=! A(i, k) * B(k)`` over any operator, from one iterator to all of them."""
    source = body.source
    skeleton = draw_skeleton(body, source.choice([1, 1, 2, 2, 3]))
    if skeleton is None or not skeleton.iterators:
        return
    iterators = list(skeleton.iterators)
    source.shuffle(iterators)
    count = source.randint(0, len(iterators) - 1)
    kept, reduced = iterators[:count], iterators[count:]
    if source.chance(0.25):
        reduced[0] = narrowed(body, reduced[0], kept)
    where = clauses(body, [*kept, *reduced])
    if source.chance(0.12):
        where.append(_condition(body, reduced, kept))
    expressions = body.expressions([*kept, *reduced])
    value = _product_or_any(body, expressions, skeleton.terms)
    operator = _operator(body, reduced)
    if operator in "+*":
        value = _number(body, expressions, value)
    read = expressions.read | skeleton.read
    body.write(body.fresh_target(), _names(kept), f"{operator}=!", value, _extents(kept), where, read)


def scan(body: Body) -> None:
    """``O(i, n) +=! A(j, n) where j in 0:i+1``, with any end of the range, or as a condition or a mask."""
    source = body.source
    skeleton = draw_skeleton(body, source.choice([1, 1, 2]))
    if skeleton is None or not skeleton.iterators:
        return
    others = list(skeleton.iterators)
    source.shuffle(others)
    along = others.pop()
    free = [name for name in body.names.iterators(8) if name not in _names(skeleton.iterators)]
    extents = [along.end, Extent((along.end.value + 1) // 2, f"({along.end.text} + 1) / 2")]
    growing = whole(free[0], source.choice(extents if along.end.value else extents[:1]))
    kept = [growing, *others[: source.randint(0, len(others))]]
    if not body.fits([*skeleton.iterators, growing]):
        return
    expressions = body.expressions(skeleton.iterators)
    value = expressions.value(skeleton.terms, source.randint(0, 1))
    operator = _operator(body, skeleton.iterators)
    if operator in "+*":
        value = _number(body, expressions, value)
    i, j, end = growing.name, along.name, along.end.text
    ranges = (f"0:{i} + 1", f"0:{i}", f"{i}:{end}", f"{i} + 1:{end}", f"0:{end}, {j} <= {i}", f"0:{end}, {j} > {i}")
    where = [growing.clause, f"{j} in {source.choice(ranges)}", *clauses(body, others)]
    source.shuffle(kept)
    read = expressions.read | skeleton.read
    body.write(body.fresh_target(), _names(kept), f"{operator}=!", value, _extents(kept), where, read)


def _operator(body: Body, reduced: Sequence[Iterator]) -> str:
    """Of a reduction; long products of floats overflow or vanish, depending on their order."""
    operator = body.source.choice(_OPERATORS)
    return "+" if operator == "*" and math.prod(i.length for i in reduced) > FACTORS else operator


def _product_or_any(body: Body, expressions: Expressions, terms: Sequence[Term]) -> Term:
    """Half of the time a plain product, which the oracle sums in another way."""
    if body.source.chance(0.5) and not any(term.is_bool for term in terms):
        value = terms[0]
        for term in terms[1:]:
            value = expressions.product(value, term)
        return value
    return expressions.value(terms, body.source.randint(0, 2))


def _condition(body: Body, reduced: Sequence[Iterator], kept: Sequence[Iterator]) -> str:
    """An affine condition that mentions a reduced iterator."""
    first = body.source.choice(list(reduced))
    second = body.source.choice([*reduced, *kept])
    size, width = body.known_extent(), body.source.randint(1, 5)
    forms = (
        f"{first.name} + {second.name} < {size.text}",
        f"{first.name} != {second.name}",
        f"2 * {first.name} >= {second.name} || {first.name} == 1",
        f"({first.name} + {second.name}) % 2 == 0",
        f"{first.name} - {second.name} in 0:{size.text}",
        f"{first.name} / 2 <= {second.name}",
        f"{first.name} - {second.name} in 0:{width}",
        f"{first.name} - 2 * {second.name} in 0:{width}",
    )
    return body.source.choice(forms)


def accumulate(body: Body) -> None:
    """A reduction on top of what a value holds already, or of what comes in through ``out=``."""
    source = body.source
    written = [value.tensor for value in body.values.values()]
    target = source.choice(written) if written and source.chance(0.7) else None
    skeleton = draw_skeleton(body, source.randint(1, 2), without=target.name if target else None)
    if skeleton is None:
        return
    names = [n for n in body.names.iterators(8) if n not in _names(skeleton.iterators)]
    if target is None:
        kept = list(skeleton.iterators[: source.randint(0, 2)])
    else:
        kept = []
        for extent in target.extents:
            same = [i for i in skeleton.iterators if i.end.value == extent.value and i not in kept]
            if not same and not names:
                return
            kept.append(source.choice(same) if same else whole(names.pop(), extent))
    iterators = [*kept, *(i for i in skeleton.iterators if i not in kept)]
    if not body.fits(iterators):
        return
    expressions = body.expressions(iterators, without=target.name if target else None)
    value = expressions.value(skeleton.terms, source.randint(0, 2))
    operator = _operator(body, iterators[len(kept) :])
    type = target.type if target is not None else numeric_type(body)
    if type is ScalarType.BOOL:
        operator = source.choice(["min", "max"])
    if value.type is not type or value.strength is not Strength.STRONG:
        if not type.is_floating and not expressions.may_jump(value):
            return
        value = expressions.cast(value, type)
    name = body.names.tensor() if target is None else target.name
    if target is None:
        body.incoming.add(name)
    read = expressions.read | skeleton.read
    body.write(name, _names(kept), f"{operator}=", value, _extents(kept), clauses(body, iterators), read)


def update(body: Body) -> None:
    """``T(i, j) = f(T(i, j), A(j))``: in place, a new version, or on what comes in through ``out=``."""
    source = body.source
    incoming = not body.values or source.chance(0.3)
    name = body.names.tensor() if incoming else source.choice(list(body.values))
    skeleton = draw_skeleton(body, source.randint(0, 2), without=name)
    if skeleton is None:
        return
    if incoming:
        iterators = list(skeleton.iterators)
        if not iterators:
            return
        type = body.type()
        body.incoming.add(name)
    else:
        target = body.values[name].tensor
        if not target.extents and skeleton.iterators:
            return
        iterators, type = _matched(body, skeleton.iterators, target.extents), target.type
        if not body.fits(iterators) or len(iterators) != len(target.extents):
            return
    own = reading(Tensor(name, type, (), exact=incoming or body.values[name].tensor.exact), _names(iterators))
    expressions = body.expressions(iterators, without=name)
    value = expressions.value([own, *skeleton.terms], source.randint(0, 1))
    if value.type is not type or value.strength is not Strength.STRONG:
        if not type.is_floating and not expressions.may_jump(value):
            return
        value = expressions.cast(value, type)
    read = expressions.read | skeleton.read
    body.write(name, _names(iterators), "=", value, _extents(iterators), clauses(body, iterators), read)


def _matched(body: Body, given: Sequence[Iterator], extents: Sequence[Extent]) -> list[Iterator]:
    """An iterator for every extent: the given ones where they fit, all of them used, else too many."""
    left = list(given)
    free = [name for name in body.names.iterators(8) if name not in _names(given)]
    found: list[Iterator] = []
    for extent in extents:
        same = [i for i in left if i.end.value == extent.value]
        if same:
            left.remove(same[0])
        found.append(same[0] if same else whole(free.pop(), extent))
    return [*found, *left]
