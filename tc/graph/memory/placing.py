"""``Placing``: how offsets in an arena are looked for."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from tc.base.errors import OptionsError
from tc.base.frozen import frozen

Solver: TypeAlias = Literal["search", "ortools"]


@frozen
class Placing:
    """How offsets are looked for where first fit needs more than the least arena.

    ``solver``: ``search`` is branch and bound; ``ortools`` gives what that finds to the CP-SAT solver of OR-Tools, for
    at most a few hundred blocks.  ``seconds``: about how long a search takes at most; it counts operations, so that
    equal blocks have equal offsets on all machines.
    """

    solver: Solver = "search"
    seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.solver not in ("search", "ortools"):
            raise OptionsError(f"offsets are found by `search` or `ortools`, not by {self.solver!r}")
        if not self.seconds >= 0:
            raise OptionsError(f"a search for offsets takes 0 seconds or more, not {self.seconds!r}")


# Where nothing else is said.
USUAL: Final = Placing()
