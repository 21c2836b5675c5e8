"""Which statements wait for each other: the strongly connected components of their dependences, in order.

What reads nothing, an initialization, is no work of its own: it stays with the only component that waits for it where
that one goes in steps, and does not fill a tensor for all steps before the first of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items

from tc.polyhedral.ir.scop import ScopStatement


def components(
    statements: Items[ScopStatement],
    waiting: Iterable[tuple[str, str]],
    runs_with: Callable[[ScopStatement, tuple[ScopStatement, ...]], bool],
) -> list[tuple[ScopStatement, ...]]:
    """Groups of statements that wait for each other, each behind those that it waits for, else as they stand.

    ``waiting``: names of statements, each behind that of one that it waits for.  ``runs_with``: whether a statement
    is in the steps that a component goes in.
    """
    number = {statement.name: position for position, statement in enumerate(statements)}
    later: list[set[int]] = [set() for _ in statements]
    for first, second in waiting:
        if first != second:
            later[number[first]].add(number[second])
    reached = [_reachable(later, start) for start in range(len(statements))]
    group = [min(b for b in reached[a] if a in reached[b]) for a in range(len(statements))]
    members = _members(group)
    for position, statement in enumerate(statements):
        targets = {group[b] for b in later[position]} - {position}
        if not statement.reads and len(members[group[position]]) == 1 and len(targets) == 1:
            (target,) = targets
            if runs_with(statement, tuple(statements[n] for n in members[target])):
                group[position] = target
    members = _members(group)
    return [tuple(statements[n] for n in members[leader]) for leader in _sorted(members, group, later)]


def _members(group: Items[int]) -> dict[int, list[int]]:
    """By the leader of a group, all that are in it."""
    members: dict[int, list[int]] = {}
    for position, leader in enumerate(group):
        members.setdefault(leader, []).append(position)
    return members


def _reachable(later: Items[set[int]], start: int) -> set[int]:
    """What waits for a statement, directly or not, and itself."""
    found, waiting = {start}, [start]
    while waiting:
        fresh = later[waiting.pop()] - found
        found |= fresh
        waiting.extend(fresh)
    return found


def _sorted(members: dict[int, list[int]], group: Items[int], later: Items[set[int]]) -> list[int]:
    """The leaders of the groups, in the order in which they stand as far as the edges between groups allow it."""
    edges = {leader: {group[b] for a in own for b in later[a]} - {leader} for leader, own in members.items()}
    before = dict.fromkeys(members, 0)
    for targets in edges.values():
        for target in targets:
            before[target] += 1
    ready = [leader for leader, count in before.items() if count == 0]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        done.append(heapq.heappop(ready))
        for target in edges[done[-1]]:
            before[target] -= 1
            if before[target] == 0:
                heapq.heappush(ready, target)
    return done
