"""Random tasks, and all orders of few."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tc.graph.memory.order import Task, Tasks


def random_tasks(chosen: random.Random, count: int) -> Tasks:
    """A graph in which each task makes one value, and uses some of those before it."""
    tasks = []
    for number in range(count):
        uses = tuple(sorted(chosen.sample(range(number), min(number, chosen.randint(0, 3)))))
        tasks.append(Task(uses, (number,), chosen.choice((0, 0, 3))))
    used = {value for task in tasks for value in task.uses}
    kept = frozenset(n for n in range(count) if n not in used and chosen.random() < 0.5)
    return Tasks(tuple(tasks), tuple(chosen.randint(1, 9) for _ in range(count)), kept)


def orders(tasks: Tasks, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All orders in which each task comes after what it needs."""
    needs, done = tasks.needs(), set(before)
    if len(done) == len(needs):
        yield before
    for number, needed in enumerate(needs):
        if number not in done and needed <= done:
            yield from orders(tasks, (*before, number))


def is_order(tasks: Tasks, order: Sequence[int]) -> bool:
    places = {number: place for place, number in enumerate(order)}
    ordered = all(places[b] < places[n] for n, before in enumerate(tasks.needs()) for b in before)
    return sorted(order) == list(range(len(tasks.tasks))) and ordered
