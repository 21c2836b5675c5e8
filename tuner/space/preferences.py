"""The user's objective of trials, instead of the least time, and constraint of options.

Both are called in the process that searches, never in those that try candidates, so that they may be any callables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Final, TypeAlias

from tc.base.errors import OptionsError, TuningError
from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.trial.trial_outcome import Measured


@frozen
class TrialRecord:
    """What an objective is told of a trial: its options, seconds of a call, and those of every measurement."""

    options: Options
    seconds: float
    samples: tuple[float, ...]


Objective: TypeAlias = Callable[[TrialRecord], float]
Constraint: TypeAlias = Callable[[Options], bool]


@frozen
class Preferences:
    """``objective``: what is made small, a number for every trial; None: its seconds.  ``constraint``: whether options
    may win; None: all may.  OptionsError for what cannot be called.
    """

    objective: Objective | None = None
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        for name, takes in (("objective", "the record of a trial"), ("constraint", "options")):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise OptionsError(f"{name} must be a callable that takes {takes}, or None, got {given!r}")

    @property
    def are_plain(self) -> bool:
        """Whether the quickest wins."""
        return self.objective is None and self.constraint is None

    @property
    def names(self) -> dict[str, str | None]:
        """How they are called, for what is kept of a search."""
        return {name: _name(getattr(self, name)) for name in ("objective", "constraint")}

    def allow(self, options: Options) -> bool:
        """Whether options may win; TuningError where the constraint fails, or says neither yes nor no."""
        if self.constraint is None:
            return True
        try:
            found = self.constraint(options)
        except Exception as error:
            raise TuningError(f"the constraint failed with {_said(error)}; it was given {options!r}") from error
        # NumPy's truth values are none of Python's.
        if not isinstance(found, bool) and type(found).__name__ not in ("bool_", "bool"):
            raise TuningError(f"the constraint must return True or False, got {found!r} for {options!r}")
        return bool(found)

    def priced(self, options: Options, measured: Measured) -> Measured:
        """What was measured, with what it costs: infinitely much where the options may not win."""
        if not self.allow(options):
            return replace(measured, cost=math.inf)
        if self.objective is None:
            return measured
        return replace(measured, cost=self._cost(options, measured.seconds, measured.samples))

    def costs(self, options: Options, samples: Sequence[float]) -> tuple[float, ...]:
        """What every round of a comparison costs."""
        if self.objective is None:
            return tuple(samples)
        return tuple(self._cost(options, sample, (sample,)) for sample in samples)

    def _cost(self, options: Options, seconds: float, samples: tuple[float, ...]) -> float:
        assert self.objective is not None
        record = TrialRecord(options, seconds, samples)
        try:
            found = self.objective(record)
        except Exception as error:
            raise TuningError(f"the objective failed with {_said(error)}; it was given {record!r}") from error
        if not isinstance(found, Real) or isinstance(found, bool) or not math.isfinite(found):
            raise TuningError(f"the objective must return a finite number, got {found!r} for {record!r}")
        return float(found)


PLAIN: Final = Preferences()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _name(given: object) -> str | None:
    return None if given is None else str(getattr(given, "__qualname__", type(given).__qualname__))
