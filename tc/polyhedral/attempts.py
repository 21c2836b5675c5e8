"""What the pipeline is run with: the options asked for, and what is changed of them where it cannot make loops of them.

Whether loops can be taken shows only once they are there (``tc.polyhedral.generate.obstacles``).  What is then tried
next, and why, is decided here alone, and returned as values.  Limits are lowered and what was left open is chosen; what
was asked for exactly is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from tc.base.decision import Decision
from tc.language.program.specialization import Specialization
from tc.polyhedral.generate.obstacles import InBuffers, LongSums, MissingInstances, Obstacle
from tc.polyhedral.gpu.mapping.split_plan import Plan, plan_split
from tc.polyhedral.passes import Machine
from tc.targets.options import CpuOptions, GpuOptions, Options


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the pipeline.

    ``plan``: how reductions are split, and which are accumulated in float64.  ``whole_sums``: loops over sums of
    iterators are not divided among blocks, threads or tiles.  ``decisions``: what differs from the options asked for.
    """

    options: Options
    plan: Plan
    whole_sums: bool = False
    decisions: tuple[Decision, ...] = ()


def first_attempt(specialization: Specialization, options: Options, machine: Machine) -> Attempt:
    """With the options as they were asked for, but for what the machine has not."""
    decisions = () if isinstance(options, CpuOptions) else tuple(_lacking(options, machine))
    taken = _taking(options, decisions)
    return Attempt(taken, plan_of(specialization, taken), decisions=decisions)


def next_attempt(specialization: Specialization, attempt: Attempt, obstacle: Obstacle) -> Attempt:
    """What to try after an attempt that met an obstacle.

    It has fewer buffers, or more sums that are whole or in float64, so that attempts come to an end.
    """
    match obstacle:
        case InBuffers():
            decisions = _without_buffers(attempt.options, obstacle)
            options = _taking(attempt.options, decisions)
            plan = replace(plan_of(specialization, options), wide=attempt.plan.wide)
            return replace(attempt, options=options, plan=plan, decisions=attempt.decisions + decisions)
        case MissingInstances():
            decisions = (_WHOLE_SUMS,)
            return replace(attempt, whole_sums=True, decisions=attempt.decisions + decisions)
        case LongSums(statements):
            decisions = tuple(map(_in_float64, sorted(statements)))
            plan = replace(attempt.plan, wide=attempt.plan.wide | statements)
            return replace(attempt, plan=plan, decisions=attempt.decisions + decisions)
        case _:
            assert_never(obstacle)


def plan_of(specialization: Specialization, options: Options) -> Plan:
    """Which reductions are split."""
    return Plan() if isinstance(options, CpuOptions) else plan_split(specialization, options)


def _lacking(options: GpuOptions, machine: Machine) -> Iterator[Decision]:
    if options.shuffles and not machine.shuffles:
        yield Decision("shuffles", True, False, "the target has no warp shuffles")
    if options.stages is None and not machine.copies_ahead:
        yield Decision("stages", None, 1, "the target copies nothing ahead, so that more tiles would only take room")


# What buffers of each kind are limited by, on the way to none.
_OF_PROCESSORS: Final = ("accumulators", "packed", "local", "streamed")
_OF_GPUS: Final = ("private", "shared", "fragments", "shuffles")


def _without_buffers(options: Options, obstacle: InBuffers) -> tuple[Decision, ...]:
    """The limits under which there are no such buffers."""
    names: tuple[str, ...]
    match obstacle:
        case InBuffers.NOT_AFFINE:
            names = _OF_PROCESSORS if isinstance(options, CpuOptions) else _OF_GPUS
        case InBuffers.MOVING_ARRAYS:
            # Results are worth more than operands.
            names = ("fragments",) if isinstance(options, GpuOptions) and options.fragments else ("private",)
        case InBuffers.DIVERGENT_BARRIERS | InBuffers.MISSING_COPIES:
            names = ("shared",)
        case _:
            assert_never(obstacle)
    asked = ((name, getattr(options, name)) for name in names)
    found = tuple(Decision(name, value, type(value)(), obstacle.value) for name, value in asked if value)
    assert found, f"{obstacle} without buffers"
    return found


_WHOLE_SUMS: Final = Decision(
    "loops over sums of iterators",
    "divided",
    "whole",
    "isl's loops over quotients of sums of iterators would leave iterations out",
)


def _in_float64(statement: str) -> Decision:
    reason = f"{statement} adds up too many terms in float32, into more elements than can have totals beside them"
    return Decision("accumulator", "float32", "float64", reason)


def _taking(options: Options, decisions: tuple[Decision, ...]) -> Options:
    changes: dict[str, Any] = {decision.option: decision.taken for decision in decisions}
    return replace(options, **changes)
