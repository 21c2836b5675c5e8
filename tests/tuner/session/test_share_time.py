"""Time goes to the search of which most is to be expected."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.share_time import ScheduledSearch, share_time
from tc.tuner.trial.budget import Allowance, Budget


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scripted:
    """A search whose generations take ten seconds and come to given times."""

    clock: Clock
    times: list[float]
    bound: float | None = None
    done: int = 0
    ends: int | None = None
    best: float | None = field(default=None)
    finishing: float = 0.0

    def step(self, allowance: Allowance) -> str | None:
        self.clock.now += 10.0
        self.best = self.times[min(self.done, len(self.times) - 1)]
        self.done += 1
        if self.done == self.ends:
            return "there is nothing else to try"
        return None if allowance.allows(trials=0, generations=0) else "the budget is spent"


def shared(clock: Clock, scripts: list[Scripted], seconds: float) -> Counter[int]:
    searches = [ScheduledSearch(cast("Tuning", search)) for search in scripts]
    allowance = Budget(seconds=seconds).start(clock)
    order = [searches.index(search) for search in share_time(searches, allowance, clock, lambda: False)]
    assert order[: len(searches)] == list(range(len(searches)))
    assert all(search.over is not None for search in searches)
    return Counter(order)


def test_everybody_begins_and_who_improves_goes_on() -> None:
    clock = Clock()
    improving = Scripted(clock, [0.9**n for n in range(100)])
    stuck = Scripted(clock, [1.0], bound=0.99)
    count = shared(clock, [stuck, improving], 300.0)
    assert count[1] > 4 * count[0]


def test_who_has_room_to_the_bound_is_preferred_to_who_has_none() -> None:
    clock = Clock()
    near, far = Scripted(clock, [1.0], bound=0.95), Scripted(clock, [1.0], bound=0.1)
    count = shared(clock, [near, far], 400.0)
    assert count[1] > 5 * count[0] > 0


def test_who_is_far_from_the_bound_but_gets_nowhere_does_not_take_all() -> None:
    clock = Clock()
    hopeless, hopeful = Scripted(clock, [1.0], bound=0.01), Scripted(clock, [1.0], bound=0.5)
    count = shared(clock, [hopeless, hopeful], 2000.0)
    assert count[1] > 0.05 * count[0]


def test_searches_that_are_over_have_no_turn() -> None:
    clock = Clock()
    count = shared(clock, [Scripted(clock, [1.0], ends=2), Scripted(clock, [1.0])], 200.0)
    assert count[0] == 2
    assert count[1] == 18


def test_it_ends_when_it_is_stopped() -> None:
    clock = Clock()
    search = ScheduledSearch(cast("Tuning", Scripted(clock, [1.0])))
    assert list(share_time([search], Budget(seconds=100.0).start(clock), clock, lambda: True)) == []
    assert search.over == "it was interrupted"
    assert search.expected == math.inf
