"""What the names of a definition stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc.errors import nearest
from tc.language.foreign import FOREIGN
from tc.language.functions import FUNCTIONS
from tc.language.program import Expression, SizeReference
from tc.types import ScalarType, type_names


@dataclass(frozen=True, slots=True)
class View:
    """What a read of a tensor's name means at one statement.

    ``type`` is None while types are being inferred, or where the tensor's own definition is in error.
    ``shape`` is known for arguments; for other tensors it is inferred later.  ``wanted``: the type to which the
    statement converts what it reads; None for the tensor's own.
    """

    tensor: str
    type: ScalarType | None
    rank: int
    shape: tuple[Expression, ...] | None
    wanted: ScalarType | None = None

    def extent(self, dimension: int) -> Expression:
        """``T.d``: the declared extent, or a placeholder until it is inferred."""
        return pending_extent(self.tensor, dimension) if self.shape is None else self.shape[dimension]


def pending_extent(tensor: str, dimension: int) -> SizeReference:
    """Stands for an extent that range inference finds later; no size of a user has a dot in its name."""
    return SizeReference(f"{tensor}.{dimension}")


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of one definition that mean the same in all its statements.

    ``tensors``: every argument, result and target; ``definitions``: the definitions of the same text.
    """

    sizes: frozenset[str]
    scalars: Mapping[str, ScalarType]
    tensors: frozenset[str]
    definitions: frozenset[str]

    def is_bare_tensor(self, name: str) -> bool:
        """Whether a bare name reads a tensor; a size of the same name goes first (`float(H,W) I, float(K) W`)."""
        return name in self.tensors and name not in self.sizes

    def is_declared(self, name: str) -> bool:
        """Whether a bare name is something else than an iterator."""
        return name in self.sizes or name in self.scalars or name in self.tensors

    def suggestion(self, name: str) -> str | None:
        """What to write for a name that is known elsewhere, or the known one that looks most like it."""
        if name.lower() in FOREIGN:
            return f"write {FOREIGN[name.lower()]}"
        guess = nearest(name, (*self.tensors, *FUNCTIONS, *type_names(), *self.definitions))
        if guess is not None:
            return f"did you mean `{guess}`?"
        return f"there are the tensors {', '.join(f'`{t}`' for t in sorted(self.tensors))}" if self.tensors else None
