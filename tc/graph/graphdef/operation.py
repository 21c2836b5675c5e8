"""``Operation``: one node as its rule sees it; and ``Operator``: a rule, and how many operands it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.graphdef.nodes import NodeDef, StaticShape
from tc.graph.graphdef.tensors import Tensor, type_of
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, Shape, number, shape_text
from tc.graph.ir.values import Value

# What computes a node: its results in order, None for one that is not wanted.
Rule: TypeAlias = "Callable[[Operation], Sequence[Value | None]]"
# Contents with more elements are computed by kernels, whatever is known of them.
MOST_FOLDED: Final = 4096
# What attributes of a kind are called in messages.
_KINDS: Final = {
    "s": "a text", "i": "an integer", "f": "a number", "b": "true or false", "type": "a type", "shape": "a shape",
    "tensor": "a tensor", "func": "a function", "placeholder": "a placeholder", "": "nothing",
}  # fmt: skip


@frozen
class Operator:
    """``rule`` takes ``fixed`` operands, and ``lists`` lists of as many as the attribute ``N`` says."""

    rule: Rule
    fixed: int
    lists: int = 0

    def require_arity(self, node: NodeDef) -> None:
        """GraphError where the node has not as many operands as the operator takes."""
        given = len(node.inputs)
        length = node.attributes.get("N")
        if self.lists and length is None:
            wanted = f"at least {self.fixed + self.lists}"
            fits = given >= self.fixed + self.lists and (given - self.fixed) % self.lists == 0
        else:
            count = 0
            if self.lists and length is not None:
                if not isinstance(length.value, int) or length.value < 1:
                    raise GraphError(f"{node.place}: the attribute `N` must be 1 or more, and is {length.value}")
                count = length.value
            total = self.fixed + self.lists * count
            wanted, fits = str(total), given == total
        if not fits:
            noun = "operand" if wanted.split()[-1] == "1" else "operands"
            raise GraphError(f"{node.place} takes {wanted} {noun}, got {given}")


class Operation:
    """One node: its operands in order, its attributes, and the graph to add to.  ``wanted``: which results are used."""

    def __init__(
        self,
        builder: Builder,
        node: NodeDef,
        operands: Sequence[Value],
        wanted: frozenset[int],
        contents: Callable[[Value], np.ndarray],
        known: Callable[[np.ndarray, ScalarType], Value],
    ) -> None:
        self.builder: Final = builder
        self.node: Final = node
        self.kind: Final = node.operator
        self.operands: Final = tuple(operands)
        self.wanted: Final = wanted
        self._contents: Final = contents
        self._known: Final = known

    # --- operands ----------------------------------------------------------------------------------------

    def operand(self, index: int, rank: int | None = None) -> Value:
        """The operand at this place; GraphError if it has not so many dimensions."""
        found = self.operands[index]
        if rank is not None and len(found.shape) != rank:
            noun = "dimension" if rank == 1 else "dimensions"
            raise self.error(f"operand {index} must have {rank} {noun}, and has {len(found.shape)}")
        return found

    def contents(self, index: int) -> np.ndarray:
        """What an operand holds, which shapes depend on: integers, among which there may be open sizes, or floats."""
        return self._contents(self.operands[index])

    def sizes(self, index: int) -> tuple[Dimension, ...]:
        """The contents of an operand as sizes."""
        return tuple(
            int(size) if isinstance(size, np.generic | int) else size for size in self.contents(index).reshape(-1)
        )

    def integers(self, index: int) -> tuple[int, ...]:
        """The contents of an operand as numbers; GraphError where one is open."""
        return tuple(number(size, f"`{self.operands[index].name}`") for size in self.sizes(index))

    def shape(self, index: int, what: str = "extents") -> Shape:
        """The contents of an operand as sizes, none of which is negative."""
        found = self.sizes(index)
        if any(isinstance(size, int) and size < 0 for size in found):
            raise self.error(f"{what} must not be negative, and are {shape_text(found)}")
        return found

    def whole(self, index: int) -> int:
        """The contents of an operand of one element as a number."""
        found = self.integers(index)
        if len(found) != 1:
            raise self.error(f"operand {index} must have one element, and has {len(found)}")
        return found[0]

    def axis(self, axis: int, rank: int) -> int:
        """An axis from 0 on; GraphError if there is none."""
        if not -rank <= axis < rank:
            raise self.error(f"there is no axis {axis} in a tensor with {rank} dimensions")
        return axis % rank

    # --- attributes --------------------------------------------------------------------------------------

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute; GraphError if it is missing and has no default."""
        return int(self._attribute(name, "i", default))

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute; GraphError if it is missing and has no default."""
        return float(self._attribute(name, "f", default))

    def flag(self, name: str, default: bool | None = None) -> bool:
        """An attribute; GraphError if it is missing and has no default."""
        return bool(self._attribute(name, "b", default))

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute; GraphError if it is missing and has no default."""
        found = self._attribute(name, "s", default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

    def type(self, name: str, default: ScalarType | None = None) -> ScalarType:
        """An attribute; GraphError if it is missing and has no default."""
        found = self._attribute(name, "type", default)
        return found if isinstance(found, ScalarType) else type_of(int(found), f"{self.node.place}: `{name}`")

    def list(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of integers; nothing if it is missing."""
        found = self.node.attributes.get(name)
        if found is not None and found.kind not in ("list(i)", "list()", ""):
            raise self.error(f"the attribute `{name}` must be a list of integers")
        return () if found is None or found.value is None else tuple(found.value)  # type: ignore[arg-type]

    def tensor(self, name: str) -> Tensor:
        """An attribute; GraphError if it is missing, or of a type that is not supported."""
        found = self._attribute(name, "tensor", None)
        if isinstance(found, str):
            raise self.error(found)
        assert isinstance(found, Tensor)
        return found

    def _attribute(self, name: str, kind: str, default: object) -> Any:
        found = self.node.attributes.get(name)
        if found is None:
            if default is None:
                raise self.error(f"the attribute `{name}` is missing")
            return default
        if found.kind != kind:
            given = _KINDS.get(found.kind, "a list")
            raise self.error(f"the attribute `{name}` must be {_KINDS[kind]}, and is {given}")
        return found.value

    # --- results -----------------------------------------------------------------------------------------

    def one(self, text: str, *operands: Value) -> Value:
        """The only result of a comprehension."""
        (found,) = self.builder.call(text, *operands)
        return found

    def known(self, array: np.ndarray, type: ScalarType) -> Value:
        """A result whose contents are known: numbers of this type, among which there may be open sizes."""
        return self._known(array, type)

    def error(self, message: str) -> GraphError:
        """The error with the place of the node."""
        return GraphError(f"{self.node.place}: {message}")


def shape_attribute(node: NodeDef, name: str = "shape") -> StaticShape:
    """The shape that an attribute says; None where it says nothing."""
    found = node.attributes.get(name)
    if found is None or found.value is None:
        return None
    if found.kind != "shape":
        given = _KINDS.get(found.kind, "a list")
        raise GraphError(f"{node.place}: the attribute `{name}` must be a shape, and is {given}")
    return found.value  # type: ignore[return-value]  # shapes are read as such
