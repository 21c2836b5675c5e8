"""``Contraction``: what became of the storage of a temporary, for the proof that its values are the same."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Contraction:
    """A temporary that holds the values of a few steps of a block at a time: subscripts are taken modulo ``size``.

    ``dimension``: the one that counts steps; ``extent``: what it would have without.
    """

    tensor: str
    dimension: int
    size: int
    extent: int

    def __str__(self) -> str:
        return f"{self.tensor}: {self.size} of {self.extent} steps are kept, in dimension {self.dimension}"
