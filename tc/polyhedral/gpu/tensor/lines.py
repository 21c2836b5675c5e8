"""Lines of images whose eights are rows or columns of a tile of a product of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from tc.base.frozen import frozen
from tc.polyhedral.gpu.tensor.tile_shapes import EIGHT

# The points of a line that a tile has otherwise, as tiles of several lines are compared with it.
_LINE: Final = 64


@frozen
class Lines:
    """The lines of which a tile has eight rows, or eight columns, each; None where it has those of one."""

    rows: str | None = None
    columns: str | None = None

    def among(self, names: Set[str]) -> Lines:
        """Those whose iterators are these."""
        return Lines(*(name if name in names else None for name in (self.rows, self.columns)))


def lines_beside(points: str, names: Sequence[str], extents: Mapping[str, int]) -> str | None:
    """The iterator of lines of such points, the last one of several values among the others that a factor has.

    None if tiles with eight points of several lines have no fewer points beyond the result than those of one line.
    """
    lines = next((name for name in reversed(names) if name != points and extents[name] > 1), None)
    if lines is None:
        return None
    eights = _LINE // EIGHT
    several = with_whole_eights(extents[points]) * (-(-extents[lines] // eights) * eights)
    return lines if several < -(-extents[points] // _LINE) * _LINE * extents[lines] else None


def with_whole_eights(points: int) -> int:
    """The points of a line with those beyond its end."""
    return -(-points // EIGHT) * EIGHT
