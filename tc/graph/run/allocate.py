"""``Allocating``: runs a plan without an arena: values are allocated when made, and freed after their last use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tc.graph.ir.nodes import View
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import last_uses
from tc.graph.run.execute import Arrays, Kernels, empty, part_of, result_of, step_of
from tc.graph.run.kernels import compiled


class Allocating:
    """The nodes of a graph as steps in order.

    ``kernels``: those of the calls, by the names of results; None compiles them.
    ``peak``: the most bytes of arrays of intermediate values that a call has held at a time.
    """

    def __init__(self, plan: MemoryPlan, target: str | None, kernels: Kernels | None = None) -> None:
        self.plan: Final = plan
        self.kernels: Final = compiled(plan, target) if kernels is None else kernels
        self.peak = 0
        self._steps: Final = [step_of(node, plan, self.kernels) for node in plan.graph.nodes]
        last = last_uses(plan.graph, plan.storage.roots)
        self._dead: Final = [
            [name for name, end in last.items() if end == at and name in plan.offsets]
            for at in range(len(plan.graph.nodes))
        ]

    def run(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs in order."""
        plan, graph = self.plan, self.plan.graph
        arrays: Arrays = {**graph.constants, **inputs}
        held = 0
        for node, step, dead in zip(graph.nodes, self._steps, self._dead, strict=True):
            for name in () if isinstance(node, View) else node.results:
                root = plan.storage.roots[name]
                if root not in arrays:
                    arrays[root] = empty(graph.values[root])
                    held += arrays[root].nbytes if root in plan.offsets else 0
                if name in plan.storage.starts:
                    arrays[name] = part_of(arrays, plan, name)
                elif name in plan.storage.in_place:
                    arrays[name] = arrays[plan.storage.in_place[name]]
            self.peak = max(self.peak, held)
            step(arrays)
            for name in dead:
                held -= arrays[name].nbytes
                for other in [own for own, root in plan.storage.roots.items() if root == name]:
                    arrays.pop(other, None)
        return tuple(result_of(plan, arrays, name) for name in graph.outputs)
