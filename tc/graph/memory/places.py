"""Where values are when a plan runs: in an array of the caller, among the constants, or in the arena."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import View
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import bytes_of, written


class Memory(Enum):
    """Whose memory it is."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    ARENA = "arena"


@frozen
class Place:
    """The first element of a value.

    ``number``: of the input, output or constant, or of the piece of an arena that is allocated apart.  ``offset``: in
    bytes.
    """

    memory: Memory
    number: int
    offset: int

    def behind(self, bytes: int) -> Place:
        """The place so many bytes further."""
        return Place(self.memory, self.number, self.offset + bytes)


@frozen
class Copy:
    """An output that no kernel writes: bytes of an input, of a constant, or of another value."""

    output: str
    target: Place
    source: Place
    bytes: int


@frozen
class Placement:
    """``places``: of all values.  ``copies``: what is to be done in the end."""

    places: Mapping[str, Place]
    copies: tuple[Copy, ...]


def placement(plan: MemoryPlan, *, apart: bool = False) -> Placement:
    """The places of a plan whose outputs lie in order.  Inputs, outputs and constants have the order of the graph.

    ``apart``: the blocks of the plan are pieces of their own, in its order.
    """
    graph, roots = plan.graph, plan.storage.roots
    places = {name: Place(Memory.INPUT, number, 0) for number, name in enumerate(graph.inputs)}
    places |= {name: Place(Memory.CONSTANT, number, 0) for number, name in enumerate(graph.constants)}
    if apart:
        places |= {block.name: Place(Memory.ARENA, number, 0) for number, block in enumerate(plan.blocks)}
    else:
        places |= {name: Place(Memory.ARENA, 0, offset) for name, offset in plan.offsets.items()}
    places |= {name: Place(Memory.OUTPUT, number, 0) for name, number in written(graph, roots).items()}
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
    return Placement(places, _copies(graph, places))


def _copies(graph: Graph, places: Mapping[str, Place]) -> tuple[Copy, ...]:
    found = []
    for number, name in enumerate(graph.outputs):
        target, size = Place(Memory.OUTPUT, number, 0), bytes_of(graph.values[name])
        if places[name] != target and size > 0:
            found.append(Copy(name, target, places[name], size))
    return tuple(found)
