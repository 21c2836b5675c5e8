"""``python -m benchmarks proofs``: how long it takes until options are proven or refused, whatever they are.

Options are drawn from the space that the tuner searches.  What counts is the processor's time from the text to the
decision, without the compiler of the target; nothing runs, so a machine without a GPU decides for any.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

import tc
from benchmarks.problems.cases import case_called
from tc.base.errors import CompileError, OptionsError
from tc.compiler import translate
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.options_json import to_json
from tc.targets.target import CpuTarget, parse_target
from tc.tuner.space.nests import nest_of, silent_options
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed

# Limits, above which the report says so: the processor's seconds.
MOST_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Definition:
    """What options are drawn for: a text and the shapes of its arguments."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]


def _of_suite(name: str) -> Definition:
    case = case_called(name)
    return Definition(name, case.problem.text, tuple(case.problem.shapes(case.sizes).values()))


DEFINITIONS: Final = (
    Definition(
        "mm", "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((128, 256), (256, 192))
    ),
    Definition("transpose", "def transpose(float(M,N) A) -> (B) { B(n,m) = A(m,n) }", ((1000, 777),)),
    *map(
        _of_suite,
        ("tmm-128-1024-1024", "tbmm", "gconv-8", "c3", "mlp1", "kronecker", "lut1", "moments-small"),
    ),
)
TARGETS: Final = ("cpu:x86-64-v4", "emulator", "cuda:sm_90")


class Decision(Enum):
    """What became of options."""

    PROVEN = "proven"
    REFUSED = "refused"  # with a reason, before there is anything to prove
    UNDECIDED = "undecided"  # isl's budget did not suffice


@dataclass(frozen=True, slots=True)
class Decided:
    """One of the options; ``seconds`` of the processor."""

    definition: str
    target: str
    options: Options
    decision: Decision
    seconds: float


def decide_all(
    definitions: Iterable[Definition], targets: Iterable[str], count: int, seed: int, jobs: int
) -> Iterator[list[Decided]]:
    """For each definition on each target, so many random options, in this order."""
    pairs = [(definition, target, count, seed) for definition in definitions for target in targets]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_decide_each, pairs)


def _decide_each(asked: tuple[Definition, str, int, int]) -> list[Decided]:
    definition, target, count, seed = asked
    return [decide(definition, target, options) for options in drawn(definition, target, count, seed)]


def drawn(definition: Definition, target: str, count: int, seed: int) -> list[Options]:
    """Random options of the space that a search on the target has; the same ones for the same seed."""
    specialization = tc.define(definition.text).single().specialize(*definition.shapes)
    machine = parse_target(target)
    kind = CpuOptions if isinstance(machine, CpuTarget) else GpuOptions
    space = Space.of(kind, nest_of(specialization), fixed=silent_options(specialization, machine))
    random = Random(f"{seed} {definition.name} {target}")
    options: list[Options] = []
    while len(options) < count:
        found = space.decode(space.random(random))
        if not isinstance(found, Failed):
            options.append(found)
    return options


def decide(definition: Definition, target: str, options: Options) -> Decided:
    """Whether these options are proven; VerificationError if they turn out to be wrong."""
    machine = parse_target(target)
    started = time.process_time()
    try:
        translate(tc.define(definition.text).single().specialize(*definition.shapes), options, machine)
        decision = Decision.PROVEN
    except OptionsError:
        decision = Decision.REFUSED
    except CompileError as error:
        decision = Decision.UNDECIDED if "budget" in str(error) else Decision.REFUSED
    return Decided(definition.name, target, options, decision, time.process_time() - started)


HEADER: Final = f"{'seconds':20}{'target':>14}{'proven':>8}{'refused':>8}{'undecided':>10}{'median':>8}{'slowest':>8}"


def line(found: list[Decided]) -> str:
    """A definition on a target in the table that ``HEADER`` begins."""
    counts = [sum(one.decision is decision for one in found) for decision in Decision]
    seconds = sorted(one.seconds for one in found)
    numbers = f"{counts[0]:8}{counts[1]:8}{counts[2]:10}{seconds[len(seconds) // 2]:8.2f}{seconds[-1]:8.2f}"
    return f"{found[0].definition:20}{found[0].target:>14}{numbers}"


def slow(found: Iterable[Decided]) -> list[str]:
    """Those that take too long, each with its options in JSON, the slowest first."""
    late = [one for one in found if one.seconds > MOST_SECONDS or one.decision is Decision.UNDECIDED]
    return [described(one) for one in sorted(late, key=_seconds, reverse=True)]


def slowest(found: Iterable[Decided]) -> str:
    """The one that took longest, with its options in JSON."""
    return described(max(found, key=_seconds))


def described(one: Decided) -> str:
    """Options with what became of them; the JSON is what ``from_json`` takes."""
    options = json.dumps(to_json(one.options))
    return f"{one.definition} on {one.target}: {one.decision.value} after {one.seconds:.1f} s: {options}"


def _seconds(one: Decided) -> float:
    return one.seconds
