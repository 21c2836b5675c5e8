"""``Tuning``: the search for the quickest options of one kernel, generation by generation, and its end."""

from __future__ import annotations

import json
import math
import secrets
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final, assert_never

from tc.artifact.executable import Executable
from tc.artifact.packing import has_injected_source, options_from_text, options_text, pack, unpack
from tc.base.errors import TuningError
from tc.base.json_records import to_json
from tc.cache.content.store import utc_now
from tc.cache.format.records import Run
from tc.targets.options import Options
from tc.tuner.roofline.bound import NEAR
from tc.tuner.roofline.bounds import NO_BOUNDS, Bounds
from tc.tuner.search.combined import combined_search
from tc.tuner.search.genetic import ORIGINAL, GeneticParameters, genetic_search
from tc.tuner.search.random_search import random_search
from tc.tuner.search.search import Candidate, Search, Trial
from tc.tuner.session.confirm import Contender, confirm
from tc.tuner.session.control import Control
from tc.tuner.session.final_comparison import DEFAULT, FINALISTS, INCUMBENT, contenders, winner_of
from tc.tuner.session.in_turns import Turns
from tc.tuner.session.predicted_workers import no_prediction, predicted_seconds
from tc.tuner.session.progress_events import Decided, Generation, Standing, Start, Started, Trying
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.settings import Numerics, Strategy, TuningResult, TuningSettings
from tc.tuner.space.space import REFUSED, Space
from tc.tuner.space.transfer import seeds
from tc.tuner.trial.budget import Allowance
from tc.tuner.trial.deadline import Deadline
from tc.tuner.trial.measuring import Sampling, Tried
from tc.tuner.trial.reproducer import KEPT, write_reproducer
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, count_failures
from tc.tuner.trial.trials import LONGEST_BUILD, Trials
from tc.tuner.trial.workers import LocalWorkers, Packed, Workers

# So many candidates for every process that compiles are compiled before they are measured.
_PER_JOB: Final = 4
_SEEDS: Final = 8
# What measuring takes beside what is timed.
_OVERHEAD: Final = 1.3
_LEAST_ROUNDS: Final = 3
# Candidates for these targets are measured only where they are predicted to be quick.
_DRAFTED: Final = "cuda:"


class Tuning:
    """One search: ``step`` tries a generation, ``finish`` lets the quickest compete; ``run`` does all of it.

    ``bounds``: what calls do not fall below.  ``stop``: asked between trials whether to end now.
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        workers: Workers,
        records: SearchRecords,
        settings: TuningSettings,
        control: Control,
        bounds: Bounds = NO_BOUNDS,
    ) -> None:
        self._task = task
        self._workers = workers
        self._records = records
        self._settings = settings
        self._prefer = settings.preferences
        # It says nothing of anything but time.
        self._bound = bounds.call if self._prefer.are_plain else None
        self._listen = control.listen
        self._stop = control.stop
        self._clock = control.clock
        self._space = space
        self._run = secrets.token_hex(8)
        self._trials = Trials(
            workers,
            Sampling(settings.seconds, settings.effort.repeats, led=self._prefer.are_plain),
            control.clock,
            control.stop,
            measurers=workers.measurers if isinstance(workers, LocalWorkers) else (),
            least=lambda packed: bounds.of_grids(unpack(packed).convention.grids),
            predicted=predicted_seconds if task.target.startswith(_DRAFTED) else no_prediction,
        )
        self._tried: dict[int, Tried] = {}
        self._incumbent = records.incumbent()
        self._remember_incumbent()
        if settings.numerics is Numerics.BITWISE:
            self._trials.only = self._trials.numerics_of(options_text(space.defaults))
        self._known = records.known(self._trials.only)
        self._generations = 0
        self._before: float | None = None
        # Seconds in earlier steps, and when this one began.
        self._busy, self._resumed = 0.0, 0.0
        self._search = self._begin(self._first_options())
        self._asked: Sequence[Candidate] = ()
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

    def stop_idle(self) -> None:
        """Ends the processes until they are needed again."""
        self._workers.stop_idle()

    @property
    def finishing(self) -> float:
        """Seconds that ``finish`` takes, about."""
        return self._settings.effort.rounds * (FINALISTS + 2) * self._settings.seconds * _OVERHEAD

    def begin(self) -> None:
        """Tries the static default, which all others are compared with.

        It belongs to the start, as arrays and processes do, and no budget is charged with it.
        """
        if not self._search.trials and not self._stop():
            self._asked = self._search.ask()
            self._try_part(self._asked[:1])

    def run(self) -> TuningResult:
        """Searches until the budget is spent, its time for the last comparison included; errors as of ``finish``."""
        self.begin()
        searching = self._settings.budget.start(self._clock).keeping(self.finishing)
        while (stopped := self.step(searching)) is None:
            pass
        return self.finish(stopped)

    def step(self, allowance: Allowance) -> str | None:
        """Tries a generation, or what is allowed of it; why the search ends, or None if it goes on.

        It must have begun.
        """
        self._before, self._resumed = self.best, self._clock()
        try:
            return self._step(allowance)
        finally:
            self._busy += self._clock() - self._resumed

    def _step(self, allowance: Allowance) -> str | None:
        if (reason := self._reason_to_end(allowance)) is not None:
            return reason
        # The default, which is the first one, was tried when the search began.
        asked = self._search.ask() if self._generations else self._asked
        if not asked:
            return "there is nothing else to try"
        if (reason := self._try_batch(asked if self._generations else asked[1:], allowance)) is not None:
            return reason
        self._generations += 1
        self._tell_generation(asked, allowance)
        return None

    def finish(self, stopped: str, deadline: Deadline | None = None) -> TuningResult:
        """Lets the quickest compete with the default and the incumbent, and keeps who wins.

        ``stopped``: why the search ended.  ``deadline``: for a search that was interrupted; the best so far is kept
        first, and wins where there is no time to compare.  TuningError if not even the static default runs.
        """
        self._require_default(stopped)
        if deadline is not None:
            self.keep_best()
        return self._decide(stopped, deadline)

    def settle(self, stopped: str) -> None:
        """Ends a search that had no time: the winner of before stays, or else the default is it, as it was measured.

        Errors as of ``finish``.
        """
        self._require_default(stopped)
        if self._incumbent is None:
            self.keep_best()

    def turns(self) -> Turns:
        """For measuring the winner beside those of other kernels."""
        default = self._trials.packed(options_text(self._space.defaults))
        return Turns(self._workers, self._records, self._settings.seconds, self._settings.effort.rounds, default)

    def _require_default(self, stopped: str) -> None:
        if not self._search.trials:
            raise TuningError(f"{self._task.definition}: {stopped} before anything was tried")
        default = self._search.trials[0].outcome
        if isinstance(default, Failed):
            raise TuningError(
                f"{self._task.definition}: nothing can be tuned, because the static default fails: "
                f"{default.kind.value}: {default.reason}"
            )

    # --- the search ---------------------------------------------------------------------------------------------

    def _first_options(self) -> tuple[Options, ...]:
        """What the search is to start from, then seeds from the cache, the same ones as when a search with these
        settings began before.
        """
        identity = {
            "kernel": self._records.ingredients.key,
            "seed": self._settings.seed,
            "strategy": self._settings.strategy.value,
            "numerics": self._settings.numerics.value,
            "starts": [options_text(options) for options in self._settings.starts],
            "effort": self._settings.effort.name,
            **self._prefer.names,
        }
        earlier = self._records.earlier(identity)
        if earlier is None:
            program = self._records.ingredients.program
            chosen = seeds(self._space, program, self._records.winners(), _SEEDS)
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
        self._records.begin(Run(self._run, json.dumps(told), self._records.wanted.machine, utc_now()))
        for number, options in enumerate(self._settings.starts, 1):
            if not self._prefer.allow(options):
                self._listen(Start(number, Failed(FailureKind.ILLEGAL, REFUSED)))
        return tuple(options for options in (*self._settings.starts, *chosen) if self._prefer.allow(options))

    def _remember_incumbent(self) -> None:
        """An injected source competes as it is stored: no compiler stage can make it again."""
        one = self._incumbent
        if one is not None and has_injected_source(one.options):
            executable = self._records.executable(one)
            if executable is not None:
                self._trials.remember(one.options, pack(executable))

    def _begin(self, first: Sequence[Options]) -> Search:
        random, effort = Random(self._settings.seed), self._settings.effort
        genetic = GeneticParameters(population=effort.population, parents=effort.population)
        match self._settings.strategy:
            case Strategy.COMBINED:
                return combined_search(self._space, random, first, genetic, effort.first)
            case Strategy.GENETIC:
                return genetic_search(self._space, random, first, genetic)
            case Strategy.ORIGINAL:
                return genetic_search(self._space, random, first, ORIGINAL)
            case Strategy.RANDOM:
                return random_search(self._space, random, first)
            case _:
                assert_never(self._settings.strategy)

    def _try_batch(self, batch: Sequence[Candidate], allowance: Allowance) -> str | None:
        step = _PER_JOB * self._settings.jobs
        for start in range(0, len(batch), step):
            part = batch[start : start + step]
            self._try_part(part[: allowance.trials_left(len(self._search.trials))])
            self._listen(Trying(len(self._search.trials), self.best, self._standing(allowance)))
            if (reason := self._reason_to_end(allowance)) is not None:
                return reason
        return None

    def _try_part(self, part: Sequence[Candidate]) -> None:
        """Tries candidates, or the first ones of them if the search is stopped."""
        texts = [options_text(candidate.options) for candidate in part]
        new = [text for text in texts if text not in self._known]
        for text in texts:
            if text in self._known:
                self._trials.follow(text, self._known[text])
        found = dict(zip(new, self._trials.try_all(new), strict=False))
        for candidate, text in zip(part, texts, strict=True):
            if text not in self._known and text not in found:
                break
            outcome = self._known[text] if text in self._known else found[text].outcome
            if text in found:
                self._note(candidate, found[text])
            if isinstance(outcome, Measured):
                outcome = self._prefer.priced(candidate.options, outcome)
            self._search.tell((outcome,))
            if candidate.options in self._settings.starts:
                self._listen(Start(self._settings.starts.index(candidate.options) + 1, outcome))

    def _note(self, candidate: Candidate, tried: Tried) -> None:
        """Keeps a trial, and what does it again if it should never happen."""
        self._records.record(candidate, tried, self._run)
        self._tried[candidate.number] = tried
        outcome, folder = tried.outcome, self._settings.reproducers
        if isinstance(outcome, Failed) and outcome.kind in KEPT and folder is not None:
            # A long search does not end because a folder cannot be written.
            with suppress(OSError):
                write_reproducer(folder, self._task, options_text(candidate.options), self._settings.seed, outcome)

    def _reason_to_end(self, allowance: Allowance) -> str | None:
        search = self._search
        if self._stop() or not search.trials:
            return "it was interrupted"
        if isinstance(search.trials[0].outcome, Failed):
            return "the static default fails"
        best = search.best
        if self._bound is not None and best is not None and self._bound.is_reached(best.seconds):
            return f"the best is within {100 * (NEAR - 1):.0f} % of what this machine allows"
        if not allowance.allows(trials=len(search.trials), generations=self._generations):
            return "the budget is spent"
        return None

    def _standing(self, allowance: Allowance) -> Standing:
        done = {"trials": len(self._search.trials), "generations": self._generations}
        busy = self._busy + self._clock() - self._resumed
        return Standing(allowance.share(**done), allowance.expected(**done, busy=busy))

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
                before=self._before,
                standing=self._standing(allowance),
            )
        )

    # --- the end ------------------------------------------------------------------------------------------------

    def keep_best(self) -> None:
        """Stores the best so far as the winner, without compiling or measuring anything: what was known from before
        has been stored by who tried it.

        It has no run until a search has ended, so that an interrupted search is not taken for one that has spent its
        budget.
        """
        best = self._search.best
        tried = None if best is None else self._tried.get(best.candidate.number)
        if best is None or tried is None or math.isinf(best.cost):
            return
        packed = self._trials.packed(options_text(best.candidate.options))
        if packed is not None:
            default = Contender((self._search.trials[0].seconds,), "")
            chosen = not self._prefer.are_plain
            self._records.keep(unpack(packed), _contender(best, tried.numerics), default, run="", chosen=chosen)

    def _decide(self, stopped: str, deadline: Deadline | None) -> TuningResult:
        """The default, the incumbent and the quickest few, measured in turns."""
        incumbent = None if self._incumbent is None else self._incumbent.options
        packed = contenders(self._search.trials, incumbent, self._trials, *_shortened(deadline))
        found = self._compare(packed, deadline)
        if DEFAULT not in found and deadline is not None:
            return self._undecided(f"{stopped} before the last comparison")
        if DEFAULT not in found:
            raise TuningError(f"{self._task.definition}: the static default ran before, and fails now")
        winner = self._winner(found, packed)
        if self._bound is not None and self._bound.is_beaten(found[winner].seconds):
            again = self._compare(packed, deadline)
            found = again if DEFAULT in again else found
            winner = self._winner(found, packed)
            if self._bound.is_beaten(found[winner].seconds):
                self._bound.drop()
        self._listen(Decided(found, winner))
        # The last measurement of a variant counts, so those that were stored before have one of now, too.
        best = () if deadline is None else (self._number_of_best,)
        for name in dict.fromkeys((DEFAULT, INCUMBENT, winner, *best)):
            if name in found:
                # One that was interrupted has not gone as far as its budget says.
                run = self._run if deadline is None else ""
                # Calls run the quickest one, unless preferences say otherwise.
                chosen = name == winner and not self._prefer.are_plain
                self._records.keep(unpack(packed[name]), found[name], found[DEFAULT], run, chosen=chosen)
        return self._result(unpack(packed[winner]), found[winner], found[DEFAULT].seconds, stopped)

    def _winner(self, found: Mapping[str, Contender], packed: Mapping[str, Packed]) -> str:
        """The name of who wins; TuningError where the constraint refuses all of them."""
        costs = None
        if not self._prefer.are_plain:
            options = {name: unpack(packed[name]).asked for name in found}
            costs = {
                name: self._prefer.costs(options[name], contender.samples)
                for name, contender in found.items()
                if self._prefer.allow(options[name])
            }
        winner = winner_of(found, bitwise=self._settings.numerics is Numerics.BITWISE, costs=costs)
        if winner is None:
            raise TuningError(
                f"{self._task.definition}: nothing wins, because the constraint allows none of what was measured; "
                "search longer, start from options that it allows (start=...), or allow more"
            )
        return winner

    def _compare(self, packed: Mapping[str, Packed], deadline: Deadline | None) -> dict[str, Contender]:
        slowest = self._search.trials[0].seconds if deadline is not None else 0.0
        seconds, go_on = self._settings.seconds, self._ending()
        return confirm(
            self._workers, packed, self._settings.effort.rounds, seconds, go_on, deadline=deadline, call=slowest
        )

    def _ending(self) -> Callable[[int], bool]:
        """Whether the last comparison may go on after so many rounds: not long once it is interrupted, nor far beyond
        the end of the budget.
        """
        budget = self._settings.budget.seconds
        kept = math.inf if budget is None else min(self.finishing, budget / 2)
        end = Deadline(self._clock, self._clock() + kept)
        return lambda rounds: not self._stop() and (rounds < _LEAST_ROUNDS or end.allows(0.0))

    def _undecided(self, stopped: str) -> TuningResult:
        """The best so far, which is stored already."""
        best = self._search.best
        packed = None if best is None else self._trials.packed(options_text(best.candidate.options))
        if best is None or packed is None:
            raise TuningError(f"{self._task.definition}: {stopped}, and the best of before does not compile now")
        tried = self._tried.get(best.candidate.number)
        contender = _contender(best, "" if tried is None else tried.numerics)
        return self._result(unpack(packed), contender, self._search.trials[0].seconds, stopped)

    @property
    def _number_of_best(self) -> str:
        return "" if self._search.best is None else str(self._search.best.candidate.number)

    def _result(self, executable: Executable, winner: Contender, default: float, stopped: str) -> TuningResult:
        return TuningResult(
            best=executable.asked,
            seconds=winner.seconds,
            interval=winner.interval,
            default=default,
            bound=self.bound,
            numerics=winner.numerics,
            trials=tuple(self._search.trials),
            executable=executable,
            stopped=stopped,
            started=tuple(t for t in self._search.trials if t.candidate.options in self._settings.starts),
            predicted=self._records.wanted.predicted,
        )


def _shortened(deadline: Deadline | None) -> tuple[int, float]:
    """How many finalists there are, and how long one of them may compile: the best alone where there is little time."""
    return (FINALISTS, LONGEST_BUILD) if deadline is None else (1, max(0.0, deadline.left))


def _contender(trial: Trial, numerics: str) -> Contender:
    """What a trial says of its candidate."""
    samples = trial.outcome.samples if isinstance(trial.outcome, Measured) else ()
    return Contender(samples, numerics)
