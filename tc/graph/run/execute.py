"""``Execution``: a planned graph that runs on this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tc.api.available import target_of_call
from tc.base.once import Once
from tc.dispatch.array_placement import check_on_host
from tc.dispatch.warm import Plan
from tc.graph.memory.offsets import ALIGNMENT
from tc.graph.memory.places import placement
from tc.graph.run.arrays import numbers
from tc.graph.run.kernels import compiled
from tc.graph.run.parts import Kernels, Part, Pieces, joined
from tc.graph.run.results import announced, results_of
from tc.runtime.frameworks.arrays import allocator, announcer
from tc.runtime.frameworks.numpy_arrays import empty_bytes, numpy_address
from tc.runtime.host.threads import get_threads
from tc.runtime.host_program import HostProgram, PackedProgram
from tc.runtime.views.view import Framework

if TYPE_CHECKING:
    import numpy as np

    from tc.dispatch.arguments import Arguments
    from tc.graph.memory.plan import MemoryPlan


class Execution:
    """A plan whose intermediate values lie in an arena, of which each run has one.  Safe to call from many threads.

    ``kernels``: those of the calls, by the names of results; None compiles them.
    """

    def __init__(self, plan: MemoryPlan, target: str | None, kernels: Kernels | None = None) -> None:
        self.plan: Final = plan
        self.target: Final = target_of_call(target)
        self.kernels: Final = compiled(plan, target) if kernels is None else kernels
        self._placed: Final = placement(plan)
        # Of ended calls of several parts.
        self._arenas: Final[deque[np.ndarray]] = deque()
        # By the order of the inputs; made when they run, since kernels may be for another machine.
        self._parts: Final[Once[tuple[str, ...], list[Part]]] = Once()

    def run(self, bound: Arguments, names: Sequence[str]) -> tuple[object, ...]:
        """The outputs in order, which the caller calls ``names``."""
        graph = self.plan.graph
        check_on_host(bound, graph.name, self.target)
        results = results_of(graph, names, bound)
        announced(bound.outputs)
        # Callers may leave out what no node uses.
        addresses = [bound.inputs[name].address if name in bound.inputs else 0 for name in graph.inputs]
        addresses += [result.address for result in results]
        parts = self._parts_for(graph.inputs)
        if _program(parts) is not None:  # which has an arena of its own
            parts[0].run(addresses, get_threads())
        else:
            self._run_parts(parts, addresses)
        return tuple(result.finish() for result in results)

    def _run_parts(self, parts: Sequence[Part], addresses: list[int]) -> None:
        """Runs them in an arena, that of an earlier call if there is one."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = empty_bytes(self.plan.arena, ALIGNMENT)
        try:
            for part in parts:
                part.run([*addresses, numpy_address(arena)], get_threads())
        finally:
            self._arenas.append(arena)

    def warm(self, bound: Arguments, names: Sequence[str]) -> Plan | None:
        """How calls are repeated that bring arrays like these, in the same order; None where they are not alike.

        The arrays lie in order, as they came.
        """
        program, graph = _program(self._parts_for(tuple(bound.inputs))), self.plan.graph
        if program is None or bound.framework is Framework.JAX or bound.aliases(graph.name):
            return None
        values = [graph.values[name] for name in graph.outputs]
        given = [bound.outputs.get(name) for name in names]
        types = (*(view.type for view in bound.inputs.values()), *(value.type for value in values))
        return Plan(
            program=program,
            element_sizes=tuple(type.itemsize for type in types),
            allocate=tuple(
                allocator(bound.framework, numbers(value.shape, value.name), value.type) if view is None else None
                for value, view in zip(values, given, strict=True)
            ),
            announce=tuple(None if view is None else announcer(view.framework) for view in given),
            threads=get_threads,
            owner=self,
        )

    def _parts_for(self, inputs: tuple[str, ...]) -> list[Part]:
        def make() -> list[Part]:
            pieces = Pieces(self.plan.graph, self._placed, self.kernels, inputs)
            return joined(pieces.all(), pieces.memories, self.plan.arena)

        return self._parts.get(inputs, make)


def _program(parts: Sequence[Part]) -> HostProgram | None:
    """The program that is the only part; None if there are others, or none."""
    if len(parts) != 1 or not isinstance(parts[0], PackedProgram):
        return None
    return parts[0].program
