"""Loops whose conditions depend on what they compute: the body is a model of its own, called until one does not hold.

Its kernels are compiled once, whatever the number of steps is.  What the loop does not change are operands of the body,
or its constants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.source import Declared
from tc.graph.onnx.needed import operands_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from tc.graph.ir.source import RunSource, Source
    from tc.graph.ir.values import Value


@frozen
class Signature:
    """How a loop calls its body.  ``changed``: the places of what it carries from step to step, and does change."""

    step: str
    condition: str
    carried: tuple[str, ...]
    results: tuple[str, ...]
    changed: tuple[int, ...]

    @staticmethod
    def of(body: GraphProto, carried: int) -> Signature:
        """That of a body with so many values that are carried."""
        step, condition, *names = (entry.name for entry in body.input)
        results = tuple(entry.name for entry in body.output)
        changed = tuple(place for place in range(carried) if results[1 + place] != names[place])
        return Signature(step, condition, tuple(names), results, changed)

    @property
    def scanned(self) -> tuple[str, ...]:
        """The results of which all steps are kept."""
        return self.results[1 + len(self.carried) :]

    @property
    def computed(self) -> int:
        """How many results of the loop its steps compute."""
        return len(self.changed) + len(self.scanned)

    def whole(self, carried: Sequence[Value], computed: Sequence[Value]) -> list[Value]:
        """All results of the loop: what was carried, then what was scanned."""
        found = list(carried)
        for place, value in zip(self.changed, computed, strict=False):
            found[place] = value
        return [*found, *computed[len(self.changed) :]]


@frozen
class Repetition:
    """A loop that runs between two graphs.

    ``names``: of the inputs of the body that operands are: those that change, then others.  ``counters``: those that
    depend on nothing else, whose values are the same in all calls.  ``count``: the most steps.  ``origin``: the node.
    """

    body: Source
    signature: Signature
    names: tuple[str, ...]
    counters: frozenset[str]
    count: int | None
    origin: str

    def compute(self, operands: Sequence[np.ndarray], run: RunSource) -> list[np.ndarray]:
        """What the steps compute: at least one of them."""
        own, given = self.signature, dict(zip(self.names, operands, strict=True))
        rows: dict[str, list[np.ndarray]] = {name: [] for name in own.scanned}
        step, goes_on = 0, True
        while goes_on and step != self.count:
            results = run(self.body, {own.step: np.array(step), **given}, self.counters)
            found = dict(zip(self.body.outputs, results, strict=True))
            given |= {own.carried[place]: found[own.results[1 + place]] for place in own.changed}
            for name, values in rows.items():
                values.append(found[name])
            goes_on = self._holds(found[own.results[0]])
            step += 1
        return [*(given[own.carried[place]] for place in own.changed), *map(self._stacked, own.scanned, rows.values())]

    def _holds(self, condition: np.ndarray) -> bool:
        if condition.size != 1:
            raise GraphError(f"{self.origin}: a condition has one element, got {condition.shape}")
        return bool(condition.reshape(())[()])

    def _stacked(self, name: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        shapes = {row.shape for row in rows}
        if len(shapes) > 1:
            raise GraphError(f"{self.origin}: the steps give `{name}` several shapes: {sorted(shapes)}")
        return np.stack(rows)


def counters_of(body: GraphProto, own: Signature, varying: Collection[str]) -> frozenset[str]:
    """The number of the step, and what is carried and computed from such and from constants alone.

    ``varying``: inputs of the body that are no constants.
    """
    makers = {name: node for node in body.node for name in node.output if name}
    found = {own.step} | {own.carried[place] for place in own.changed}
    while True:
        others = set(varying) - found
        kept = {own.step} | {
            own.carried[p] for p in own.changed if others.isdisjoint(_used_by(own.results[1 + p], makers))
        }
        if found <= kept:
            return frozenset(found)
        found &= kept


def _used_by(name: str, makers: Mapping[str, NodeProto]) -> set[str]:
    """All names that a value depends on."""
    found, waiting = set[str](), [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            node = makers.get(name)
            waiting += () if node is None else operands_of(node)
    return found


def declared(own: Signature, operands: Mapping[str, Value]) -> tuple[Declared, ...]:
    """The inputs of the body: the number of the step, and operands of any shape, which may change from step to step."""
    names = ((name, value.type) for name, value in operands.items())
    return tuple(Declared(name, type, None) for name, type in ((own.step, ScalarType.INT64), *names))
