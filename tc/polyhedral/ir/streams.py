"""Streams of tiles: a thread that does nothing else has tiles copied, and warps use them when they have arrived.

A loop over tiles of which each iteration copies a later tile and uses its own may be run by two sorts of threads, which
wait for each other's channels in place of barriers (Chen et al., *Tawa*, CGO 2026: asynchronous references).  The
*filler* waits until a slot is emptied, says how many bytes it expects there, and has boxes of tensors copied
(PTX: ``cp.async.bulk.tensor``); the *users* wait until the slot is filled, and arrive where they have read it
(``mbarrier``).  Slots are taken in turn.  A channel of a slot goes through phases, one after the other: of a wait it is
only said whether the phase is an even or an odd one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from tc.base.frozen import frozen

# Warps of the group that the filler belongs to, whose other threads do nothing.
FILLING_WARPS: Final = 4


@frozen
class Sum:
    """``constant`` and the sum of the ``factors`` times the values of loops."""

    constant: int
    factors: tuple[tuple[str, int], ...] = ()

    def at(self, values: Mapping[str, int]) -> int:
        """Its value."""
        return self.constant + sum(factor * values[name] for name, factor in self.factors)


class Channel(Enum):
    """What a slot has two of."""

    FILLED = "filled"
    EMPTIED = "emptied"


@frozen
class Await:
    """Waits for the phase of the slot of tile ``tile + ahead``, as many as tiles that had the slot; or the one
    ``before`` it.
    """

    channel: Channel
    ahead: int = 0
    before: bool = False


@frozen
class Expect:
    """The filler arrives at the channel of the slot of tile ``tile + ahead``, which so many bytes are to fill."""

    bytes: int
    ahead: int = 0


@frozen
class BoxCopy:
    """Begins the copy of a box of a tensor to a slot of a buffer, whose bytes arrive at the slot's channel.

    It does what all instances of ``statement`` do for one tile.  ``origin``: the subscripts of the first element, in
    terms of the loops around and of the number of the tile; ``box``: elements along each dimension.  What is outside of
    the tensor is filled with zeros.  The box lies in the slot of tile ``tile + ahead``, swizzled, in panels of 128
    bytes of each row, ``panel`` bytes from one to the next.  ``arrives``: at the channel of the slot of tile
    ``tile + arrives``.
    """

    statement: str
    tensor: str
    buffer: str
    origin: tuple[Sum, ...]
    box: tuple[int, ...]
    panel: int
    ahead: int = 0
    arrives: int = 0


@frozen
class Use:
    """What the loop does with a tile: all but copies and barriers."""


@frozen
class Drain:
    """Matrix instructions have ended, but for those of the last so many tiles."""

    pending: int


@frozen
class Leave:
    """Each warp arrives at the channel of the slot of tile ``tile + ahead``, if there is one: it needs it no more."""

    ahead: int


Filling: TypeAlias = Await | Expect | BoxCopy
Using: TypeAlias = Await | Use | Drain | Leave


@frozen
class Stream:
    """How two sorts of threads run a loop over ``tiles``, which copies tiles so many iterations ``ahead``.

    ``filler``, ``users``: what they do for each tile, in order.  ``warps``: of the users, all of which leave a slot.
    ``fenced``: that channels have begun is seen by copies.  ``drained``: matrix instructions have ended behind the
    loop.
    """

    slots: int
    tiles: int
    ahead: int
    filler: tuple[Filling, ...]
    users: tuple[Using, ...]
    warps: int
    fenced: bool = True
    drained: bool = True

    @property
    def boxes(self) -> tuple[BoxCopy, ...]:
        """The copies of each tile."""
        return tuple(own for own in self.filler if isinstance(own, BoxCopy))
