"""What was measured, as it is kept in JSON; see ``benchmarks.reporting.scores`` for what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.measuring.contender import Contender
from benchmarks.measuring.machine import Machine
from benchmarks.measuring.messages import Sample
from benchmarks.problems.case import Suite
from tc.base.json_records import Json
from tc.tuner.roofline.roofline import Roofs, Work

# Seconds in which threads that spin fall asleep.
PAUSE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Settings:
    """How it was measured.

    ``rounds``: quiet ones that a median is taken over.  ``seconds``: of a round of one contender.  ``pause``: seconds
    between two contenders, in which the threads of the first fall asleep; those of a GPU do not spin.  ``arrays``:
    whose ours are, PyTorch's or NumPy's, which ``tc.to_device`` puts on a GPU.  ``ahead``: cases that are made ready
    at a time.
    """

    target: str = "cpu"
    threads: int = 1
    rounds: int = 5
    seconds: float = 0.2
    pause: float = PAUSE
    arrays: Contender = Contender.NUMPY
    peers: tuple[Contender, ...] = ()
    seed: int = 0
    ahead: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A contender's rounds, and what was known before them (see ``messages.Ready``)."""

    contender: Contender
    samples: tuple[Sample, ...]
    preparation: float
    deviation: float
    options: Json | None = None
    stages: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A contender that was not measured, and why; ``wrong``: its result was."""

    contender: Contender
    reason: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One case.  ``calibrations``: seconds of the calibrating kernel before the first round and after each.

    ``minimum`` and ``goal``: see ``benchmarks.problems.goals``.
    """

    case: str
    suite: Suite
    sizes: dict[str, int]
    minimum: float
    work: Work
    calibrations: tuple[float, ...]
    measured: tuple[Measured, ...]
    missing: tuple[Missing, ...]
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One run.  ``started``: the time in ISO 8601.  ``commit``: of the sources, None outside of git."""

    started: str
    commit: str | None
    machine: Machine
    settings: Settings
    roofs: Roofs
    rows: tuple[Row, ...]

    @property
    def quickest_calibration(self) -> float:
        """Seconds of the calibrating kernel when the machine was at its quietest."""
        return min(seconds for row in self.rows for seconds in row.calibrations)
