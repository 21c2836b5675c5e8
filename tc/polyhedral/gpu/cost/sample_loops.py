"""Iterations of a loop of which only some are looked at: exact where what they do changes at few places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from tc.polyhedral.gpu.cost.tally import NOTHING, Tally

# So many kinds of iterations are told apart at most, by how many loops stand one in the other inside; what is between
# two of them is then taken for what is in the middle.
_MOST: Final = (32, 8, 8, 3)
# Iterations, all of which are looked at.
_FEW: Final = 3

# What tells iterations apart: those with the same one do the same.
Signature: TypeAlias = Callable[[int], object]


def total(count: int, evaluate: Callable[[int], Tally], signature: Signature, inside: int) -> Tally:
    """The sum of ``evaluate`` over ``range(count)``; ``inside``: how deep its loops are."""
    known: dict[object, Tally] = {}
    found = NOTHING
    for number, times in alike(count, signature, inside):
        key = signature(number)
        if key not in known:
            known[key] = evaluate(number)
        found = found + known[key] * times
    return found


def alike(count: int, signature: Signature, inside: int = 0) -> Iterator[tuple[int, int]]:
    """Runs of iterations that are alike: the number of one of them, and how many there are.

    The middle and both ends are compared, then halves that differ; first of all what is beside an end, since loops
    have prologues and last iterations that are not whole.
    """
    known: dict[int, object] = {}
    most = _MOST[min(inside, len(_MOST) - 1)]

    def sign(number: int) -> object:
        if number not in known:
            known[number] = signature(number)
        return known[number]

    def between(first: int, last: int) -> Iterator[tuple[int, int]]:
        length = last - first + 1
        if length <= _FEW:
            yield from ((number, 1) for number in range(first, last + 1))
            return
        middle = (first + last) // 2
        same = sign(middle) == sign(first), sign(middle) == sign(last)
        if all(same) or len(set(known.values())) > most:
            yield middle, length
        elif same[0] and sign(last - 1) == sign(middle):
            yield from ((middle, length - 1), (last, 1))
        elif same[1] and sign(first + 1) == sign(middle):
            yield from ((first, 1), (middle, length - 1))
        else:
            yield from between(first, middle)
            yield from between(middle + 1, last)

    if count > 0:
        yield from between(0, count - 1)
