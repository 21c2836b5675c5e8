"""The order of nodes by beam search: dearer than those of ``least_memory``, and at least as good.

Of the orders of some tasks those are kept that have the least peaks so far, and of equal ones those that hold least; of
two with the same tasks done, the one with the lower peak.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from tc.base.frozen import frozen
from tc.graph.memory.order import Tasks, least_memory

# How many tasks are added to orders in all, about a second.
WORK: Final = 50_000


def beam(tasks: Tasks, work: int = WORK) -> tuple[int, ...]:
    """An order of the tasks that needs no more memory than that of ``least_memory``."""
    known = least_memory(tasks)
    found = _Beam(tasks).order(work // max(1, len(known)))
    return min((known, found), key=tasks.peak)


@frozen
class _Begun:
    """Tasks that are done, as bits, and in order; what is held then, and the most that was needed so far."""

    done: int
    order: tuple[int, ...]
    held: int
    peak: int
    ready: frozenset[int]


class _Beam:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks: Final = tasks
        self._needs: Final = [sum(1 << before for before in found) for found in tasks.needs()]
        self._users: Final[list[list[int]]] = [[] for _ in self._needs]
        for number, found in enumerate(tasks.needs()):
            for before in found:
                self._users[before].append(number)
        self._memories: Final = tasks.memories()
        # By memory, the tasks that need it.
        self._masks: Final[dict[int, int]] = {}
        for number, memories in enumerate(self._memories):
            for memory in memories:
                self._masks[memory] = self._masks.get(memory, 0) | 1 << number

    def order(self, width: int) -> tuple[int, ...]:
        """The best order; ``width``: how many tasks are added to orders of equal length."""
        ready = frozenset(number for number, needed in enumerate(self._needs) if not needed)
        kept = [_Begun(0, (), 0, 0, ready)]
        for _ in self._needs:
            best: dict[int, _Begun] = {}
            for begun in kept:
                for longer in self._following(begun):
                    other = best.get(longer.done)
                    if other is None or longer.peak < other.peak:
                        best[longer.done] = longer
            found = sorted(best.values(), key=lambda begun: (begun.peak, begun.held, begun.order))
            added = itertools.accumulate(len(begun.ready) for begun in found)
            kept = [
                begun
                for number, (begun, count) in enumerate(zip(found, added, strict=True))
                if not number or count <= width
            ]
        return kept[0].order

    def _following(self, begun: _Begun) -> Iterator[_Begun]:
        tasks = self._tasks
        for number in sorted(begun.ready):
            done = begun.done | 1 << number
            held, ended = begun.held, 0
            for memory in self._memories[number]:
                mask = self._masks[memory]
                held += tasks.bytes[memory] if not mask & begun.done else 0
                ended += tasks.bytes[memory] if not mask & ~done and memory not in tasks.kept else 0
            ready = begun.ready - {number} | {user for user in self._users[number] if not self._needs[user] & ~done}
            peak = max(begun.peak, held + tasks.tasks[number].workspace)
            yield _Begun(done, (*begun.order, number), held - ended, peak, frozenset(ready))
