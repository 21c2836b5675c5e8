"""What a plan does on this machine, in parts that run one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.dispatch.sites import HostSite
from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.memory.places import Copy, Memory, Place, Placement
from tc.graph.run.arrays import view_at
from tc.graph.run.origins import at_origin
from tc.runtime.frameworks.borrow import borrow_to_write
from tc.runtime.frameworks.numpy_arrays import numpy_address
from tc.runtime.host_program import HostProgram, PackedProgram, Step, Word, copying
from tc.runtime.loaded_kernel import LoadedKernel
from tc.runtime.views.view import Framework

if TYPE_CHECKING:
    import numpy as np

    from tc.dispatch.kernel import Kernel
    from tc.graph.ir.graph import Graph
    from tc.graph.ir.nodes import Node
    from tc.graph.ir.values import Value

Kernels: TypeAlias = "Mapping[tuple[str, ...], Kernel]"


class Part(Protocol):
    """Some nodes of a plan."""

    def run(self, addresses: Sequence[int], threads: int) -> None:
        """Runs them on memories at these addresses; raises what they find there."""


# A kernel that can be part of a program, or what is a part of its own.
Piece: TypeAlias = Step | Part


class Pieces:
    """Makes the pieces of a plan.

    ``inputs``: the order in which the memories of inputs are numbered, of all that nodes use and perhaps others.
    Those of the outputs come behind them, and the arena, or what is allocated in its place, last.
    """

    def __init__(self, graph: Graph, placed: Placement, kernels: Kernels, inputs: Sequence[str]) -> None:
        self._graph: Final = graph
        self._placed: Final = placed
        self._kernels: Final = kernels
        self._constants: Final = tuple(map(numpy_address, graph.constants.values()))
        self._inputs: Final = tuple(inputs)
        self._outputs: Final = len(inputs)
        self.memories: Final = len(inputs) + len(graph.outputs)

    def all(self) -> list[Piece]:
        """Those of all nodes, and of outputs that are copied in the end."""
        return [*(piece for node in self._graph.nodes for piece in self.of(node)), *self.copies()]

    def of(self, node: Node) -> list[Piece]:
        """Those of a node: one, or none."""
        match node:
            case Call():
                return [self._call(node)]
            case View() | Join():
                return []
            case Host():
                return [_Function(node, self._located(node.operands), self._located(node.results))]
            case _:
                assert_never(node)

    def copies(self) -> list[Piece]:
        """Those of outputs that no kernel writes."""
        return [self._copy(copy) for copy in self._placed.copies]

    def _call(self, call: Call) -> Piece:
        kernel = self._kernels[call.results]
        loaded, executable = kernel.loaded, kernel.executable
        names = zip(executable.convention.interface.names, (*call.operands, *call.results), strict=True)
        words = {own: self._word(self._placed.places[name]) for own, name in names}
        if isinstance(loaded, LoadedKernel):
            step = kernel.step(words)
            return replace(step, report=lambda fault: at_origin(call.origin, lambda: step.report(fault)))
        from tc.runtime.opencl.opencl import OpenClKernel

        assert isinstance(loaded, OpenClKernel)
        site = HostSite(loaded, executable.convention, executable.most_threads, Framework.NUMPY)
        return _Launch(site, tuple(words[operand.name] for operand in executable.convention.operands), call.origin)

    def _copy(self, copy: Copy) -> Step:
        return copying(self._word(copy.target), self._word(copy.source), copy.bytes)

    def _located(self, names: Sequence[str]) -> tuple[tuple[Word, Value], ...]:
        return tuple((self._word(self._placed.places[name]), self._graph.values[name]) for name in names)

    def _word(self, place: Place) -> Word:
        match place.memory:
            case Memory.INPUT:
                return Word(self._inputs.index(self._graph.inputs[place.number]), place.offset)
            case Memory.OUTPUT:
                return Word(self._outputs + place.number, place.offset)
            case Memory.CONSTANT:
                return Word.number(self._constants[place.number] + place.offset)
            case Memory.ARENA:
                return Word(self.memories + place.number, place.offset)
            case _:
                assert_never(place.memory)


def joined(pieces: Sequence[Piece], memories: int, arena: int = 0) -> list[Part]:
    """The pieces in order as parts: kernels that follow each other are one program.

    ``arena``: its bytes, where the only part is to have one for each run; otherwise the caller brings it.
    """
    groups: list[list[Step] | Part] = []
    for piece in pieces:
        if not isinstance(piece, Step):
            groups.append(piece)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    own = arena if len(groups) == 1 else 0
    return [_program(group, memories, own) if isinstance(group, list) else group for group in groups]


def _program(steps: Sequence[Step], memories: int, arena: int) -> PackedProgram:
    return PackedProgram(HostProgram(tuple(steps), memories, arena))


@frozen
class _Launch:
    """A kernel that a driver runs."""

    site: HostSite
    words: tuple[Word, ...]
    origin: str

    def run(self, addresses: Sequence[int], _threads: int) -> None:
        at_origin(self.origin, lambda: self.site.launch([word.at(addresses) for word in self.words], ()))


class _Function:
    """What the host computes.  Arrays that lie where those of the call before did are made once."""

    def __init__(
        self, node: Host, operands: Sequence[tuple[Word, Value]], results: Sequence[tuple[Word, Value]]
    ) -> None:
        self._node: Final = node
        self._words: Final = (*operands, *results)
        self._operands: Final = len(operands)
        self._latest: tuple[list[int], list[np.ndarray]] | None = None

    def run(self, addresses: Sequence[int], _threads: int) -> None:
        arrays = self._arrays([word.at(addresses) for word, _ in self._words])
        found = self._node.function(arrays[: self._operands])
        for array, computed in zip(arrays[self._operands :], found, strict=True):
            array[...] = computed

    def _arrays(self, places: list[int]) -> list[np.ndarray]:
        latest = self._latest
        if latest is None or latest[0] != places:
            values = [value for _, value in self._words]
            views = map(view_at, places, values)
            self._latest = latest = places, [borrow_to_write(view) for view in views]
        return latest[1]
