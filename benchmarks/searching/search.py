"""Tunes the cases of the suite, each from the static default, and tells what that gained."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.measuring.clock import kind_of
from benchmarks.problems.case import Case
from benchmarks.searching.recording import Recording, record
from benchmarks.searching.tuned import Winner, Winners
from tc.base.counted import counted
from tc.store.measured_machine import measured_machine
from tc.targets.options_json import to_json


def search_case(
    case: Case, budget: str, seed: int, arrays_seed: int, cache: Path | None, target: str = "cpu"
) -> tuple[Winner, Recording]:
    """What a search finds for a case, and what it was told; its trials go to ``cache`` (None: nowhere that stays).

    ``budget``: as ``tc-tune`` takes it.  The errors are those of ``Comprehension.tune``.
    """
    comprehension = case.problem.comprehension
    arguments = case.problem.arguments(case.sizes, arrays_seed).values()
    found = comprehension.tune(*arguments, target=target, budget=budget, cache=cache, seed=seed)
    winner = Winner(
        options=to_json(found.best),
        seconds=found.seconds,
        interval=found.interval,
        default_seconds=found.default,
        bound=found.bound,
        processor=measured_machine(gpu=kind_of(target) == "cuda"),
        trials=len(found.trials),
        failures={kind.value: count for kind, count in found.failures.items()},
        budget=budget,
        seed=seed,
        stopped=found.stopped,
    )
    return winner, record(found, seed)


def line(case: str, winner: Winner) -> str:
    """One line about a case."""
    failed = sum(winner.failures.values())
    return (
        f"{case:18} {winner.default_seconds * 1e6:12,.1f} {winner.seconds * 1e6:12,.1f} {winner.gain:7.2f} "
        f"{winner.trials:7} {failed:7}"
    )


HEADER = f"{'case':18} {'default, us':>12} {'tuned, us':>12} {'gain':>7} {'trials':>7} {'failed':>7}"


def summary(winners: Winners) -> str:
    """The gains of all cases together."""
    gains = [winner.gain for winner in winners.cases.values()]
    if not gains:
        return "nothing was tuned"
    won = sum(winner.won for winner in winners.cases.values())
    return (
        f"median gain {statistics.median(gains):.3f}, geometric mean {statistics.geometric_mean(gains):.3f}, "
        f"{won} of {counted(len(gains), 'case')} have a winner beside the default"
    )
