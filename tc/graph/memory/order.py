"""The order of nodes: one that needs little memory at a time.

DeepDSL's height heuristic (Zhao, Huang and Cao, ICLR 2017, Section 4): nodes are scheduled for one goal after the
other, by increasing height.  Beside it, a greedy order takes the node after which least is held, and for few nodes all
orders are considered.  The order given is kept unless another one needs less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Nodes, and how many bytes each value takes; ``kept``: values that stay to the end."""

    tasks: tuple[Task, ...]
    bytes: tuple[int, ...]
    kept: frozenset[int]

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that are needed while a node of the order runs."""
        left = self._uses()
        total = most = 0
        for number in order:
            task = self.tasks[number]
            total += sum(self.bytes[value] for value in task.makes)
            most = max(most, total + task.workspace)
            total -= self._freed(task, left)
        return most

    def _uses(self) -> dict[int, int]:
        left = {value: 0 for task in self.tasks for value in (*task.makes, *task.uses)}
        for task in self.tasks:
            for value in dict.fromkeys(task.uses):
                left[value] += 1
        return left

    def _freed(self, task: Task, left: dict[int, int]) -> int:
        """The bytes that end with a task; ``left`` counts the users that are still to come."""
        freed = 0
        for value in dict.fromkeys(task.uses):
            left[value] -= 1
            if left[value] == 0 and value not in self.kept:
                freed += self.bytes[value]
        return freed + sum(self.bytes[v] for v in task.makes if left[v] == 0 and v not in self.kept)

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
    left = tasks._uses()
    users: dict[int, list[int]] = {}
    for number, before in enumerate(needs):
        for other in before:
            users.setdefault(other, []).append(number)
    ready = [number for number, before in enumerate(needs) if not before]
    order: list[int] = []
    while ready:
        chosen = min(ready, key=lambda n: (_grows(tasks, n, left), n))
        ready.remove(chosen)
        order.append(chosen)
        tasks._freed(tasks.tasks[chosen], left)
        for user in users.get(chosen, ()):
            needs[user].discard(chosen)
            if not needs[user]:
                ready.append(user)
    return tuple(order)


def _grows(tasks: Tasks, number: int, left: dict[int, int]) -> int:
    task = tasks.tasks[number]
    made = sum(tasks.bytes[value] for value in task.makes)
    ends = sum(tasks.bytes[v] for v in dict.fromkeys(task.uses) if left[v] == 1 and v not in tasks.kept)
    return made - ends


def _exact(tasks: Tasks) -> tuple[int, ...]:
    """The order of the least peak, by dynamic programming over the sets of tasks that are done."""
    needs = [sum(1 << before for before in found) for found in tasks.needs()]
    count = len(needs)
    users: dict[int, int] = {}
    for number, task in enumerate(tasks.tasks):
        for value in task.uses:
            users[value] = users.get(value, 0) | 1 << number
    held: Callable[[int], int] = _held(tasks, users)
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for _ in range(count):
        following: dict[int, tuple[int, tuple[int, ...]]] = {}
        for done, (peak, order) in best.items():
            before = held(done)
            for number in range(count):
                if done >> number & 1 or needs[number] & ~done:
                    continue
                task = tasks.tasks[number]
                most = max(peak, before + sum(tasks.bytes[v] for v in task.makes) + task.workspace)
                after = done | 1 << number
                if after not in following or (most, (*order, number)) < following[after]:
                    following[after] = most, (*order, number)
        best = following
    ((_, order),) = best.values()
    given = tuple(range(count))
    return given if tasks.peak(given) <= tasks.peak(order) else order


def _held(tasks: Tasks, users: dict[int, int]) -> Callable[[int], int]:
    """How many bytes are held when a set of tasks is done."""

    def held(done: int) -> int:
        total = 0
        for number, task in enumerate(tasks.tasks):
            if not done >> number & 1:
                continue
            for value in task.makes:
                if value in tasks.kept or users.get(value, 0) & ~done:
                    total += tasks.bytes[value]
        return total

    return held
