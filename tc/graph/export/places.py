"""Where values are when an exported model runs: in an array of the caller, among the weights, or in the arena."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tc.base.frozen import frozen
from tc.graph.ir.nodes import View
from tc.graph.memory.offsets import ALIGNMENT
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import bytes_of


class Memory(Enum):
    """Where memory comes from."""

    INPUT = "input"
    OUTPUT = "output"
    WEIGHTS = "weights"
    ARENA = "arena"


@frozen
class Place:
    """``number``: of the input or output.  ``offset``: in bytes."""

    memory: Memory
    number: int
    offset: int

    def behind(self, bytes: int) -> Place:
        """The place so many bytes further."""
        return Place(self.memory, self.number, self.offset + bytes)


@frozen
class Placement:
    """``places``: of the first elements of all values.  ``arena``: its bytes."""

    places: Mapping[str, Place]
    arena: int


def placement(plan: MemoryPlan, weights: Mapping[str, int]) -> Placement:
    """The places of a plan whose outputs lie in order; ``weights`` says where constants begin in their file."""
    graph, roots = plan.graph, plan.storage.roots
    places = {name: Place(Memory.INPUT, number, 0) for number, name in enumerate(graph.inputs)}
    places |= {name: Place(Memory.WEIGHTS, 0, offset) for name, offset in weights.items()}
    places |= {name: Place(Memory.ARENA, 0, offset) for name, offset in plan.offsets.items()}
    written = _written(plan)
    arena = plan.arena
    for name in dict.fromkeys(roots[output] for output in graph.outputs):
        if name in written:
            places[name] = Place(Memory.OUTPUT, written[name], 0)
        elif name not in places:
            places[name] = Place(Memory.ARENA, 0, arena)
            arena += bytes_of(graph.values[name]) + -bytes_of(graph.values[name]) % ALIGNMENT
    for node in graph.nodes:
        if isinstance(node, View):
            assert isinstance(node.offset, int)
            size = graph.values[node.operand].type.itemsize
            places[node.result] = places[node.operand].behind(node.offset * size)
        else:
            # Others lie where their own memory is, in a part of another value, or in place of an operand.
            for name in node.results:
                start = plan.storage.starts.get(name, 0) * graph.values[name].type.itemsize
                places[name] = places[roots[name]].behind(start)
    return Placement(places, arena)


def _written(plan: MemoryPlan) -> dict[str, int]:
    """The values that kernels write into the caller's array for an output: those that are the whole of it."""
    graph, roots = plan.graph, plan.storage.roots
    given = {*graph.inputs, *graph.constants}
    found: dict[str, int] = {}
    for number, name in enumerate(graph.outputs):
        root = roots[name]
        if root not in given and bytes_of(graph.values[name]) == bytes_of(graph.values[root]):
            found.setdefault(root, number)
    return found
