"""Shares time between many searches: the next generation goes to the search with the greatest expected gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tc.tuner.session.kernel_search import Tuning
from tc.tuner.trial.budget import Allowance, Clock

# What a search that has not improved for a while may still find: this part of the way to the bound ...
_HOPE: Final = 0.1
# ... or of this much, where the bound is unknown.
_UNKNOWN_ROOM: Final = math.log(2.0)


@dataclass(slots=True)
class ScheduledSearch:
    """A search, how long it has had, and what its last generation brought, as the logarithm of the gain.

    ``over``: why it ended, None while it goes on.
    """

    tuning: Tuning
    spent: float = 0.0
    last_spent: float = 0.0
    last_gain: float = 0.0
    over: str | None = None

    @property
    def expected(self) -> float:
        """The gain per second to expect of another generation: what the last one brought, or a part of the room to the
        bound that becomes smaller the longer the search has had; infinite before the first one.
        """
        if self.spent == 0.0 or self.tuning.best is None:
            return math.inf
        bound, best = self.tuning.bound, self.tuning.best
        room = _UNKNOWN_ROOM if bound is None else max(0.0, math.log(best / bound))
        return max(self.last_gain / self.last_spent, _HOPE * room / self.spent)


def share_time(
    searches: Sequence[ScheduledSearch], allowance: Allowance, clock: Clock, stop: Callable[[], bool]
) -> Iterator[ScheduledSearch]:
    """Gives one generation after the other to the search of which most is expected; yields it after each.

    Ends when the time is spent, when all searches are over, or when ``stop`` says so.
    """
    while not stop() and allowance.seconds_left() != 0:
        going = [search for search in searches if search.over is None]
        if not going:
            return
        search = max(going, key=lambda search: search.expected)
        before, begun = search.tuning.best, clock()
        search.over = search.tuning.step(allowance)
        search.last_spent = max(clock() - begun, 1e-3)
        search.spent += search.last_spent
        best = search.tuning.best
        search.last_gain = 0.0 if before is None or best is None else math.log(before / best)
        yield search
    for search in searches:
        search.over = search.over or ("it was interrupted" if stop() else "the budget is spent")
