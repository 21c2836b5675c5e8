"""``Allocating``: runs a plan without an arena: values are allocated when made, and freed after their last use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.api.available import target_of_call
from tc.base.frozen import frozen
from tc.base.once import Once
from tc.dispatch.array_placement import check_on_host
from tc.graph.memory.places import placement
from tc.graph.run.arrays import numbers
from tc.graph.run.kernels import compiled
from tc.graph.run.parts import Kernels, Part, Pieces, joined
from tc.graph.run.results import announced, results_of
from tc.runtime.frameworks.numpy_arrays import numpy_address, numpy_dtype
from tc.runtime.host.threads import get_threads

if TYPE_CHECKING:
    from tc.dispatch.arguments import Arguments
    from tc.graph.ir.values import Value
    from tc.graph.memory.plan import MemoryPlan


@frozen
class _Step:
    """A node, or the copies in the end: the blocks that begin with it, what it does, the blocks that end with it."""

    begins: tuple[int, ...]
    parts: tuple[Part, ...]
    ends: tuple[int, ...]


class Allocating:
    """The nodes of a graph as steps in order, on this machine.

    ``kernels``: those of the calls, by the names of results; None compiles them.
    ``peak``: the most bytes of arrays of intermediate values that a call has held at a time.
    """

    def __init__(self, plan: MemoryPlan, target: str | None, kernels: Kernels | None = None) -> None:
        self.plan: Final = plan
        self.target: Final = target_of_call(target)
        self.kernels: Final = compiled(plan, target) if kernels is None else kernels
        self.peak = 0
        # Made when they run, since kernels may be for another machine.
        self._steps: Final[Once[None, tuple[_Step, ...]]] = Once()

    def run(self, bound: Arguments, names: Sequence[str]) -> tuple[object, ...]:
        """The outputs in order, which the caller calls ``names``."""
        graph = self.plan.graph
        check_on_host(bound, graph.name, self.target)
        results = results_of(graph, names, bound)
        announced(bound.outputs)
        addresses = [bound.inputs[name].address if name in bound.inputs else 0 for name in graph.inputs]
        addresses += [result.address for result in results]
        first, blocks = len(addresses), [np.empty(0, np.uint8)] * len(self.plan.blocks)
        addresses += [0] * len(blocks)
        held = 0
        for step in self._steps.get(None, self._made):
            for number in step.begins:
                blocks[number] = _empty(graph.values[self.plan.blocks[number].name])
                addresses[first + number] = numpy_address(blocks[number])
                held += blocks[number].nbytes
            self.peak = max(self.peak, held)
            for part in step.parts:
                part.run(addresses, get_threads())
            for number in step.ends:
                held -= blocks[number].nbytes
                blocks[number] = np.empty(0, np.uint8)
        return tuple(result.finish() for result in results)

    def _made(self) -> tuple[_Step, ...]:
        plan, graph = self.plan, self.plan.graph
        pieces = Pieces(graph, placement(plan, apart=True), self.kernels, graph.inputs)
        memories = pieces.memories + len(plan.blocks)
        done = [pieces.of(node) for node in graph.nodes]
        return tuple(
            _Step(
                tuple(number for number, block in enumerate(plan.blocks) if block.first == at),
                tuple(joined(own, memories)),
                tuple(number for number, block in enumerate(plan.blocks) if block.last == at),
            )
            for at, own in enumerate([*done, pieces.copies()])
        )

    def warm(self, _bound: Arguments, _names: Sequence[str]) -> None:
        """Each call allocates anew: none is repeated in a shorter way."""


def _empty(value: Value) -> np.ndarray:
    return np.empty(numbers(value.shape, value.name), numpy_dtype(value.type))
