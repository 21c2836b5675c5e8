"""A graph as tasks that need memory, and the graph in the order that needs little of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Join, Node, View
from tc.graph.memory.beam import beam
from tc.graph.memory.order import Task, Tasks, least_memory
from tc.graph.memory.storage import bytes_of, storage_of


def reordered(graph: Graph, *, thorough: bool = False) -> Graph:
    """The graph in an order that needs no more memory; views and joins come right before their first user.

    ``thorough``: by a search that takes up to a second.
    """
    moved = [node for node in graph.nodes if not isinstance(node, View | Join)]
    free = [node for node in graph.nodes if isinstance(node, View | Join)]
    tasks = tasks_of(graph, moved)
    order = beam(tasks) if thorough else least_memory(tasks)
    return replace(graph, nodes=(*(moved[number] for number in order), *free)).in_order()


def tasks_of(graph: Graph, nodes: Sequence[Node]) -> Tasks:
    """The tasks that these nodes are, all but views and joins."""
    roots = storage_of(graph, in_place=False).roots
    values = {name: number for number, name in enumerate(name for node in nodes for name in node.results)}
    memories = {root: number for number, root in enumerate(dict.fromkeys(roots[name] for name in values))}
    # What is computed for each value.
    made: dict[str, tuple[int, ...]] = {name: (number,) for name, number in values.items()}
    for node in graph.nodes:
        if isinstance(node, View | Join):
            made[node.result] = tuple(number for name in node.operands for number in made.get(name, ()))
    tasks = tuple(
        Task(
            tuple(dict.fromkeys(number for name in node.operands for number in made.get(name, ()))),
            tuple(values[name] for name in node.results),
        )
        for node in nodes
    )
    sizes = tuple(bytes_of(graph.values[root]) for root in memories)
    kept = frozenset(memories[roots[name]] for name in graph.outputs if roots[name] in memories)
    return Tasks(tasks, sizes, kept, tuple(memories[roots[name]] for name in values))
