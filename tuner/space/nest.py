"""What a search space needs to know of a kernel: its loops, by name and length."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tc.base.frozen import frozen


@frozen
class Nest:
    """The loops of a kernel.

    ``extents``: iterations of every loop, by a name that stays the same when sizes change; the outermost first.
    ``depth``: the most loops around a statement.
    ``independent``: the most loops around a reduction that choose the element of its target; without reductions, 0.
    ``reduced``: the names, among ``extents``, of the loops that reductions run over.
    """

    extents: Mapping[str, int]
    depth: int
    independent: int = 0
    reduced: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := [name for name in self.reduced if name not in self.extents]:
            raise ValueError(f"reduced loops without an extent: {', '.join(unknown)}")

    @property
    def parallel(self) -> int:
        """How many loops carry nothing from one iteration to another, as far as the counts tell."""
        return self.independent if self.reduced else self.depth

    @property
    def iterations(self) -> int:
        """Of all loops together."""
        return math.prod(self.extents.values())

    def longest_reduced(self) -> int:
        """Iterations of the longest reduced loop; 0 without any."""
        return max((self.extents[name] for name in self.reduced), default=0)

    def is_like(self, other: Nest) -> bool:
        """Whether the other has as many loops and as many reduced ones: what is quick for one may be for the other."""
        mine = (self.depth, self.independent, len(self.reduced))
        return mine == (other.depth, other.independent, len(other.reduced))
