"""Outcomes of trials, as values: the measured time, or why there is none."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, assert_never

from tc.base.counted import counted
from tc.base.frozen import frozen


class FailureKind(Enum):
    """Why a candidate has no time; the values stand in caches and reports."""

    ILLEGAL = "illegal"  # the options cannot be honoured for this kernel
    COMPILE = "compile failed"
    CRASH = "crashed"
    TIMEOUT = "timed out"
    SLOW = "too slow to run"  # a lower bound of its time says so
    MEMORY = "out of memory"
    OUT_OF_BOUNDS = "wrote out of bounds"
    WRONG = "wrong result"
    NUMERICS = "other bits"  # right, but not the bits that were asked for
    DEVICE = "device error"
    LOST = "worker lost"  # says nothing about the candidate


_PLURALS: Final = {
    FailureKind.WRONG.value: "wrong results",
    FailureKind.DEVICE.value: "device errors",
    FailureKind.LOST.value: "workers lost",
}


@frozen
class Measured:
    """``seconds`` of one call, from ``samples``, each the seconds of a call in one measurement.

    ``cost``: what a search makes small, None where that is the seconds.  ValueError unless the seconds are a positive
    number.
    """

    seconds: float
    samples: tuple[float, ...]
    cost: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"a call cannot take {self.seconds} seconds")


@frozen
class Failed:
    """A candidate without a time; ``reason`` is one line for a person."""

    kind: FailureKind
    reason: str


Outcome: TypeAlias = Measured | Failed


def outcome_to_text(outcome: Outcome) -> str:
    """The outcome as JSON with sorted names; the inverse of ``outcome_from_text``."""
    match outcome:
        case Measured(seconds, samples):
            fields: dict[str, Any] = {"seconds": seconds, "samples": list(samples)}
        case Failed(kind, reason):
            fields = {"failed": kind.value, "reason": reason}
        case _:
            assert_never(outcome)
    return json.dumps(fields, sort_keys=True)


def outcome_from_text(text: str) -> Outcome:
    """The inverse of ``outcome_to_text``.  ValueError for anything else."""
    match json.loads(text):
        case {"seconds": float() | int() as seconds, "samples": list() as samples, **rest} if not rest:
            return Measured(float(seconds), tuple(map(float, samples)))
        case {"failed": str() as kind, "reason": str() as reason, **rest} if not rest:
            return Failed(FailureKind(kind), reason)
        case _:
            raise ValueError(f"not the outcome of a trial: {text}")


def count_failures(outcomes: Iterable[Outcome]) -> Mapping[FailureKind, int]:
    """How many failed, by kind, in the order in which the kinds are declared; kinds without a failure are left out."""
    numbers = Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failed))
    return {kind: numbers[kind] for kind in FailureKind if numbers[kind]}


def counted_failures(kind: str, number: int) -> str:
    """``1 wrong result``, ``2 wrong results``, ``2 timed out``; kinds that are unknown here stay as they are."""
    return counted(number, kind, _PLURALS.get(kind, kind))


def summary(outcomes: Iterable[Outcome]) -> str:
    """One line: how many were measured, and how many failed by kind, as in ``12 measured, 3 illegal, 1 timed out``."""
    known = tuple(outcomes)
    failures = count_failures(known)
    measured = len(known) - sum(failures.values())
    told = (counted_failures(kind.value, count) for kind, count in failures.items())
    return ", ".join((f"{measured} measured", *told))
