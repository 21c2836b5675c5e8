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


def test_parts_have_time_by_their_share_and_need_not_all_begin() -> None:
    clock = Clock()
    scripts = [Scripted(clock, [0.97**n for n in range(100)]) for _ in range(4)]
    shares = (0.6, 0.38, 0.02, 0.0)
    parts = [ScheduledSearch(cast("Tuning", script), share) for script, share in zip(scripts, shares, strict=True)]
    for script in scripts:
        script.best = 1.0  # with the default options
    order = [parts.index(part) for part in share_time(parts, Budget(seconds=200.0).start(clock), clock, lambda: False)]
    assert order[:2] == [0, 1]
    assert order.count(0) > order.count(1) > order.count(2)
    assert 3 not in order
    assert parts[3].over == "the budget is spent"


def test_parts_share_what_they_gain_of_the_whole() -> None:
    """A tenth of a half is worth more than a third of a tenth."""
    clock = Clock()
    scripts = [Scripted(clock, [1.0, 0.9], best=1.0), Scripted(clock, [1.0, 0.67], best=1.0)]
    parts = [ScheduledSearch(cast("Tuning", own), share) for own, share in zip(scripts, (0.5, 0.1), strict=True)]
    for part in parts:
        part.spent = part.last_spent = 10.0
    for part, gain in zip(parts, (0.1, 0.3), strict=True):
        part.last_gain = gain
    assert parts[0].expected > parts[1].expected


def test_time_for_comparing_is_kept_for_those_that_have_begun() -> None:
    clock = Clock()
    scripts = [Scripted(clock, [1.0], best=1.0, finishing=20.0) for _ in range(5)]
    parts = [
        ScheduledSearch(cast("Tuning", script), share)
        for script, share in zip(scripts, [0.9, *[0.01] * 4], strict=True)
    ]
    assert len(list(share_time(parts, Budget(seconds=100.0).start(clock), clock, lambda: False))) == 8


def test_it_ends_when_it_is_stopped() -> None:
    clock = Clock()
    search = ScheduledSearch(cast("Tuning", Scripted(clock, [1.0])))
    assert list(share_time([search], Budget(seconds=100.0).start(clock), clock, lambda: True)) == []
    assert search.over == "it was interrupted"
    assert search.expected == math.inf
