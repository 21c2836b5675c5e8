"""``SearchRecords``: the records of a task in a cache, read and written by a search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import assert_never

from tc.artifact.definition import Definition
from tc.artifact.executable import Executable
from tc.artifact.packing import assemble, options_from_text, options_text, variant_options
from tc.base.environment import Environment
from tc.base.errors import OptionsError, TCError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.cache.content.store import Store, utc_now
from tc.cache.content.winners import winners
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import CHOSEN, PREDICTED, Measurement, Run, Variant
from tc.cache.format.records import Trial as StoredTrial
from tc.language.lower.specialize import specialize
from tc.language.program.specialization import ArraySpec, Signature
from tc.runtime.version import compiler_version
from tc.store.deposit import deposit
from tc.store.wanted import Wanted
from tc.targets.target import CudaTarget
from tc.tuner.search.search import Candidate
from tc.tuner.session.confirm import Contender
from tc.tuner.space.nests import nest_of
from tc.tuner.space.transfer import Winner
from tc.tuner.trial.measuring import Tried
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome

# Winners of other kernels that are looked at.
_MOST_WINNERS = 64
# How time is taken: of the same arrays again and again, as the caches hold them then; on GPUs after other memory was
# written.
_WARM, _COLD = "warm", "cold"
_MEASURED = "measured"


@frozen
class SearchRecords:
    """The part of a cache that one search reads and writes; everything that it adds is there when it returns."""

    store: Store
    wanted: Wanted
    siblings: Mapping[str, Definition]
    settings: Environment

    @property
    def ingredients(self) -> Ingredients:
        """What identifies the kernel."""
        return self.wanted.ingredients(compiler_version(self.wanted.target, self.settings))

    def known(self, only: str | None = None) -> dict[str, Outcome]:
        """Outcomes of earlier runs on such a machine, by options; what was lost is not known.

        ``only``: the hash of the bits that results must have; what has others, or failed for others, is not known, for
        it may have been tried on other arrays.
        """
        stored = self.store.trials(self.ingredients.key, self.wanted.machine, self.wanted.threads)
        outcomes = ((trial.options, _outcome(trial, only)) for trial in stored)
        return {options: outcome for options, outcome in outcomes if outcome is not None}

    def record(self, candidate: Candidate, tried: Tried, run: str) -> None:
        """Adds a trial of a run."""
        outcome = tried.outcome
        seconds: float | None = None
        samples: tuple[float, ...] = ()
        match outcome:
            case Measured(seconds, samples):
                # How far predictions are off is told by all trials together.
                what, reason = _MEASURED, "" if tried.predicted is None else f"predicted {tried.predicted:.4g} s"
            case Failed(kind, reason):
                what = kind.value
            case _:
                assert_never(outcome)
        self.store.add_trial(
            StoredTrial(
                kernel=self.ingredients.key,
                options=options_text(candidate.options),
                threads=self.wanted.threads,
                machine=self.wanted.machine,
                outcome=what,
                reason=reason,
                origin=candidate.origin.value,
                source=tried.source,
                numerics=tried.numerics,
                seconds=seconds,
                samples=samples,
                run=run,
                number=candidate.number,
                generation=candidate.generation,
                at=utc_now(),
            )
        )

    def begin(self, run: Run) -> None:
        """Adds a run, and the kernel that it is for."""
        self.store.add_kernel(self.ingredients)
        self.store.add_run(run)

    def earlier(self, settings: Mapping[str, object]) -> Run | None:
        """The last run that had these among its settings."""
        for run in reversed(self.store.runs()):
            found = json.loads(run.settings)
            if run.machine == self.wanted.machine and all(found.get(name) == value for name, value in settings.items()):
                return run
        return None

    def incumbent(self) -> Variant | None:
        """The winner so far."""
        return self.store.reader.winner(self.ingredients.key, self.wanted.machine, self.wanted.threads)

    def executable(self, variant: Variant) -> Executable | None:
        """The executable of a stored variant; None if this version does not understand it."""
        try:
            found = assemble(variant.executable, variant.options, variant.source, variant.binary)
        except ValueError:
            return None
        return found.renamed(self.wanted.definition.interface)

    def keep(
        self,
        executable: Executable,
        contender: Contender,
        default: Contender,
        run: str,
        *,
        made: str | None = None,
        chosen: bool = False,
    ) -> None:
        """Stores an executable with what was measured of it beside the default one.

        ``made``: how it came about, where that was no search.  ``chosen``: it goes before what is quicker.
        """
        low, high = contender.interval
        policy = _COLD if isinstance(self.wanted.target, CudaTarget) else _WARM
        policy = PREDICTED if self.wanted.predicted else policy
        deposit(
            self.store,
            self.wanted,
            self.siblings,
            executable,
            self.settings,
            made=f"{'predicted' if self.wanted.predicted else 'tuned'} in run {run}" if made is None else made,
            numerics=contender.numerics,
        )
        self.store.add_measurement(
            Measurement(
                kernel=self.ingredients.key,
                options=variant_options(executable),
                threads=executable.threads,
                machine=self.wanted.machine,
                policy=policy + CHOSEN if chosen else policy,
                seconds=contender.seconds,
                low=low,
                high=high,
                default_seconds=default.seconds,
                samples=len(contender.samples),
                run=run,
                at=utc_now(),
            )
        )

    def winners(self) -> tuple[Winner, ...]:
        """Options that won for other kernels on such a target, with their loops."""
        own = self.ingredients
        stored = winners(self.store.reader, own.target, self.wanted.machine)
        others = (_winner(ingredients, variant) for ingredients, variant in stored if ingredients.key != own.key)
        return tuple(islice((winner for winner in others if winner is not None), _MOST_WINNERS))


def _outcome(trial: StoredTrial, only: str | None) -> Outcome | None:
    """None for what says nothing about the candidate."""
    if trial.seconds is not None:
        return Measured(trial.seconds, trial.samples) if only in (None, trial.numerics) else None
    kind = FailureKind(trial.outcome)
    return None if kind in (FailureKind.LOST, FailureKind.NUMERICS) else Failed(kind, trial.reason)


def _winner(ingredients: Ingredients, variant: Variant) -> Winner | None:
    """None for what this version does not understand any more."""
    try:
        options = options_from_text(variant.options, ingredients.target)
        task = Task(ingredients.program, "f", Signature(()), ingredients.target)
        program = parse_task(task)
        shapes, types = json.loads(ingredients.shapes), json.loads(ingredients.dtypes)
        tensors = [name for name in program.arguments if name not in {scalar.name for scalar in program.scalars}]
        names = [*program.arguments, *program.results]
        signature = Signature(
            arguments=tuple(
                (name, ArraySpec(tuple(shape), ScalarType(type)))
                for name, shape, type in zip(tensors, shapes, types, strict=True)
            ),
            scalars=tuple((names[place], value) for place, value in json.loads(ingredients.scalars)),
        )
        return Winner(ingredients.program, nest_of(specialize(program, signature)), options)
    except (TCError, OptionsError, ValueError):
        return None
