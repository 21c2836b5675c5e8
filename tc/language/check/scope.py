"""What the names of a definition stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tc.base.errors import nearest
from tc.base.frozen import frozen
from tc.base.types import ScalarType, scalar_type, type_names
from tc.language.check.foreign import CONSTANTS, FOREIGN, TYPES
from tc.language.program.functions import FUNCTIONS, builtin
from tc.language.program.program import Expression, SizeReference


@frozen
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


@frozen
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
        if name.lower() in TYPES:
            return f"write `{TYPES[name.lower()]}(...)`"
        if name in self.scalars or name in self.sizes:
            return f"`{name}` is a single number, written without parentheses"
        factor = re.fullmatch(r"([0-9]+)([A-Za-z_]\w*)", name)
        if factor is not None and (factor[2] in self.tensors or builtin(factor[2]) is not None):
            return f"write `{factor[1]} * {factor[2]}`"
        guess = nearest(name, (*self.tensors, *FUNCTIONS, *type_names(), *self.definitions))
        if guess is not None:
            return f"did you mean `{guess}`?"
        foreign = nearest(name.lower(), FOREIGN)
        if foreign is not None:
            return f"did you mean `{foreign}`? Write {FOREIGN[foreign]}"
        return f"there are the tensors {', '.join(f'`{t}`' for t in sorted(self.tensors))}" if self.tensors else None

    def suggested_value(self, name: str, *, is_index: bool) -> str:
        """What to write for a bare name that stands for no index and nothing else.

        ``is_index``: whether it stands where only integers may, in a range or a condition.
        """
        known = CONSTANTS.get(name.lower()) or FOREIGN.get(name.lower())
        if known is not None:
            return f"write {known}"
        if name[0].isdigit():
            return "numbers are written `1000`, `0.5`, `1e-3f` or `0x1f`, and products with a `*`"
        if builtin(name) is not None or scalar_type(name) is not None:
            return f"`{name}` takes its operand in parentheses: `{name}(x)`"
        tensor, _, letters = name.partition("_")
        if tensor in self.tensors and letters.isalpha():
            return f"write `{tensor}({','.join(letters)})`"
        guess = nearest(name, (*self.scalars, *self.sizes, *self.tensors))
        kind = "size " if guess in self.sizes else ""
        also = "" if guess is None else f"did you mean the {kind}`{guess}`? Else ".replace("the `", "`")
        type = "int" if is_index else "float"
        return f"{also}declare it: `{type} {name}` among the parameters; an index needs a range: `where {name} in 0:N`"
