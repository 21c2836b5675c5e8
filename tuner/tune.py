"""``Tuning``: the search for the quickest options of one kernel, generation by generation, and its end."""

from __future__ import annotations

import json
import math
import secrets
import statistics
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final, assert_never

from tc.cache.records import Run
from tc.cache.store import utc_now
from tc.errors import TuningError
from tc.options import CpuOptions, GpuOptions, Options
from tc.packing import options_from_text, options_text, unpack
from tc.records import to_json
from tc.target import CpuTarget
from tc.tuner.bound import NEAR, Bound
from tc.tuner.budget import Allowance, Clock
from tc.tuner.capsule import KEPT, write_capsule
from tc.tuner.combined import combined_search
from tc.tuner.confirm import confirm
from tc.tuner.contest import DEFAULT, FINALISTS, contenders, winner_of
from tc.tuner.crew import Crew
from tc.tuner.genetic import ORIGINAL, genetic_search
from tc.tuner.ledger import Ledger
from tc.tuner.nest import Nest
from tc.tuner.outcome import Failed, FailureKind, Measured, count_failures
from tc.tuner.progress import Decided, Generation, Listener, Started
from tc.tuner.random_search import random_search
from tc.tuner.search import Candidate, Search
from tc.tuner.settings import Numerics, Strategy, TuningResult, TuningSettings
from tc.tuner.space import Space
from tc.tuner.task import Task
from tc.tuner.transfer import seeds
from tc.tuner.trials import Trials, Tried

# So many candidates for every process that compiles are compiled before they are measured.
_PER_JOB: Final = 4
_SEEDS: Final = 8
# What measuring takes beside what is timed.
_OVERHEAD: Final = 1.3
_ROUNDS: Final = 11


class Tuning:
    """One search: ``step`` tries a generation, ``finish`` lets the quickest compete; ``run`` does all of it.

    ``bound``: what no call falls below, None if it is not known.  ``stop``: asked between trials whether to end now.
    ``silent``: names of options that change nothing.
    """

    def __init__(
        self,
        task: Task,
        nest: Nest,
        crew: Crew,
        ledger: Ledger,
        settings: TuningSettings,
        *,
        clock: Clock,
        bound: Bound | None = None,
        listen: Listener,
        stop: Callable[[], bool],
        silent: Collection[str] = (),
    ) -> None:
        kind = CpuOptions if isinstance(ledger.wanted.target, CpuTarget) else GpuOptions
        self._task = task
        self._crew = crew
        self._ledger = ledger
        self._settings = settings
        self._bound = bound
        self._listen = listen
        self._stop = stop
        self._clock = clock
        self._space = Space.of(kind, nest, fixed=silent)
        self._run = secrets.token_hex(8)
        self._trials = Trials(crew, settings.seconds, clock)
        if settings.numerics is Numerics.BITWISE:
            self._trials.only = self._trials.numerics_of(options_text(kind()))
        self._known = ledger.known(self._trials.only)
        self._generations = 0
        self._before: float | None = None
        self._search = self._begin(self._first_options())
        self._listen(Started(task.definition, task.target, self._space.size, len(self._known), self.bound))

    @property
    def name(self) -> str:
        """Of the definition."""
        return self._task.definition

    @property
    def best(self) -> float | None:
        """Seconds of the quickest candidate so far."""
        return None if self._search.best is None else self._search.best.seconds

    @property
    def bound(self) -> float | None:
        """Seconds that no call falls below, None if they are not known."""
        return None if self._bound is None else self._bound.seconds

    def rest(self) -> None:
        """Ends the processes until they are needed again."""
        self._crew.rest()

    @property
    def finishing(self) -> float:
        """Seconds that ``finish`` takes, about."""
        return _ROUNDS * (FINALISTS + 2) * self._settings.seconds * _OVERHEAD

    def run(self, allowance: Allowance) -> TuningResult:
        """Searches until the time is spent, that for the last comparison included; errors as of ``finish``."""
        searching = allowance.keeping(self.finishing)
        while (stopped := self.step(searching)) is None:
            pass
        return self.finish(stopped)

    def step(self, allowance: Allowance) -> str | None:
        """Tries a generation, or what is allowed of it; why the search ends, or None if it goes on."""
        self._before = self.best
        asked = self._search.ask()
        if not asked:
            return "there is nothing else to try"
        # The default tells how long calls take, which all others are compared with.
        batches = [asked] if self._generations else [asked[:1], asked[1:]]
        for batch in batches:
            if (reason := self._try_batch(batch, allowance)) is not None:
                return reason
        self._generations += 1
        self._tell_generation(asked, allowance)
        return None

    def finish(self, stopped: str) -> TuningResult:
        """Lets the quickest compete with the default and the incumbent, and keeps who wins.

        ``stopped``: why the search ended.  TuningError if not even the static default runs.
        """
        default = self._search.trials[0].outcome if self._search.trials else Failed(FailureKind.LOST, stopped)
        if isinstance(default, Failed):
            raise TuningError(
                f"{self._task.definition}: nothing can be tuned, because the static default fails: "
                f"{default.kind.value}: {default.reason}"
            )
        return self._decide(stopped)

    # --- the search ---------------------------------------------------------------------------------------------

    def _first_options(self) -> tuple[Options, ...]:
        """Seeds from the cache, the same ones as when a search with these settings began before."""
        identity = {
            "kernel": self._ledger.ingredients.key,
            "seed": self._settings.seed,
            "strategy": self._settings.strategy.value,
            "numerics": self._settings.numerics.value,
        }
        earlier = self._ledger.earlier(identity)
        if earlier is None:
            program = self._ledger.ingredients.program
            chosen = seeds(self._space, program, self._ledger.winners(), _SEEDS)
        else:
            texts = json.loads(earlier.settings)["seeds"]
            chosen = tuple(options_from_text(text, self._task.target) for text in texts)
        told = {
            **identity,
            "seeds": [options_text(options) for options in chosen],
            "budget": str(self._settings.budget),
            "definition": self._task.definition,
            "task": to_json(self._task),
            "bound": self.bound,
        }
        self._ledger.begin(Run(self._run, json.dumps(told), self._ledger.wanted.machine, utc_now()))
        return chosen

    def _begin(self, first: Sequence[Options]) -> Search:
        random = Random(self._settings.seed)
        match self._settings.strategy:
            case Strategy.COMBINED:
                return combined_search(self._space, random, first)
            case Strategy.GENETIC:
                return genetic_search(self._space, random, first)
            case Strategy.ORIGINAL:
                return genetic_search(self._space, random, first, ORIGINAL)
            case Strategy.RANDOM:
                return random_search(self._space, random, first)
            case _:
                assert_never(self._settings.strategy)

    def _try_batch(self, batch: Sequence[Candidate], allowance: Allowance) -> str | None:
        search, step = self._search, _PER_JOB * self._settings.jobs
        for start in range(0, len(batch), step):
            part = batch[start : start + step]
            part = part[: allowance.trials_left(len(search.trials))]
            texts = [options_text(candidate.options) for candidate in part]
            new = [text for text in texts if text not in self._known]
            found = dict(zip(new, self._trials.try_all(new, self.best or math.inf), strict=True))
            for candidate, text in zip(part, texts, strict=True):
                search.tell((self._known[text] if text in self._known else found[text].outcome,))
                if text in found:
                    self._note(candidate, found[text])
            if (reason := self._reason_to_end(allowance)) is not None:
                return reason
        return None

    def _note(self, candidate: Candidate, tried: Tried) -> None:
        """Keeps a trial, and what does it again if it should never happen."""
        self._ledger.record(candidate, tried, self._run)
        outcome, folder = tried.outcome, self._settings.capsules
        if isinstance(outcome, Failed) and outcome.kind in KEPT and folder is not None:
            write_capsule(folder, self._task, options_text(candidate.options), self._settings.seed, outcome)

    def _reason_to_end(self, allowance: Allowance) -> str | None:
        search = self._search
        if self._stop():
            return "it was interrupted"
        if isinstance(search.trials[0].outcome, Failed):
            return "the static default fails"
        best = search.best
        if self._bound is not None and best is not None and self._bound.is_reached(best.seconds):
            return f"the best is within {100 * (NEAR - 1):.0f} % of what this machine allows"
        if not allowance.allows(trials=len(search.trials), generations=self._generations):
            return "the budget is spent"
        return None

    def _tell_generation(self, asked: Sequence[Candidate], allowance: Allowance) -> None:
        search = self._search
        trials = search.trials[-len(asked) :]
        times = sorted(trial.seconds for trial in trials if isinstance(trial.outcome, Measured))
        best, default = search.best, search.trials[0]
        self._listen(
            Generation(
                number=asked[0].generation,
                trials=len(search.trials),
                best=times[0] if times else None,
                median=statistics.median(times) if times else None,
                worst=times[-1] if times else None,
                failures=count_failures(trial.outcome for trial in trials),
                quickest=None if best is None else best.seconds,
                default=default.seconds if isinstance(default.outcome, Measured) else None,
                left=allowance.seconds_left(),
                before=self._before,
            )
        )

    # --- the end ------------------------------------------------------------------------------------------------

    def _decide(self, stopped: str) -> TuningResult:
        """The default, the incumbent and the quickest few, measured in turns."""
        incumbent = self._ledger.incumbent()
        options = None if incumbent is None else incumbent.options
        packed = contenders(self._search.trials, options, self._trials)
        found = confirm(self._crew, packed, _ROUNDS, self._settings.seconds, lambda: not self._stop())
        if DEFAULT not in found:
            raise TuningError(f"{self._task.definition}: the static default ran before, and fails now")
        default = found[DEFAULT]
        winner = winner_of(found, bitwise=self._settings.numerics is Numerics.BITWISE)
        self._listen(Decided(found, winner))
        self._ledger.keep(unpack(packed[DEFAULT]), default, default, self._run)
        if winner != DEFAULT:
            self._ledger.keep(unpack(packed[winner]), found[winner], default, self._run)
        executable = unpack(packed[winner])
        return TuningResult(
            best=executable.options,
            seconds=found[winner].seconds,
            interval=found[winner].interval,
            default=default.seconds,
            bound=self.bound,
            numerics=found[winner].numerics,
            trials=tuple(self._search.trials),
            executable=executable,
            stopped=stopped,
        )
