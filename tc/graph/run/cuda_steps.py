"""What a plan does on a GPU, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.memory.places import Copy, Memory, Place, Placement
from tc.graph.run.arrays import view_at
from tc.runtime.cuda.cuda import CudaKernel
from tc.runtime.frameworks.array_bytes import extent
from tc.runtime.frameworks.borrow import borrow, borrow_to_write
from tc.runtime.frameworks.device_array import read_bytes, write_bytes
from tc.runtime.frameworks.numpy_arrays import numpy_address
from tc.runtime.host_program import Word
from tc.runtime.views.view import CudaMemory

if TYPE_CHECKING:
    from tc.graph.ir.graph import Graph
    from tc.graph.ir.nodes import Node
    from tc.graph.ir.values import Value
    from tc.graph.run.parts import Kernels


@frozen
class KernelStep:
    """A kernel, where its operands are, and the place in the model that it comes from."""

    kernel: CudaKernel
    operands: tuple[Word, ...]
    origin: str


@frozen
class FunctionStep:
    """What the host computes, for which everything waits."""

    node: Host
    operands: tuple[tuple[Word, Value], ...]
    results: tuple[tuple[Word, Value], ...]

    def run(self, addresses: Sequence[int], memory: CudaMemory) -> None:
        """Brings the operands to this machine, and the results to the device."""
        views = [replace(view_at(word.at(addresses), value), memory=memory) for word, value in self.operands]
        found = self.node.function([borrow(view) for view in views])
        for (word, value), array in zip(self.results, found, strict=True):
            _write(word.at(addresses), value, array, memory.device)


@frozen
class CopyStep:
    """An output that no kernel writes."""

    target: Word
    source: Word
    bytes: int


CudaStep: TypeAlias = KernelStep | FunctionStep | CopyStep


def steps_of(graph: Graph, placed: Placement, kernels: Kernels) -> tuple[CudaStep, ...]:
    """The steps of a plan.

    Memories are numbered: the inputs, the outputs, the arena, the constants, each in the order of the graph.
    """
    maker = _Steps(graph, placed, kernels)
    return (
        *(maker.of(node) for node in graph.nodes if not isinstance(node, View | Join)),
        *map(maker.copy, placed.copies),
    )


class _Steps:
    def __init__(self, graph: Graph, placed: Placement, kernels: Kernels) -> None:
        self._graph: Final = graph
        self._placed: Final = placed
        self._kernels: Final = kernels
        self._outputs: Final = len(graph.inputs)
        self._arena: Final = self._outputs + len(graph.outputs)

    def of(self, node: Node) -> CudaStep:
        match node:
            case Call():
                kernel = self._kernels[node.results]
                assert isinstance(kernel.loaded, CudaKernel)
                convention = kernel.executable.convention
                names = dict(zip(convention.interface.names, (*node.operands, *node.results), strict=True))
                order = [names[operand.name] for operand in convention.operands]
                operands = tuple(self._word(self._placed.places[name]) for name in order)
                return KernelStep(kernel.loaded, operands, node.origin)
            case Host():
                return FunctionStep(node, self._located(node.operands), self._located(node.results))
            case View() | Join():
                raise AssertionError("views and joins do nothing")
            case _:
                assert_never(node)

    def copy(self, copy: Copy) -> CudaStep:
        return CopyStep(self._word(copy.target), self._word(copy.source), copy.bytes)

    def _located(self, names: Sequence[str]) -> tuple[tuple[Word, Value], ...]:
        return tuple((self._word(self._placed.places[name]), self._graph.values[name]) for name in names)

    def _word(self, place: Place) -> Word:
        match place.memory:
            case Memory.INPUT:
                first = 0
            case Memory.OUTPUT:
                first = self._outputs
            case Memory.ARENA:
                first = self._arena
            case Memory.CONSTANT:
                first = self._arena + 1
            case _:
                assert_never(place.memory)
        return Word(first + place.number, place.offset)


def _write(address: int, value: Value, array: np.ndarray, device: int) -> None:
    """Puts the elements of an array where a value is on a device; what lies between them stays."""
    view = view_at(address, value)
    begin, end = extent(view)
    if begin == end:
        return
    memory = bytearray(end - begin) if value.is_contiguous else read_bytes(begin, end - begin, device)
    host = numpy_address(np.frombuffer(memory, np.uint8))
    borrow_to_write(replace(view, address=host + address - begin))[...] = array
    write_bytes(begin, host, end - begin, device)
