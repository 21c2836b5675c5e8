"""How long a search may go on: wall-clock time, trials, generations, or whatever of them ends first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tc.errors import OptionsError

# Seconds since some moment, never going back: ``time.monotonic``.
Clock: TypeAlias = Callable[[], float]

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0}
_TIME: Final = re.compile(r"(?:(?P<h>[\d.]+)\s*h)?\s*(?:(?P<m>[\d.]+)\s*m)?\s*(?:(?P<s>[\d.]+)\s*s)?")
_COUNT: Final = re.compile(r"(?P<count>\d+)\s*(?P<unit>trial|generation)s?")
_ALLOWED: Final = "write a time as '8h', '1h30m' or '90s', a number as '200 trials' or '30 generations', or both"


@dataclass(frozen=True, slots=True)
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
        parts = [] if self.seconds is None else [_time(self.seconds)]
        for count, unit in ((self.trials, "trial"), (self.generations, "generation")):
            if count is not None:
                parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
        return ", ".join(parts)

    def start(self, clock: Clock) -> Allowance:
        """The budget from now on."""
        return Allowance(self, clock, clock())


@dataclass(frozen=True, slots=True)
class Allowance:
    """A budget that is being spent since ``started`` by the clock."""

    budget: Budget
    clock: Clock
    started: float

    def keeping(self, seconds: float) -> Allowance:
        """The same with so many seconds kept for what comes after it, but at most half of all."""
        if self.budget.seconds is None:
            return self
        kept = min(seconds, self.budget.seconds / 2)
        return replace(self, budget=replace(self.budget, seconds=self.budget.seconds - kept))

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def seconds_left(self) -> float | None:
        """None where time is not limited; never negative."""
        return None if self.budget.seconds is None else max(0.0, self.budget.seconds - self.spent())

    def trials_left(self, done: int) -> int | None:
        """None where their number is not limited; ``done``: trials so far."""
        return None if self.budget.trials is None else max(0, self.budget.trials - done)

    def allows(self, *, trials: int, generations: int) -> bool:
        """Whether there may be more, after so many trials and whole generations."""
        if self.budget.generations is not None and generations >= self.budget.generations:
            return False
        return self.seconds_left() != 0 and self.trials_left(trials) != 0


def _limit(part: str, text: str) -> tuple[str, float | int]:
    """The name of a limit, and the limit."""
    if counted := _COUNT.fullmatch(part):
        return counted["unit"] + "s", int(counted["count"])
    timed = _TIME.fullmatch(part)
    amounts = {} if timed is None else {unit: amount for unit, amount in timed.groupdict().items() if amount}
    if not amounts:
        raise OptionsError(f"{text!r} is no budget; {_ALLOWED}")
    try:
        return "seconds", sum(float(amount) * _UNITS[unit] for unit, amount in amounts.items())
    except ValueError as error:
        raise OptionsError(f"{text!r} is no budget; {_ALLOWED}") from error


def _time(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}h"] if hours else []
    if minutes:
        parts.append(f"{minutes}m")
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return "".join(parts)
