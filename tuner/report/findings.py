"""``Findings``: all that a cache knows of searches, read in one view of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.cache.content.choice import latest, winner_of
from tc.cache.content.contents import Contents
from tc.cache.content.lookup import Reader
from tc.cache.format.records import Measurement, Trial, Variant
from tc.cache.format.rows import record_of
from tc.cache.format.tables import MEASUREMENTS, RUNS, TRIALS, VARIANTS, where
from tc.tuner.report.brief import Brief, brief_of
from tc.tuner.report.case import Case

# A kernel, a machine, and a number of threads.
Place: TypeAlias = tuple[str, str, int]


@frozen
class Findings:
    """``cases``: those with the greatest gain first, then those without a winner.

    ``briefs``: of all runs, the first one first.  ``untuned``: kernels that were not tuned.
    """

    place: str
    cases: tuple[Case, ...]
    briefs: tuple[Brief, ...]
    untuned: int

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Of all cases."""
        return tuple(trial for case in self.cases for trial in case.trials)

    @property
    def machines(self) -> tuple[str, ...]:
        """On which anything was tried or measured, each once."""
        return tuple(dict.fromkeys(case.machine for case in self.cases))


def read_findings(location: str | Path, key: bytes | None) -> Findings:
    """What the cache at a path or a URL knows; CacheError if it cannot be read or is damaged."""
    reader = Reader.open(location, key=key)
    with reader.database.session() as session:
        place = reader.database.place
        contents = Contents(session, place, key)
        briefs = tuple(brief_of(run) for run, _ in contents.records(RUNS, "started, identity"))
        kernels = {ingredients.key: ingredients for ingredients, _ in contents.kernels()}
        trials: dict[Place, list[Trial]] = defaultdict(list)
        for trial, _ in contents.records(TRIALS, "at, run, number, identity"):
            trials[trial.kernel, trial.machine, trial.threads].append(trial)
        measured: dict[Place, list[Measurement]] = defaultdict(list)
        for one, _ in contents.records(MEASUREMENTS):
            measured[one.kernel, one.machine, one.threads].append(one)

        def variant(identity: str) -> Variant | None:
            rows = session.rows(where(VARIANTS, "identity"), identity=identity)
            return next((record_of(VARIANTS, row, key, place) for row in rows), None)

        cases = []
        for at in sorted({*trials, *measured}):
            best, beside = compared(measured[at])
            cases.append(
                Case(
                    ingredients=kernels[at[0]],
                    machine=at[1],
                    threads=at[2],
                    briefs=_concerned(briefs, (*trials[at], *measured[at])),
                    trials=tuple(trials[at]),
                    winner=None if best is None else variant(best.variant),
                    best=best,
                    beside=beside,
                )
            )
    tuned = {case.ingredients.key for case in cases}
    return Findings(place, tuple(sorted(cases, key=_order)), briefs, len(kernels.keys() - tuned))


def compared(measured: Sequence[Measurement]) -> tuple[Measurement | None, Measurement | None]:
    """Of measurements of one kernel in one place: the winner's, and the static default's in the same run."""
    counting = latest(measured)
    if not counting:
        return None, None
    winner = winner_of(counting, counting[0].machine, counting[0].threads)
    best = next(one for one in counting if one.variant == winner)
    # The default is measured beside itself, too.
    own = (one for one in measured if one.run == best.run and one.seconds == one.default_seconds)
    return best, next(own, None)


def _concerned(briefs: Iterable[Brief], records: Iterable[Trial | Measurement]) -> tuple[Brief, ...]:
    names = {record.run for record in records}
    return tuple(brief for brief in briefs if brief.run.name in names)


def _order(case: Case) -> tuple[float, str, str, str, int]:
    gain = -1.0 if case.speedup is None else case.speedup
    return -gain, case.name, case.ingredients.key, case.machine, case.threads
