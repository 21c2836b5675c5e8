"""``Execution``: a planned graph compiled for one target, and run in an arena of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import numpy as np

from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.memory.offsets import ALIGNMENT
from tc.graph.memory.plan import MemoryPlan
from tc.graph.run.arrays import lying, numbers, view_of
from tc.graph.run.kernels import compiled
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel
    from tc.graph.ir.values import Value

Arrays = dict[str, np.ndarray]
Step = Callable[[Arrays], None]
Kernels: TypeAlias = "Mapping[tuple[str, ...], Kernel]"


class Execution:
    """The nodes of a graph as steps in order, which pass arrays by the names of values.

    ``kernels``: those of the calls, by the names of results; None compiles them.
    Each call at a time has an arena; those of ended calls are used again.  Safe to call from many threads.
    """

    def __init__(self, plan: MemoryPlan, target: str | None, kernels: Kernels | None = None) -> None:
        self.plan: Final = plan
        graph, roots = plan.graph, plan.storage.roots
        given = {*graph.inputs, *graph.constants}
        returned = {roots[name] for name in graph.outputs} - given
        self._fresh: Final = tuple(returned)
        # Views of what each call brings or allocates are made by each call; others lie in the arena, or are constant.
        varying = {name for name, root in roots.items() if root in returned or root in graph.inputs}
        computed = [node for node in graph.nodes if not isinstance(node, Join)]
        moved = [node for node in computed if not isinstance(node, View) or node.result in varying]
        self._fixed: Final = [node for node in computed if isinstance(node, View) and node.result not in varying]
        self._parts: Final = [name for name in plan.storage.starts if roots[name] in returned]
        self.kernels: Final = compiled(plan, target) if kernels is None else kernels
        self._steps: Final = [step_of(node, plan, self.kernels) for node in moved]
        self._lock: Final = threading.Lock()
        self._idle: Final[list[Arrays]] = []

    def run(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs in order."""
        frame = self._taken()
        graph = self.plan.graph
        arrays = {**frame, **inputs}
        for name in self._fresh:
            arrays[name] = empty(graph.values[name])
        for name in self._parts:
            arrays[name] = part_of(arrays, self.plan, name)
        for step in self._steps:
            step(arrays)
        with self._lock:
            self._idle.append(frame)
        return tuple(result_of(self.plan, arrays, name) for name in graph.outputs)

    def _taken(self) -> Arrays:
        with self._lock:
            return self._idle.pop() if self._idle else self._frame()

    def _frame(self) -> Arrays:
        """An arena, with the arrays of the values in it, and the constants."""
        graph, plan = self.plan.graph, self.plan
        whole = np.empty(plan.arena + ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % ALIGNMENT
        arrays: Arrays = dict(graph.constants)
        placed = dict.fromkeys((*plan.offsets, *(name for node in graph.nodes for name in _written(node))))
        for name in placed:
            root, value = plan.storage.roots[name], graph.values[name]
            if root in plan.offsets:
                begin = start + plan.offsets[root] + plan.storage.starts.get(name, 0) * value.type.itemsize
                arrays[name] = lying(whole[begin:], value)
        for node in self._fixed:
            arrays[node.result] = view_of(
                arrays[node.operand], node, graph.values[node.operand], graph.values[node.result]
            )
        return arrays


def step_of(node: Node, plan: MemoryPlan, kernels: Kernels) -> Step:
    """What runs a node: it reads operands by name, and writes results that exist, or makes views."""
    values = plan.graph.values
    match node:
        case Call():
            return _call(kernels[node.results], node.operands, node.results)
        case View():

            def view(arrays: Arrays) -> None:
                arrays[node.result] = view_of(arrays[node.operand], node, values[node.operand], values[node.result])

            return view
        case Join():
            return _nothing
        case Host():

            def host(arrays: Arrays) -> None:
                found = node.function([arrays[name] for name in node.operands])
                for name, array in zip(node.results, found, strict=True):
                    arrays[name][...] = array

            return host
        case _:
            assert_never(node)


def _nothing(_arrays: Arrays) -> None:
    """What a join does: its operands are in their places."""


def _written(node: Node) -> tuple[str, ...]:
    """The values of a node that are no views."""
    return () if isinstance(node, View) else node.results


def _call(kernel: Kernel, operands: tuple[str, ...], results: tuple[str, ...]) -> Step:
    if len(results) == 1:
        (result,) = results

        def run(arrays: Arrays) -> None:
            kernel(*[arrays[name] for name in operands], out=arrays[result])

        return run

    def run_all(arrays: Arrays) -> None:
        kernel(*[arrays[name] for name in operands], out=tuple([arrays[name] for name in results]))

    return run_all


def result_of(plan: MemoryPlan, arrays: Arrays, name: str) -> np.ndarray:
    """An output; what is an input or a constant is copied."""
    graph, root = plan.graph, plan.storage.roots[name]
    given = root in graph.inputs or root in graph.constants
    return arrays[name].copy() if given else arrays[name]


def part_of(arrays: Arrays, plan: MemoryPlan, name: str) -> np.ndarray:
    """The array of a value that lies in another one, whose array there is."""
    value, root = plan.graph.values[name], arrays[plan.storage.roots[name]]
    begin = plan.storage.starts[name] * value.type.itemsize
    return lying(root.reshape(-1).view(np.uint8)[begin:], value)


def empty(value: Value) -> np.ndarray:
    """Memory for a value."""
    return np.empty(numbers(value.shape, value.name), numpy_dtype(value.type))
