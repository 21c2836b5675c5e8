"""Iterators that coincide on all pairs of a group of statements: the loops that the group can share in parallel.

isl's scheduler solves an integer linear program for them, over all coefficients of all statements at once.  Mostly they
are iterators of the statements themselves, as they are, which linear algebra on the hulls of the pairs shows.  A
direction in which one iterator moves alone keeps it out of every function that coincides; one in which two iterators
move together gives both of them the same coefficient.  So iterators fall into classes, and where each class that no
direction keeps out is a function, these are all there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.polyhedral.schedule.hulls import Hull, Number, Own, Variable


@frozen
class Shared:
    """One function of all statements of a group: of each, an iterator, or none, plus a constant."""

    iterators: Mapping[str, int]
    constants: Mapping[str, int]


@frozen
class Apart:
    """The statements fall into parts that have nothing to do with each other."""


# The iterators of a statement that have more than one value.
Moving: TypeAlias = Mapping[str, Items[int]]


def shared_iterators(moving: Moving, hulls: Items[Hull]) -> tuple[Shared, ...] | Apart | None:
    """The loops that all statements can share in parallel, outermost first; None where only isl can tell.

    ``moving``: the statements, in the order in which isl minimizes their coefficients.  ``hulls``: of all pairs that
    shall coincide.
    """
    if not _is_connected(moving, hulls):
        return Apart()
    found: list[Shared] = []
    shifted = 0
    for own in _classes(moving, hulls):
        steps = _steps(own, moving, hulls)
        if steps is None:
            return None
        constants = _constants(steps)
        if constants is None:
            shifted += 1
        else:
            found.append(Shared(dict(own), constants))
    # What comes back to a statement elsewhere than it began does not coincide; several that do may in combination.
    return _in_order(found, moving) if shifted <= 1 else None


def coincides(position: int, pairs: Hull) -> bool:
    """Whether an iterator has one value at both ends of all pairs of one statement."""
    ends = (0, position), (1, position)
    return all(own.get(ends[0], 0) == own.get(ends[1], 0) for own in (pairs.point, *pairs.directions, *pairs.growing))


class _Sets:
    """Disjoint sets of items that are named as they come."""

    def __init__(self, items: Iterable[object]) -> None:
        self._above: Final = {item: item for item in items}

    def find(self, item: object) -> object:
        while self._above[item] != item:
            item = self._above[item]
        return item

    def join(self, first: object, second: object) -> None:
        self._above[self.find(first)] = self.find(second)


def _is_connected(moving: Moving, hulls: Items[Hull]) -> bool:
    sets = _Sets(moving)
    for hull in hulls:
        sets.join(hull.first, hull.second)
    return len({sets.find(name) for name in moving}) <= 1


def _classes(moving: Moving, hulls: Items[Hull]) -> list[list[Own]]:
    """Iterators that have one coefficient in all functions that coincide, but for those for which it is 0."""
    every = [(name, position) for name, positions in moving.items() for position in positions]
    sets, known = _Sets(every), frozenset(every)
    fixed: list[Own] = []
    for hull in hulls:
        for moves in hull.moves:
            moved = [own for own in moves if own in known]
            if len(moved) == 1:
                fixed += moved
            elif len(moved) == 2:
                sets.join(*moved)
    out = {sets.find(own) for own in fixed}
    classes: dict[object, list[Own]] = {}
    for own in every:
        if (found := sets.find(own)) not in out:
            classes.setdefault(found, []).append(own)
    return list(classes.values())


def _steps(own: Items[Own], moving: Moving, hulls: Items[Hull]) -> Mapping[str, list[tuple[str, Number]]] | None:
    """Of the function that has these iterators, how much more the constant of each statement is than that of others.

    None where nothing makes it coincide, or there are several functions.
    """
    iterators = dict(own)
    if len(iterators) < len(own):
        return None
    steps: dict[str, list[tuple[str, Number]]] = {name: [] for name in moving}
    for hull in hulls:
        ends = [(end, iterators.get(name)) for end, name in enumerate((hull.first, hull.second))]
        before, after = (_value(hull.point, *end) for end in ends)
        along = (*hull.directions, *hull.growing)
        if any(_value(direction, *ends[0]) != _value(direction, *ends[1]) for direction in along):
            return None
        if not isinstance(before - after, int):
            return None
        steps[hull.first].append((hull.second, before - after))
        steps[hull.second].append((hull.first, after - before))
    return steps


def _value(of: Mapping[Variable, Number], end: int, position: int | None) -> Number:
    return 0 if position is None else of.get((end, position), 0)


def _constants(steps: Mapping[str, list[tuple[str, Number]]]) -> dict[str, int] | None:
    """Constants whose differences are those of the steps, the least of them 0; None where there are none."""
    start = next(iter(steps))
    found: dict[str, Number] = {start: 0}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        for other, more in steps[name]:
            value = found[name] + more
            if other not in found:
                found[other] = value
                waiting.append(other)
            elif found[other] != value:
                return None
    least = min(found.values())
    return {name: int(value - least) for name, value in found.items()}


def _in_order(found: list[Shared], moving: Moving) -> tuple[Shared, ...]:
    """As isl takes them: the outermost iterator first of the first statement that must get a further one.

    As many as the most iterators that a statement has; those that have as many left as there are to come must get one.
    """
    left = {name: len(positions) for name, positions in moving.items()}
    chosen: list[Shared] = []
    for coming in range(max(left.values()), 0, -1):
        needing = [name for name, count in left.items() if count >= coming]
        able = [shared for shared in found if all(name in shared.iterators for name in needing)]
        if not able:
            break
        taken = min(able, key=lambda shared: shared.iterators[needing[0]])
        found.remove(taken)
        chosen.append(taken)
        left = {name: count - (name in taken.iterators) for name, count in left.items()}
    return tuple(chosen)
