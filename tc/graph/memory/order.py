"""The order of nodes: one that needs little memory at a time.

DeepDSL's height heuristic (Zhao, Huang and Cao, ICLR 2017, Section 4): nodes are scheduled for one goal after the
other, by increasing height.  Beside it, a greedy order takes the node after which least is held, and for few nodes all
orders are considered.  The order given is kept unless another one needs less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tc.base.frozen import frozen

# With more nodes, not all orders are considered.
FEW: Final = 12


@frozen
class Task:
    """A node: the values that it uses and makes, by number, and bytes that it needs while it runs."""

    uses: tuple[int, ...]
    makes: tuple[int, ...]
    workspace: int = 0


@frozen
class Tasks:
    """Nodes, and how many bytes each memory takes; ``kept``: memories that stay to the end.

    A memory is needed from the first task that makes or uses a value in it to the last one.  ``places``: by value, its
    memory; nothing where each value has its own, of the same number.
    """

    tasks: tuple[Task, ...]
    bytes: tuple[int, ...]
    kept: frozenset[int]
    places: tuple[int, ...] = ()

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that are needed while a node of the order runs."""
        held = _Held(self)
        most = 0
        for number in order:
            most = max(most, held.total + held.begin(number) + self.tasks[number].workspace)
            held.add(number)
        return most

    def memories(self) -> list[frozenset[int]]:
        """For each task, the memories of what it makes and uses."""
        found = (dict.fromkeys((*task.makes, *task.uses)) for task in self.tasks)
        return [frozenset(self.places[value] if self.places else value for value in values) for values in found]

    def needs(self) -> list[frozenset[int]]:
        """For each task, the tasks before it."""
        makers = {value: number for number, task in enumerate(self.tasks) for value in task.makes}
        return [frozenset(makers[value] for value in task.uses if value in makers) for task in self.tasks]


def least_memory(tasks: Tasks) -> tuple[int, ...]:
    """An order of the tasks that needs no more memory than the one given; the least of all for few of them."""
    given = tuple(range(len(tasks.tasks)))
    if len(given) <= FEW:
        return _exact(tasks)
    return min((given, by_height(tasks), _greedy(tasks)), key=tasks.peak)


def heights(tasks: Tasks) -> list[int]:
    """0 for a task that waits for none, else one more than the highest that it waits for."""
    found: list[int] = []
    needs = tasks.needs()
    for number in range(len(tasks.tasks)):
        found.append(1 + max((found[before] for before in needs[number]), default=-1))
    return found


def by_height(tasks: Tasks) -> tuple[int, ...]:
    """The height heuristic: for each goal by increasing height, what it waits for by increasing height, then itself.

    Goals are the tasks whose results are kept, or that no task uses.
    """
    height, needs = heights(tasks), tasks.needs()
    used = {value for task in tasks.tasks for value in task.uses}
    goals = [n for n, task in enumerate(tasks.tasks) if any(v in tasks.kept or v not in used for v in task.makes)]
    order: dict[int, None] = {}
    for goal in sorted(goals, key=lambda n: (height[n], n)):
        waiting, before = [goal], {goal}
        while waiting:
            for number in needs[waiting.pop()]:
                if number not in before and number not in order:
                    before.add(number)
                    waiting.append(number)
        order.update(dict.fromkeys(sorted(before, key=lambda n: (height[n], n))))
    order.update(dict.fromkeys(range(len(tasks.tasks))))
    return tuple(order)


def _greedy(tasks: Tasks) -> tuple[int, ...]:
    """Of the tasks that are ready, always the one after which least is held."""
    needs = [set(before) for before in tasks.needs()]
    held = _Held(tasks)
    users: dict[int, list[int]] = {}
    for number, before in enumerate(needs):
        for other in before:
            users.setdefault(other, []).append(number)
    ready = [number for number, before in enumerate(needs) if not before]
    order: list[int] = []
    while ready:
        chosen = min(ready, key=lambda n: (held.begin(n) - held.end(n), n))
        ready.remove(chosen)
        order.append(chosen)
        held.add(chosen)
        for user in users.get(chosen, ()):
            needs[user].discard(chosen)
            if not needs[user]:
                ready.append(user)
    return tuple(order)


class _Held:
    """What is held while tasks are added one after the other."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks: Final = tasks
        self._memories: Final = tasks.memories()
        # How many tasks are to come that need a memory.
        self._left: Final = Counter(memory for found in self._memories for memory in found)
        self._begun: Final[set[int]] = set()
        self.total = 0

    def begin(self, number: int) -> int:
        """The bytes of what a task would be the first to need."""
        return sum(self._tasks.bytes[memory] for memory in self._memories[number] if memory not in self._begun)

    def end(self, number: int) -> int:
        """The bytes of what a task would be the last to need."""
        kept = self._tasks.kept
        return sum(self._tasks.bytes[m] for m in self._memories[number] if self._left[m] == 1 and m not in kept)

    def add(self, number: int) -> None:
        self.total += self.begin(number) - self.end(number)
        self._begun.update(self._memories[number])
        self._left.subtract(self._memories[number])


def _exact(tasks: Tasks) -> tuple[int, ...]:
    """The order of the least peak, by dynamic programming over the sets of tasks that are done."""
    needs = [sum(1 << before for before in found) for found in tasks.needs()]
    count = len(needs)
    memories = tasks.memories()
    masks: dict[int, int] = {}
    for number, found in enumerate(memories):
        for memory in found:
            masks[memory] = masks.get(memory, 0) | 1 << number
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for _ in range(count):
        following: dict[int, tuple[int, tuple[int, ...]]] = {}
        for done, (peak, order) in best.items():
            before = _held(tasks, masks, done)
            for number in range(count):
                if done >> number & 1 or needs[number] & ~done:
                    continue
                begun = sum(tasks.bytes[memory] for memory in memories[number] if not masks[memory] & done)
                most = max(peak, before + begun + tasks.tasks[number].workspace)
                after = done | 1 << number
                if after not in following or (most, (*order, number)) < following[after]:
                    following[after] = most, (*order, number)
        best = following
    ((_, order),) = best.values()
    given = tuple(range(count))
    return given if tasks.peak(given) <= tasks.peak(order) else order


def _held(tasks: Tasks, masks: Mapping[int, int], done: int) -> int:
    """How many bytes are held when a set of tasks is done; ``masks``: by memory, the tasks that need it."""
    kept = tasks.kept
    return sum(tasks.bytes[m] for m, mask in masks.items() if mask & done and (mask & ~done or m in kept))
