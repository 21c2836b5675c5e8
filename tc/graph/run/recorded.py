"""``Recorded``: what was measured of the kernels of graphs, by the cache of this process or by another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from tc.api.kernels import process_cache
from tc.api.together import Wanted
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import Shape
from tc.graph.memory.storage import may_replace
from tc.graph.partition.costs import NO_RECORD, Place, Record
from tc.graph.run.arrays import numbers
from tc.graph.run.comprehensions import comprehension_of
from tc.graph.run.kernels import layouts_of, spec_of
from tc.store.measured_machine import measured_machine
from tc.store.wanted import shapes_text, threads_of
from tc.targets.target import CudaTarget, Target

if TYPE_CHECKING:
    from tc.store.cached import KernelCache

# Seconds of the best kernel, and of the one with the default options.
Times: TypeAlias = tuple[float, float]


class Recorded:
    """What a cache knows of kernels for a target.  ``shapes``: of what it may know, as ``shapes_text``; None: of
    everything.
    """

    def __init__(self, target: Target, cache: KernelCache, shapes: frozenset[str] | None = None) -> None:
        self.here: Final = place_of(target)
        self._target: Final = target
        self._cache: Final = cache
        self._shapes: Final = shapes
        self._known: Final[dict[Wanted, Mapping[Place, Times]]] = {}

    def may_know(self, shapes: Sequence[Shape]) -> bool:
        """Whether a kernel for operands of these shapes may have been measured."""
        return self._shapes is None or shapes_text([numbers(shape, "an operand") for shape in shapes]) in self._shapes

    def seconds(self, graph: Graph, calls: Sequence[Call]) -> list[Mapping[Place, float]]:
        """By place, the least of the kernels for each call, in the place of an operand or not."""
        forms = [list(forms_of(graph, call)) for call in calls]
        self._look_up([wanted for own in forms for wanted in own])
        return [self._least(own) for own in forms]

    def times(self, wanted: Wanted) -> Mapping[Place, Times]:
        """By place, the seconds of one kernel, and of the one with the default options."""
        self._look_up([wanted])
        return self._known[wanted]

    def _look_up(self, several: Sequence[Wanted]) -> None:
        new = [wanted for wanted in dict.fromkeys(several) if wanted not in self._known]
        asked = [wanted.comprehension.kernels.wanted(wanted.signature, self._target) for wanted in new]
        if asked:
            self._known.update(zip(new, self._cache.times(asked), strict=True))

    def _least(self, forms: Sequence[Wanted]) -> Mapping[Place, float]:
        found: dict[Place, float] = {}
        for wanted in forms:
            for place, (seconds, _) in self._known[wanted].items():
                found[place] = min(seconds, found.get(place, seconds))
        return found


def forms_of(graph: Graph, call: Call) -> Iterator[Wanted]:
    """The kernels that a call may have: one that writes its result elsewhere, and those that write it in place."""
    comprehension = comprehension_of(call.program)
    specs = tuple(spec_of(graph.values[name]) for name in call.operands)
    yield Wanted(comprehension, specs, out=layouts_of(graph, call))
    for name, argument in zip(call.operands, call.program.arguments, strict=True):
        if len(call.results) == 1 and call.operands.count(name) == 1 and may_replace(graph, call, name):
            yield Wanted(comprehension, specs, ((call.program.results[0], argument),))


def recorded(target: Target) -> Record:
    """What the cache of this process knows of kernels for a target."""
    cache = process_cache()
    shapes = frozenset[str]() if cache is None else cache.measured_shapes(target)
    return NO_RECORD if cache is None or not shapes else Recorded(target, cache, shapes)


def place_of(target: Target) -> Place:
    """Where kernels of a target run here."""
    return measured_machine(gpu=isinstance(target, CudaTarget)), threads_of(target)
