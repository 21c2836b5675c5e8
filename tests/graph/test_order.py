"""The order of nodes where values share memory, beam search, and limits of memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.memory.beam import beam
from tc.graph.memory.blocks import live_peak
from tc.graph.memory.order import Task, Tasks, least_memory
from tc.graph.memory.plan import needed_blocks, planned
from tests.fuzz.graph_programs import drawn
from tests.graph.orders import is_order, orders, random_tasks


def shared(chosen: random.Random, count: int) -> Tasks:
    """Tasks of which some values are parts of the same memory."""
    tasks = random_tasks(chosen, count)
    places = tuple(chosen.randrange(max(1, 2 * count // 3)) for _ in range(count))
    memories = sorted(set(places))
    numbers = {memory: number for number, memory in enumerate(memories)}
    kept = frozenset(number for number in range(len(memories)) if chosen.random() < 0.2)
    sizes = tuple(chosen.randint(1, 9) for _ in memories)
    return Tasks(tasks.tasks, sizes, kept, tuple(numbers[memory] for memory in places))


def simulated(tasks: Tasks, order: Sequence[int]) -> int:
    """The peak, step by step: a memory is there from the first task that needs it to the last one."""
    steps = []
    for place, number in enumerate(order):
        live = 0
        for memory, size in enumerate(tasks.bytes):
            used = [p for p, n in enumerate(order) if memory in tasks.memories()[n]]
            end = len(order) if memory in tasks.kept else max(used, default=-1)
            live += size if used and used[0] <= place <= end else 0
        steps.append(live + tasks.tasks[number].workspace)
    return max(steps, default=0)


@pytest.mark.parametrize("seed", range(25))
def test_memory_that_values_share_is_needed_once(seed: int) -> None:
    chosen = random.Random(seed)
    tasks = shared(chosen, chosen.randint(1, 6))
    every = list(orders(tasks))
    assert [tasks.peak(order) for order in every] == [simulated(tasks, order) for order in every]
    found = least_memory(tasks)
    assert is_order(tasks, found)
    assert tasks.peak(found) == min(map(tasks.peak, every))


@pytest.mark.parametrize("seed", range(12))
def test_beam_search_is_at_least_as_good(seed: int) -> None:
    chosen = random.Random(seed)
    tasks = chosen.choice((shared, random_tasks))(chosen, 40)
    found = beam(tasks, work=4000)
    assert is_order(tasks, found)
    assert tasks.peak(found) <= tasks.peak(least_memory(tasks))
    assert beam(tasks, work=4000) == found


def test_a_wide_beam_finds_the_least_of_few() -> None:
    chosen = random.Random(3)
    for _ in range(20):
        tasks = random_tasks(chosen, 7)
        assert tasks.peak(beam(tasks)) == min(map(tasks.peak, orders(tasks)))
    assert beam(Tasks((), (), frozenset())) == ()


@pytest.mark.parametrize("seed", range(12))
def test_no_arena_is_larger_than_in_the_order_given(seed: int) -> None:
    graph = drawn(seed, 40).graph
    assert planned(graph).arena <= planned(graph, reorder=False).arena


def pairs(count: int) -> Graph:
    """Sums of products of large values, all of which could be there at a time, with a result of one element."""
    builder = Builder("pairs")
    x = builder.input("x", ScalarType.FLOAT32, (4, 100))
    wide = [
        builder.call("def wide(float(M,N) X) -> (Y) { Y(i,n) +=! X(m,n) where i in 0:40 }", x, names=[f"w{number}"])[0]
        for number in range(count)
    ]
    (total,) = builder.call("def sum(float(M,N) X) -> (s) { s +=! X(m,n) }", wide[0])
    for value in wide[1:]:
        text = "def add(float(M,N) X, float s) -> (t) { t +=! X(m,n) * s }"
        (total,) = builder.call(text, value, total)
    return builder.finish([total])


def test_a_workspace_that_is_too_small_is_an_error() -> None:
    graph = pairs(3)
    x = np.ones((4, 100), np.float32)
    model = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), fuse=False, reorder=False, workspace=20_000))
    with pytest.raises(tc.GraphError) as caught:
        model(x)
    assert str(caught.value) == (
        "`pairs` needs 48064 bytes for intermediate values, 48064 of them at a time, and Settings(workspace=20000) "
        "allows less; allow 48064, or give inputs of smaller shapes"
    )
    for arena in (True, False):
        settings = tc.graph.Settings(rules=(), fuse=False, arena=arena, workspace=20_000)
        assert tc.graph.Model.of(graph, settings).plan().arena == 16_128
        with pytest.raises(tc.GraphError, match="allow 16128, or"):
            tc.graph.Model.of(graph, replace(settings, workspace=16_127)).plan()


def test_orders_are_searched_for_longer_where_a_workspace_asks_for_it() -> None:
    """Of these random graphs, some fit only then."""
    better = 0
    for seed in range(30):
        graph = drawn(seed, 60).graph
        usual = planned(graph)
        longer = planned(graph, workspace=0)
        assert longer.arena <= usual.arena
        assert longer.arena >= live_peak(needed_blocks(longer.graph, reorder=False))
        better += longer.arena < usual.arena
    assert better > 0


def test_tasks_without_places_have_memories_of_their_own() -> None:
    tasks = Tasks((Task((), (0,)), Task((0,), (1,))), (5, 7), frozenset())
    assert tasks.peak((0, 1)) == replace(tasks, places=(0, 1)).peak((0, 1)) == 12
    assert replace(tasks, bytes=(9,), places=(0, 0)).peak((0, 1)) == 9
