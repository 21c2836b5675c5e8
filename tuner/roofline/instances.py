"""How many instances a statement has, where conditions on its iterators leave some out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.base.frozen import frozen
from tc.language.program.program import (
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Unary,
    iterators_in,
)

Array: TypeAlias = npt.NDArray[Any]

# Points of iterators that conditions connect.
_MOST_POINTS: Final = 1 << 28


@frozen
class _Factor:
    """What each point of some iterators counts: 1 or 0 of a condition, or the length of a range between them."""

    names: frozenset[str]
    count: Callable[[Mapping[str, Array]], Array]


def points(iterators: Sequence[IterationVariable], conditions: Sequence[Expression]) -> int:
    """How many instances there are: iterators that conditions or ranges connect are tried at all of their values.

    ValueError where data decide, or where these are too many.
    """
    ranges = dict[str, tuple[int, int]]()
    factors = [_holds(condition) for condition in conditions]
    used = iterators_in((*conditions, *(end for own in iterators for end in (own.begin, own.end))))
    for own in _outer_first(iterators):
        values = _values({name: ranges[name] for name in iterators_in((own.begin, own.end))})
        begin, end = _value(own.begin, values), _value(own.end, values)
        if own.name in used or not values:
            ranges[own.name] = int(begin.min(initial=0)), int(end.max(initial=0))
            factors += [_inside(own)] if values else []
        else:
            factors.append(_length(own))
    groups = _connected(factors)
    tried = frozenset[str]().union(*(names for names, _ in groups))
    count = math.prod(max(0, end - begin) for name, (begin, end) in ranges.items() if name not in tried)
    for names, together in groups:
        count *= _tried({name: ranges[name] for name in sorted(names)}, together)
    return count


def _tried(ranges: Mapping[str, tuple[int, int]], factors: Sequence[_Factor]) -> int:
    """The sum of the products of factors over all values of iterators, those of the first one by one."""
    if math.prod(max(0, end - begin) for begin, end in ranges.values()) > _MOST_POINTS:
        raise ValueError(f"there are too many values of {', '.join(ranges)} to try what depends on them")
    (first, (begin, end)), *others = ranges.items()
    total = 0
    for value in range(begin, end):
        values = _values({first: (value, value + 1), **dict(others)})
        total += int(math.prod((factor.count(values) for factor in factors), start=np.ones((), np.int64)).sum())
    return total


def _outer_first(iterators: Sequence[IterationVariable]) -> list[IterationVariable]:
    """Those whose ranges depend on others behind these."""
    found = list[IterationVariable]()
    while len(found) < len(iterators):
        known = {own.name for own in found}
        ready = [own for own in iterators if own not in found and iterators_in((own.begin, own.end)) <= known]
        assert ready, "ranges depend on each other"
        found += ready
    return found


def _holds(condition: Expression) -> _Factor:
    return _Factor(iterators_in((condition,)), lambda values: np.asarray(_value(condition, values), np.int64))


def _inside(own: IterationVariable) -> _Factor:
    def count(values: Mapping[str, Array]) -> Array:
        inside = (_value(own.begin, values) <= values[own.name]) & (values[own.name] < _value(own.end, values))
        return np.asarray(inside, np.int64)

    return _Factor(iterators_in((own.begin, own.end)) | {own.name}, count)


def _length(own: IterationVariable) -> _Factor:
    def count(values: Mapping[str, Array]) -> Array:
        return np.asarray(np.maximum(_value(own.end, values) - _value(own.begin, values), 0), np.int64)

    return _Factor(iterators_in((own.begin, own.end)), count)


def _connected(factors: Sequence[_Factor]) -> list[tuple[frozenset[str], list[_Factor]]]:
    """Those that share iterators, directly or by way of others, with these."""
    found = list[tuple[frozenset[str], list[_Factor]]]()
    for factor in factors:
        sharing = [own for own in found if own[0] & factor.names]
        names = factor.names.union(*(own[0] for own in sharing))
        together = [factor, *(other for own in sharing for other in own[1])]
        found = [*(own for own in found if own not in sharing), (names, together)]
    return found


def _values(ranges: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
    """All values of iterators, each along a dimension of its own."""
    grids = np.ix_(*(np.arange(begin, end) for begin, end in ranges.values())) if ranges else ()
    return dict(zip(ranges, grids, strict=True))


def _value(expression: Expression, values: Mapping[str, Array]) -> Array:
    match expression:
        case Literal(value):
            return np.asarray(value)
        case IteratorReference(name) if name in values:
            return values[name]
        case Unary(operator, operand):
            inner = _value(operand, values)
            return np.asarray(-inner if operator.value == "-" else np.logical_not(inner))
        case Binary(operator, left, right):
            return _combined(operator.value, _value(left, values), _value(right, values))
        case _:
            raise ValueError("conditions that depend on data are not counted")


def _combined(operator: str, left: Array, right: Array) -> Array:
    match operator:
        case "+":
            return np.asarray(left + right)
        case "-":
            return np.asarray(left - right)
        case "*":
            return np.asarray(left * right)
        case "/":
            return np.asarray(np.sign(left) * np.sign(right) * (np.abs(left) // np.maximum(np.abs(right), 1)))
        case "%":
            return np.asarray(np.where(right == 0, 0, np.sign(left) * (np.abs(left) % np.maximum(np.abs(right), 1))))
        case "<":
            return np.asarray(left < right)
        case "<=":
            return np.asarray(left <= right)
        case ">":
            return np.asarray(left > right)
        case ">=":
            return np.asarray(left >= right)
        case "==":
            return np.asarray(left == right)
        case "!=":
            return np.asarray(left != right)
        case "&&":
            return np.logical_and(left, right)
        case "||":
            return np.logical_or(left, right)
        case _:
            raise ValueError(f"conditions with {operator!r} are not counted")
