"""Budgets of searches: wall-clock time, trials, generations, whichever ends first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from tc.base.counted import noun_for
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.tuner.trial.time_span import parse_seconds, span_text

# Seconds since some moment, never going back: ``time.monotonic``.
Clock: TypeAlias = Callable[[], float]

_COUNT: Final = re.compile(r"(?P<count>\d{1,18})\s*(?P<unit>trial|generation)s?", re.ASCII)
_ALLOWED: Final = "write a time as '8h', '1h30m' or '90s', a number as '200 trials' or '30 generations', or both"


@frozen
class Budget:
    """At most so many ``seconds``, ``trials`` and ``generations``; None for any number.  OptionsError without any."""

    seconds: float | None = None
    trials: int | None = None
    generations: int | None = None

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.seconds, self.trials, self.generations) if limit is not None]
        if not limits or not all(limit > 0 for limit in limits):
            raise OptionsError(f"a budget needs a limit, and only positive ones; {_ALLOWED}")

    @staticmethod
    def parse(text: str) -> Budget:
        """A budget from text such as ``10m``, ``200 trials`` or ``1h30m, 30 generations``.  OptionsError otherwise."""
        limits: dict[str, float | int] = {}
        for part in text.split(","):
            name, limit = _limit(part.strip(), text)
            if name in limits:
                raise OptionsError(f"the budget {text!r} limits {name} twice; {_ALLOWED}")
            limits[name] = limit
        trials, generations = limits.get("trials"), limits.get("generations")
        return Budget(
            limits.get("seconds"),
            None if trials is None else int(trials),
            None if generations is None else int(generations),
        )

    def __str__(self) -> str:
        parts = [] if self.seconds is None else [span_text(self.seconds)]
        for count, unit in ((self.trials, "trial"), (self.generations, "generation")):
            if count is not None:
                parts.append(f"{count} {noun_for(count, unit)}")
        return ", ".join(parts)

    def covers(self, other: Budget) -> bool:
        """Whether a search that has spent this one has gone at least as far as one with the other would."""
        limits = (
            (self.seconds, other.seconds),
            (self.trials, other.trials),
            (self.generations, other.generations),
        )
        return all(ours is None or (theirs is not None and theirs <= ours) for ours, theirs in limits)

    def start(self, clock: Clock) -> Allowance:
        """The budget from now on."""
        return Allowance(self, clock, clock())


@frozen
class Allowance:
    """A budget that is being spent since ``started`` by the clock; ``kept``: seconds beside it for what comes then."""

    budget: Budget
    clock: Clock
    started: float
    kept: float = 0.0

    def keeping(self, seconds: float) -> Allowance:
        """The same with so many seconds kept for what comes after it, but at most half of all."""
        if self.budget.seconds is None:
            return self
        kept = min(seconds, self.budget.seconds / 2)
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds - kept), kept=kept)

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def seconds_left(self) -> float | None:
        """None where time is not limited; never negative."""
        return None if self.budget.seconds is None else max(0.0, self.budget.seconds - self.spent())

    def trials_left(self, done: int) -> int | None:
        """None where their number is not limited; ``done``: trials so far."""
        return None if self.budget.trials is None else max(0, self.budget.trials - done)

    def share(self, *, trials: int, generations: int) -> float:
        """How much is spent, after so many trials and generations: from 0 to 1, of what ends first."""
        seconds = self.budget.seconds
        timed = 0.0 if seconds is None else self.spent() / (seconds + self.kept)
        return min(1.0, max(timed, self._share_of_counts(trials, generations)))

    def expected(self, *, trials: int, generations: int, busy: float) -> float | None:
        """Seconds until all is spent, at the pace of so many trials and generations in ``busy`` seconds; None where
        that cannot be told yet.
        """
        found = []
        if self.budget.seconds is not None:
            found.append(max(0.0, self.budget.seconds + self.kept - self.spent()))
        share = self._share_of_counts(trials, generations)
        if share > 0:
            found.append(max(0.0, busy * (1 - share) / share))
        return min(found, default=None)

    def _share_of_counts(self, trials: int, generations: int) -> float:
        limits = ((trials, self.budget.trials), (generations, self.budget.generations))
        return max((done / limit for done, limit in limits if limit is not None), default=0.0)

    def allows(self, *, trials: int, generations: int) -> bool:
        """Whether there may be more, after so many trials and whole generations."""
        if self.budget.generations is not None and generations >= self.budget.generations:
            return False
        return self.seconds_left() != 0 and self.trials_left(trials) != 0


def _limit(part: str, text: str) -> tuple[str, float | int]:
    """The name of a limit, and the limit."""
    if found := _COUNT.fullmatch(part):
        return found["unit"] + "s", int(found["count"])
    seconds = parse_seconds(part)
    if seconds is None:
        raise OptionsError(f"{text!r} is no budget; {_ALLOWED}")
    return "seconds", seconds
