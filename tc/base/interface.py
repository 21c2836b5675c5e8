"""``Interface``: what the caller of a definition must know of it."""

from __future__ import annotations

from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType


@frozen
class TensorParameter:
    """An argument or a result.

    ``in_out``: a result that is read before it is written, so that callers bring it.  ``sizes``: of an argument, which
    of the definition's sizes each dimension is; None where it is a number.
    """

    name: str
    type: ScalarType
    dimensions: int
    in_out: bool = False
    sizes: tuple[int | None, ...] = ()


@frozen
class ScalarParameter:
    """A scalar argument.  ``structural``: kernels are made for its value, which shapes or subscripts depend on."""

    name: str
    type: ScalarType
    structural: bool


@frozen
class Interface:
    """A definition as callers see it.

    ``arguments``: names in the order of the parameter list.  ``results``: in the order of the ``->`` list.
    """

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    tensors: tuple[TensorParameter, ...]
    scalars: tuple[ScalarParameter, ...]

    def tensor(self, name: str) -> TensorParameter:
        """The argument or result called ``name``; KeyError if there is none."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    @property
    def floating(self) -> tuple[str, ...]:
        """The arguments that may have a gradient: floating tensors."""
        own = {tensor.name for tensor in self.tensors if tensor.type.is_floating}
        return tuple(name for name in self.arguments if name in own)

    @property
    def structural(self) -> frozenset[str]:
        """The scalars that kernels are made for the values of."""
        return frozenset(scalar.name for scalar in self.scalars if scalar.structural)

    @property
    def names(self) -> tuple[str, ...]:
        """Of everything that is passed or returned, by position."""
        return (*self.arguments, *self.results)

    def anonymous(self) -> Interface:
        """The same for all definitions that differ in names only."""
        names = {name: str(position) for position, name in enumerate(self.names)}
        return Interface(
            name="",
            arguments=tuple(names[name] for name in self.arguments),
            results=tuple(names[name] for name in self.results),
            tensors=tuple(replace(tensor, name=names[tensor.name]) for tensor in self.tensors),
            scalars=tuple(replace(scalar, name=names[scalar.name]) for scalar in self.scalars),
        )
