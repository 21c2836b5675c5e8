"""What the searches of the suite were told, so that everybody can see that their decisions follow from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.problems.case import Case
from tc.artifact.packing import options_from_text
from tc.base.json_records import load_record, save_record
from tc.targets.options import CpuOptions, GpuOptions
from tc.targets.options_json import to_json
from tc.targets.target import CpuTarget, parse_target
from tc.tuner.search.combined import combined_search
from tc.tuner.search.replay import Decision
from tc.tuner.search.search import Origin, Search, Trial
from tc.tuner.session.settings import TuningResult
from tc.tuner.space.genes import Gene, SizeGene
from tc.tuner.space.nests import nest_of, silent_options
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome

_COPIES: Final = ("schedule", "unroll")
_MOST_COPIES: Final = 4096

DEFAULT: Final = Path(__file__).parents[1] / "options" / "cpu-trials.json"


class OtherDecisionsError(Exception):
    """A search does not ask for what it asked for when it was recorded."""


@dataclass(frozen=True, slots=True)
class Recording:
    """All that the decisions of a search depend on.

    ``seeds``: options that were tried first, beside the default.  ``outcomes``: of the trials in order, separated by
    commas: seconds, or the kind of a failure.  ``decisions``: a hash over what was asked for, and why.  ``unroll``: the
    most copies of a loop's body that the space had; older recordings do not say.
    """

    target: str
    seed: int
    seeds: tuple[object, ...]
    outcomes: str
    decisions: str
    unroll: int = 64


@dataclass(frozen=True, slots=True)
class Recordings:
    """Recordings by case."""

    cases: dict[str, Recording]


def record(found: TuningResult, seed: int) -> Recording:
    """The recording of a search that ended."""
    seeds = [trial.candidate.options for trial in found.trials[1:] if trial.candidate.origin is Origin.SEED]
    return Recording(
        target=str(found.executable.target),
        seed=seed,
        seeds=tuple(to_json(options) for options in seeds),
        outcomes=",".join(_word(trial.outcome) for trial in found.trials),
        decisions=_digest(found.trials),
        unroll=_MOST_COPIES,
    )


def search_again(case: Case, recording: Recording) -> Search:
    """The search that was recorded, before it was told anything."""
    specialization = case.problem.comprehension.specialize(*case.problem.shapes(case.sizes).values())
    target = parse_target(recording.target)
    kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
    space = Space.of(kind, nest_of(specialization), fixed=silent_options(specialization, target))
    space = replace(space, genes=tuple(_as_then(gene, recording) for gene in space.genes))
    seeds = [options_from_text(json.dumps(options), recording.target) for options in recording.seeds]
    return combined_search(space, Random(recording.seed), seeds)


def _as_then(gene: Gene, recording: Recording) -> Gene:
    """A gene with the values that it had when a search was recorded."""
    if not isinstance(gene, SizeGene) or gene.path != _COPIES:
        return gene
    known = zip(gene.values, gene.sizes(), strict=True)
    return replace(gene, values=tuple(value for value, size in known if size <= recording.unroll))


def replay_case(case: Case, recording: Recording) -> tuple[Trial, ...]:
    """The trials of the search once more, which is told what was recorded.

    OtherDecisionsError if it asks for something else.
    """
    search = search_again(case, recording)
    outcomes = [_outcome(word) for word in recording.outcomes.split(",")]
    while len(search.trials) < len(outcomes) and (asked := search.ask()):
        search.tell(outcomes[len(search.trials) :][: len(asked)])
    if _digest(search.trials) != recording.decisions:
        raise OtherDecisionsError(f"{case.name}: the search decides otherwise than when it was recorded")
    return tuple(search.trials)


def line(case: str, trials: tuple[Trial, ...]) -> str:
    """What a replay shows: how quick the best is after half of the trials, and after all of them."""
    half, whole = (min(trial.seconds for trial in part) for part in (trials[: len(trials) // 2 or 1], trials))
    return f"{case:18} {len(trials):7} {half * 1e6:14,.1f} {whole * 1e6:14,.1f}"


HEADER: Final = f"{'case':18} {'trials':>7} {'after half, us':>14} {'after all, us':>14}"


def load_recordings(path: Path) -> Recordings:
    """The recordings in a file, none if there is no file; ValueError if it holds something else."""
    return load_record(Recordings, path) if path.exists() else Recordings({})


def save_recording(case: str, recording: Recording, path: Path) -> None:
    """Adds a recording to a file, in the place of an older one of the case."""
    cases = {**load_recordings(path).cases, case: recording}
    save_record(Recordings(dict(sorted(cases.items()))), path)


def _digest(trials: Sequence[Trial]) -> str:
    digest = hashlib.sha256()
    for decision in map(Decision.of, trials):
        why = (decision.number, decision.generation, decision.options, decision.origin.value, *decision.parents)
        digest.update(f"{why}\n".encode())
    return digest.hexdigest()


def _word(outcome: Outcome) -> str:
    return repr(outcome.seconds) if isinstance(outcome, Measured) else outcome.kind.value


def _outcome(word: str) -> Outcome:
    """The inverse of ``_word``; ValueError for anything else."""
    if word in {kind.value for kind in FailureKind}:
        return Failed(FailureKind(word), "recorded")
    return Measured(float(word), (float(word),))
