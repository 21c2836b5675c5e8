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
# What the first generation of a part of something larger brings, as the logarithm of the gain, and its seconds, about:
# most kernels gain 10 to 50 %.
_FIRST_GAIN: Final = math.log(1.25)
_FIRST_SECONDS: Final = 15.0


@dataclass(slots=True)
class ScheduledSearch:
    """A search, how long it has had, and what its last generation brought, as the logarithm of the gain.

    ``share``: how much of the time of something larger, as a model, its kernel takes; the time of that is what counts.
    ``over``: why it ended, None while it goes on.
    """

    tuning: Tuning
    share: float = 1.0
    spent: float = 0.0
    last_spent: float = 0.0
    last_gain: float = 0.0
    over: str | None = None

    @property
    def expected(self) -> float:
        """The gain per second to expect of another generation: what the last one brought, or a part of the room to the
        bound that becomes smaller the longer the search has had.  Before the first one it is infinite for what is
        tuned for itself, and what a first one usually brings for parts of something larger.
        """
        bound, best = self.tuning.bound, self.tuning.best
        if best is None:
            return math.inf
        room = _UNKNOWN_ROOM if bound is None else max(0.0, math.log(best / bound))
        if self.spent == 0.0:
            return math.inf if self.share == 1.0 else self.share * min(_FIRST_GAIN, room) / _FIRST_SECONDS
        return self.share * max(self.last_gain / self.last_spent, _HOPE * room / self.spent)


def share_time(
    searches: Sequence[ScheduledSearch], allowance: Allowance, clock: Clock, stop: Callable[[], bool]
) -> Iterator[ScheduledSearch]:
    """Gives one generation after the other to the search of which most is expected; yields it after each.

    Ends when the time is spent, but for the last comparisons of the searches that had some of it, when all searches are
    over, or when ``stop`` says so.
    """
    while not stop():
        going = [search for search in searches if search.over is None and search.share > 0.0]
        search = max(going, key=lambda search: search.expected, default=None)
        if search is None:
            break
        begun_already = (other for other in searches if other.spent or other is search)
        left = allowance.keeping(sum(other.tuning.finishing for other in begun_already))
        if left.seconds_left() == 0:
            break
        before, begun = search.tuning.best, clock()
        search.over = search.tuning.step(left)
        search.last_spent = max(clock() - begun, 1e-3)
        search.spent += search.last_spent
        best = search.tuning.best
        search.last_gain = 0.0 if before is None or best is None else math.log(before / best)
        yield search
    for search in searches:
        search.over = search.over or ("it was interrupted" if stop() else "the budget is spent")
