"""``Case``: what is known of one kernel on one machine with so many threads."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

from tc.base.frozen import frozen
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement, Trial, Variant
from tc.store.wanted import extents_of
from tc.tuner.report.brief import Brief, time_or_none
from tc.tuner.report.own_definition import own_definition
from tc.tuner.trial.trial_outcome import FailureKind

_KINDS = tuple(kind.value for kind in FailureKind)
_KEY_DIGITS = 8


@frozen
class Point:
    """A trial that was measured.  ``place``: among all trials of the case.  ``seconds``: a time of a clock."""

    place: int
    seconds: float
    trial: Trial


@frozen
class Case:
    """A kernel, its runs, its trials in the order of time, and what was measured at the end.

    ``winner``: the variant that is run.  ``best``: the last measurement of it.  ``beside``: the measurement of the
    static default in the same run, None if it is not there.
    """

    ingredients: Ingredients
    machine: str
    threads: int
    briefs: tuple[Brief, ...]
    trials: tuple[Trial, ...]
    winner: Variant | None
    best: Measurement | None
    beside: Measurement | None

    @property
    def name(self) -> str:
        """Of the definition, as the last run knew it; a part of the key where no run did."""
        named = (brief.definition for brief in reversed(self.briefs) if brief.definition)
        return next(named, f"kernel {self.ingredients.key[:_KEY_DIGITS]}")

    @property
    def text(self) -> str:
        """Its definition, as the last run knew it, or else the canonical form of its program."""
        known = (own_definition(brief.text, brief.definition) for brief in reversed(self.briefs) if brief.text)
        return next(known, self.ingredients.definition)

    @property
    def sizes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The arguments by name, and their extents."""
        named = next((brief.arguments for brief in reversed(self.briefs) if brief.arguments), ())
        return named or tuple((f"t{place}", found) for place, found in enumerate(extents_of(self.ingredients) or ()))

    @property
    def types(self) -> str:
        """The element types of the arguments, each once."""
        try:
            types = json.loads(self.ingredients.dtypes)
        except (ValueError, RecursionError):
            return ""
        return ", ".join(dict.fromkeys(str(type) for type in types)) if isinstance(types, list) else ""

    @property
    def points(self) -> tuple[Point, ...]:
        """The trials that have a time."""
        timed = ((place, time_or_none(trial.seconds), trial) for place, trial in enumerate(self.trials))
        return tuple(Point(place, seconds, trial) for place, seconds, trial in timed if seconds is not None)

    @property
    def failed(self) -> tuple[tuple[int, Trial], ...]:
        """The trials that have none, with their places."""
        return tuple((place, trial) for place, trial in enumerate(self.trials) if time_or_none(trial.seconds) is None)

    @property
    def failures(self) -> Mapping[str, int]:
        """How many trials failed, by kind."""
        return count_kinds(trial.outcome for _, trial in self.failed)

    @property
    def bound(self) -> float | None:
        """The least seconds that a run found that no call falls below; None where something that was measured does so,
        all the same: then others kept the machine busy when they were found.
        """
        bound = min((brief.bound for brief in self.briefs if brief.bound is not None), default=None)
        known = (self.seconds, self.default, *(point.seconds for point in self.points))
        quickest = min((seconds for seconds in known if seconds is not None), default=None)
        return None if bound is None or (quickest is not None and quickest < bound) else bound

    @property
    def seconds(self) -> float | None:
        """Of the winner."""
        return None if self.best is None else time_or_none(self.best.seconds)

    @property
    def default(self) -> float | None:
        """Seconds of the static default, measured in turns with the winner; as it was first tried where nothing won."""
        if self.best is not None:
            return time_or_none(self.best.default_seconds)
        first = next((trial for trial in self.trials if _is_default(trial)), None)
        return None if first is None else time_or_none(first.seconds)

    @property
    def default_options(self) -> str | None:
        """The options of the static default, which every search tries first."""
        if self.beside is not None:
            return self.beside.options
        return next((trial.options for trial in self.trials if _is_default(trial)), None)

    @property
    def default_won(self) -> bool:
        """Whether the static default is the winner."""
        return self.best is not None and self.best.options == self.default_options

    @property
    def speedup(self) -> float | None:
        """How many times as quick as the static default the winner is."""
        if self.best is None or self.default is None or self.seconds is None:
            return None
        return self.default / self.seconds

    @property
    def fraction(self) -> float | None:
        """The part of the speed that the machine allows which the winner reaches."""
        return None if self.bound is None or self.seconds is None else self.bound / self.seconds

    @property
    def copies(self) -> int:
        """How many trials have the time of another one, because their options make the same source."""
        return len(self.points) - len({point.trial.source for point in self.points})


def count_kinds(outcomes: Iterable[str]) -> Mapping[str, int]:
    """How many outcomes of each kind, in the order in which the kinds are declared; unknown kinds come last."""
    counted = Counter(outcomes)
    order = (*_KINDS, *sorted(counted.keys() - set(_KINDS)))
    return {kind: counted[kind] for kind in order if counted[kind]}


def median_speedup(cases: Iterable[Case]) -> float | None:
    """The median over the cases that have a winner."""
    found = _speedups(cases)
    return statistics.median(found) if found else None


def mean_speedup(cases: Iterable[Case]) -> float | None:
    """The geometric mean over the cases that have a winner."""
    found = _speedups(cases)
    return statistics.geometric_mean(found) if found else None


def _speedups(cases: Iterable[Case]) -> list[float]:
    return [case.speedup for case in cases if case.speedup is not None]


def _is_default(trial: Trial) -> bool:
    return trial.number == 0
