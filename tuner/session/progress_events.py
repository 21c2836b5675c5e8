"""Progress events of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.tuner.session.confirm import Contender
from tc.tuner.trial.trial_outcome import FailureKind, Outcome


@frozen
class Judging:
    """The oracle computes what is right for a definition, with so many ``bytes`` of memory."""

    definition: str
    bytes: int


@frozen
class Started:
    """``encodings``: of the search space.  ``known``: trials of earlier runs.  ``bound``: the least seconds of a call
    that this machine allows, if they are known.
    """

    definition: str
    target: str
    encodings: int
    known: int
    bound: float | None


@frozen
class Start:
    """What came of options that the search was to start from; ``number`` counts them from 1."""

    number: int
    outcome: Outcome


@frozen
class Standing:
    """How far a search is.  ``share``: of the budget that is spent, from 0 to 1.  ``left``: seconds, as far as one can
    tell.
    """

    share: float
    left: float | None


@frozen
class Trying:
    """A few candidates were tried.  ``trials``: so far.  ``quickest``: seconds of the best one of all."""

    trials: int
    quickest: float | None
    standing: Standing


@frozen
class Generation:
    """A generation, or the part of it that was tried; all times in seconds of a call, of those that were measured.

    ``trials``: so far.  ``quickest``: of all so far.  ``default``: of the static default.  ``before``: the quickest
    before this generation.
    """

    number: int
    trials: int
    best: float | None
    median: float | None
    worst: float | None
    failures: Mapping[FailureKind, int]
    quickest: float | None
    default: float | None
    before: float | None
    standing: Standing


@frozen
class Decided:
    """What the last comparison says, by contender: ``default``, ``incumbent`` and numbers of trials."""

    contenders: Mapping[str, Contender]
    winner: str


Event: TypeAlias = Judging | Started | Start | Trying | Generation | Decided
Listener: TypeAlias = Callable[[Event], None]


def silence(_event: Event) -> None:
    """Ignores every event."""
