"""``Goal``: what a case must reach on a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from benchmarks.problems.case import Case


@dataclass(frozen=True, slots=True)
class Goal:
    """``minimum``: what the time of the best peer, divided by ours, has to reach.

    ``seconds``: of a call in float32, aimed at on the machine that the goals of GPUs are set for, an H200; None where
    none were set.
    """

    minimum: float
    seconds: float | None = None


def goal_of(case: Case, kind: str) -> Goal:
    """That of a case on targets of a kind, ``cpu`` or ``cuda``."""
    return GOALS_ON_GPUS.get(case.name, Goal(1.0)) if kind == "cuda" else Goal(case.minimum)


# From what an H200 can do at most, with a microsecond or two for the launch, and what its libraries are known to take.
GOALS_ON_GPUS: Final[Mapping[str, Goal]] = MappingProxyType(
    {
        "tmm-128-32-256": Goal(1.8, 2.2e-6),
        "tmm-128-1024-1024": Goal(1.6, 6.3e-6),
        "tmm-128-4096-16384": Goal(1.1, 300e-6),
        "tbmm": Goal(2.0, 3.6e-6),
        "gconv-4": Goal(3.0, 27e-6),
        "gconv-8": Goal(3.0, 16e-6),
        "gconv-16": Goal(2.5, 14e-6),
        "gconv-32": Goal(2.5, 10e-6),
        "lut1": Goal(2.5, 3.0e-6),
        "lut2": Goal(4.0, 3.6e-6),
        "mlp1": Goal(2.0, 3.5e-6),
        "c3": Goal(1.6, 6.2e-6),
        "mlp3": Goal(3.0, 3.0e-6),
        "group-norm-large": Goal(1.3, 79e-6),
        "group-norm-small": Goal(2.0, 3.0e-6),
        "moments-large": Goal(1.05, 38.5e-6),
        "moments-small": Goal(2.0, 2.5e-6),
        "softmax": Goal(1.05, 34.5e-6),
    }
)
