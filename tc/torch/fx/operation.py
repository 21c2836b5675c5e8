"""``Operation``: a call of an operator of ATen, as its rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import torch
from torch import fx

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.torch.fx.types import TYPES, hinted_shape

# What stands for a node: a tensor, several ones, or a number that sizes are computed with.
Held: TypeAlias = "Value | tuple[Value | None, ...] | bool | int | float | None"
# Is told how much has been done, and of what.
At: TypeAlias = "Callable[[int, str], None]"


class UnclaimedError(Exception):
    """Why an operator is left to PyTorch, in words that follow its name."""


class Operation:
    """The arguments by their names in the schema, and the types of the results."""

    def __init__(self, node: fx.Node, builder: Builder, held: Mapping[fx.Node, Held]) -> None:
        self.node: Final = node
        self.builder: Final = builder
        self._held: Final = held
        schema = node.target._schema  # type: ignore[union-attr]  # it is an overload of an operator
        self._given: Final[dict[str, Any]] = {}
        for at, argument in enumerate(schema.arguments):
            given = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            put: Any = held.__getitem__
            self._given[argument.name] = fx.node.map_arg(given, put)

    @property
    def name(self) -> str:
        """As in ``aten.add.Tensor``."""
        return str(self.node.target)

    @property
    def types(self) -> tuple[ScalarType | None, ...]:
        """The types of the results in order; None of those that are no tensors."""
        found = self.node.meta.get("val")
        every = found if isinstance(found, list | tuple) else (found,)
        return tuple(TYPES.get(one.dtype) if isinstance(one, torch.Tensor) else None for one in every)

    @property
    def type(self) -> ScalarType:
        """The type of the first result; UnclaimedError where it is none of ours."""
        first = self.types[0]
        if first is None:
            raise UnclaimedError("has a result of a type that the language does not have")
        return first

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the only result in the example that was traced; this call may have other sizes."""
        return hinted_shape(self.node.meta["val"])

    def wants(self, result: int) -> bool:
        """Whether something uses a result of several."""
        return any(user.args[1] == result or user.op == "output" for user in self.node.users)

    def has(self, name: str) -> bool:
        """Whether an argument is there, and not None."""
        return self._given.get(name) is not None

    def __getitem__(self, name: str) -> Any:
        """An argument, whatever it is; None if it is left out."""
        return self._given.get(name)

    def value(self, name: str) -> Value:
        """An argument that is a tensor."""
        found = self._given[name]
        if not isinstance(found, Value):
            raise UnclaimedError(f"takes no tensor as `{name}`")
        return found

    def values(self, name: str) -> list[Value]:
        """An argument that is several tensors."""
        found = self._given[name]
        if not all(isinstance(one, Value) for one in found):
            raise UnclaimedError(f"leaves out tensors of `{name}`")
        return list(found)

    def optional(self, name: str) -> Value | None:
        """An argument that is a tensor, or left out."""
        return self.value(name) if self.has(name) else None

    def integer(self, name: str) -> int:
        """An argument that is a number."""
        found = self._given[name]
        if not isinstance(found, int):
            raise UnclaimedError(f"takes no number as `{name}`")
        return int(found)

    def number(self, name: str) -> float | int | bool:
        """An argument that is a scalar."""
        found = self._given[name]
        if not isinstance(found, bool | int | float):
            raise UnclaimedError(f"takes no number as `{name}`")
        return found

    def integers(self, name: str) -> list[int]:
        """An argument that is several numbers."""
        found = self._given[name]
        if isinstance(found, int):
            return [int(found)]
        if not all(isinstance(one, int) for one in found):
            raise UnclaimedError(f"takes other than numbers as `{name}`")
        return [int(one) for one in found]

    def axis(self, name: str, rank: int | None = None) -> int:
        """A dimension, from 0 on; ``rank``: of what it is one, by default of ``self``."""
        count = len(self.value("self").shape) if rank is None else rank
        return self.integer(name) % max(count, 1)

    def call(self, text: str, *operands: Value) -> tuple[Value, ...]:
        """The results of a comprehension."""
        return self.builder.call(text, *operands)

    def one(self, text: str, *operands: Value) -> Value:
        """The only result of a comprehension."""
        (found,) = self.builder.call(text, *operands)
        return found


def extents(value: Value) -> tuple[int, ...]:
    """The shape of a value, as numbers: no size is open where rules run."""
    return tuple(extent for extent in value.shape if isinstance(extent, int))


Rule: TypeAlias = "Callable[[Operation], Value | Sequence[Value | None]]"
Rules: TypeAlias = Mapping[Any, Rule]
