"""The tensors of a derivative while it is made, and names for further ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.gradient.terms import converted
from tc.gradient.versions import Forward, over_tensor
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    DerivedOrigin,
    Expression,
    IteratorReference,
    Origin,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
)


class Workspace:
    """Declares tensors with names that are free in a definition."""

    def __init__(self, program: Program, forward: Forward) -> None:
        self.program = program
        iterators = {iterator.name for statement in forward.statements for iterator in statement.iterators}
        scalars = {scalar.name for scalar in program.scalars}
        self._taken: Final = {*program.sizes, *scalars, *forward.tensors, *iterators}
        self.tensors: Final = dict(forward.tensors)

    def name(self, wanted: str) -> str:
        """A free name, which is taken from now on."""
        found = fresh_name(wanted, self._taken)
        self._taken.add(found)
        return found

    def declare(
        self,
        wanted: str,
        type: ScalarType,
        shape: Sequence[Expression],
        origin: Origin,
        role: Role = Role.TEMPORARY,
    ) -> Tensor:
        """A new tensor, called so if that is free."""
        tensor = Tensor(self.name(wanted), type, tuple(shape), role, origin)
        self.tensors[tensor.name] = tensor
        return tensor

    @property
    def taken(self) -> frozenset[str]:
        """All names that mean something."""
        return frozenset(self._taken)


def filled(
    workspace: Workspace, target: Tensor, value: Callable[[tuple[Expression, ...]], Expression], reason: str
) -> Statement:
    """A statement that gives every element of a tensor its value, which depends on its subscripts."""
    iterators = over_tensor(target, workspace.taken)
    subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
    origin = DerivedOrigin(reason, target.origin)
    return Statement("", iterators, (), target.name, subscripts, None, False, value(subscripts), (), origin)


def moved(workspace: Workspace, target: Tensor, source: Tensor, reason: str) -> Statement:
    """One tensor as another, in the type of that."""

    def value(subscripts: tuple[Expression, ...]) -> Expression:
        return converted(Read(source.name, subscripts, source.type), target.type)

    return filled(workspace, target, value, reason)
