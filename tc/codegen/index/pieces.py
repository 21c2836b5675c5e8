"""Pieces: neighbouring elements of a tensor that a thread holds in an array of its own while it works on each."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.codegen.text.fragment import Fragment, element
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import IndexVariable


@frozen
class Piece:
    """The elements of a tensor from an offset on, one for each iteration of a loop; ``array``: what they are in."""

    tensor: str
    begin: LinearForm
    array: str


@frozen
class Pieces:
    """Those of a loop over ``lane``, an iterator."""

    lane: str
    pieces: tuple[Piece, ...]

    def element(self, tensor: str, offset: LinearForm, texts: Mapping[str, Fragment]) -> Fragment | None:
        """An element of the tensor where it is in a piece; ``texts``: of variables."""
        begin = before(offset, self.lane)
        found = next((own for own in self.pieces if own.tensor == tensor and own.begin == begin), None)
        return None if found is None else element(found.array, texts[self.lane])


def before(offset: LinearForm, lane: str) -> LinearForm:
    """The offset without the iterator, which it moves by one with."""
    return offset.plus(LinearForm(0, {IndexVariable(lane): 1}), -1)
