"""Which statements wait for each other: the strongly connected components of their dependences, in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from collections.abc import Sequence as Items

from tc.polyhedral.ir.scop import ScopStatement


def components(statements: Items[ScopStatement], waiting: Iterable[tuple[str, str]]) -> list[tuple[ScopStatement, ...]]:
    """Groups of statements that wait for each other, each behind those that it waits for, else as they stand.

    ``waiting``: names of statements, each behind that of one that it waits for.
    """
    number = {statement.name: position for position, statement in enumerate(statements)}
    later: list[set[int]] = [set() for _ in statements]
    for first, second in waiting:
        if first != second:
            later[number[first]].add(number[second])
    reached = [_reachable(later, start) for start in range(len(statements))]
    group = [min(b for b in reached[a] if a in reached[b]) for a in range(len(statements))]
    members: dict[int, list[int]] = {}
    for position, leader in enumerate(group):
        members.setdefault(leader, []).append(position)
    return [tuple(statements[n] for n in members[leader]) for leader in _sorted(members, group, later)]


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
