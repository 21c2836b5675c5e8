"""Plans run without kernels: the oracle computes each call, and its results go where the plan says.

What lies in memory that something else is written to comes out wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.memory.places import Memory, Place, Placement, placement
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import bytes_of
from tc.graph.run.arrays import lying
from tc.graph.run.comprehensions import comprehension_of

# What memory holds before something is written there.
POISON = 0xA5


def run_in_arena(plan: MemoryPlan, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of the plan in one arena; its outputs must lie in order."""
    return _Run(plan, placement(plan), [plan.arena], inputs).results()


def run_allocating(plan: MemoryPlan, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of the plan with memory of its own for each block."""
    sizes = [block.bytes for block in plan.blocks]
    return _Run(plan, placement(plan, apart=True), sizes, inputs).results()


class _Run:
    """One run: the memory, in pieces."""

    def __init__(self, plan: MemoryPlan, placed: Placement, arena: list[int], inputs: Mapping[str, np.ndarray]) -> None:
        graph = plan.graph
        outputs = [bytes_of(graph.values[name]) for name in graph.outputs]
        self._plan, self._placed = plan, placed
        self._pieces = {
            Memory.INPUT: [_bytes(inputs[name]) for name in graph.inputs],
            Memory.CONSTANT: [_bytes(array) for array in graph.constants.values()],
            Memory.ARENA: [np.full(size, POISON, np.uint8) for size in arena],
            Memory.OUTPUT: [np.full(size, POISON, np.uint8) for size in outputs],
        }

    def results(self) -> tuple[np.ndarray, ...]:
        """The outputs in order."""
        graph = self._plan.graph
        for node in graph.nodes:
            match node:
                case Call():
                    found = comprehension_of(node.program).reference(*map(self._array, node.operands))
                    for name, array in zip(node.results, found if isinstance(found, tuple) else (found,), strict=True):
                        self._array(name)[...] = array
                case Host():
                    made = node.function([self._array(name) for name in node.operands])
                    for name, array in zip(node.results, made, strict=True):
                        self._array(name)[...] = array
                case View() | Join():
                    pass
                case _:
                    assert_never(node)
        for copy in self._placed.copies:
            self._behind(copy.target)[: copy.bytes] = self._behind(copy.source)[: copy.bytes]
        outputs = enumerate(graph.outputs)
        return tuple(lying(self._pieces[Memory.OUTPUT][number], graph.values[name]) for number, name in outputs)

    def _array(self, name: str) -> np.ndarray:
        place, value = self._placed.places[name], self._plan.graph.values[name]
        steps = [step for step in value.steps if isinstance(step, int)]
        if all(step >= 0 for step in steps):
            return lying(self._behind(place), value)
        # Against the order of memory: from the last element on.
        whole = self._pieces[place.memory][place.number]
        size = value.type.itemsize
        flat = np.ndarray((len(whole) - place.offset % size) // size, value.type.value, whole.data, place.offset % size)
        strides = [step * size for step in steps]
        shape = [extent for extent in value.shape if isinstance(extent, int)]
        return np.lib.stride_tricks.as_strided(flat[place.offset // size :], shape, strides)

    def _behind(self, place: Place) -> np.ndarray:
        return self._pieces[place.memory][place.number][place.offset :]


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
