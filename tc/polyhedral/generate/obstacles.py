"""What is found in generated loops that keeps them from being taken, as values: ``tc.polyhedral.attempts`` decides."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from tc.base.frozen import frozen


class InBuffers(Enum):
    """What is wrong with loops because of the buffers in them; the value says so as part of a sentence."""

    NOT_AFFINE = "subscripts of a buffer would be no affine functions of the loops"
    MOVING_ARRAYS = "subscripts of a private array would be no constants, so that it could not lie in registers"
    DIVERGENT_BARRIERS = "threads of a block would meet a barrier around shared memory unequally often"
    MISSING_COPIES = "isl's loops would leave out some copies to shared memory"


@frozen
class MissingInstances:
    """isl's loops over quotients of sums of iterators leave out some instances."""


@frozen
class DivergentSteps:
    """Threads of a block would meet the barriers between the steps of a scan unequally often."""


@frozen
class LongSums:
    """``statements`` add too much up in float32, into more elements than can be kept beside."""

    statements: frozenset[str]


@frozen
class NoMatrices:
    """The lanes of no warp run the products together that tiles were made for."""


@frozen
class NoGroups:
    """No four warps run the products together that tiles were made for."""


@frozen
class NoChain:
    """Products that were to share a kernel would not, or without matrix instructions."""


Obstacle: TypeAlias = NoChain | NoGroups | NoMatrices | InBuffers | MissingInstances | DivergentSteps | LongSums
