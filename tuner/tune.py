"""The search for the quickest options of one kernel: trials, the last comparison, and what is kept of them."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final, assert_never

from tc.cache.records import Run
from tc.cache.store import utc_now
from tc.errors import TuningError
from tc.executable import Executable
from tc.options import CpuOptions, GpuOptions, Options
from tc.packing import options_from_text, options_text, unpack
from tc.records import to_json
from tc.target import CpuTarget
from tc.tuner.budget import Allowance, Budget, Clock
from tc.tuner.capsule import KEPT, write_capsule
from tc.tuner.combined import combined_search
from tc.tuner.confirm import Contender, confirm, is_quicker
from tc.tuner.crew import Crew, Packed
from tc.tuner.genetic import DEFAULT, ORIGINAL, genetic_search
from tc.tuner.ledger import Ledger
from tc.tuner.messages import Timed
from tc.tuner.nest import Nest
from tc.tuner.outcome import Failed, FailureKind, Measured, Outcome, count_failures
from tc.tuner.progress import Decided, Generation, Listener, Started
from tc.tuner.random_search import random_search
from tc.tuner.search import Candidate, Search, Trial
from tc.tuner.space import Space
from tc.tuner.task import Task
from tc.tuner.transfer import seeds

# The machine is quiet while the calibrating kernel takes at most this many times its quickest.
_QUIET: Final = 1.15
_REPEATS: Final = 3
# A candidate whose first call takes so many times the best one is not called again (the original's bound).
_GIVE_UP: Final = 5.0
# Seconds for a compilation: of the default, and of any other, which have so many times what the default took.
_LONGEST_BUILD: Final = 600.0
_SHORTEST_BUILD: Final = 2.0
_TIMES_DEFAULT: Final = 6.0
# So many candidates for every process that compiles are compiled before they are measured.
_PER_JOB: Final = 4
_SEEDS: Final = 8
_FINALISTS: Final = 4
# What measuring takes beside what is timed.
_OVERHEAD: Final = 1.3
_ROUNDS: Final = 11
# A call that takes at most this many times the bound has no room left that would show.
_NEAR_BOUND: Final = 1.05


class Strategy(Enum):
    """How candidates are found."""

    COMBINED = "combined"  # genetic, with refinement of the best in turn
    GENETIC = "genetic"
    ORIGINAL = "original"  # genetic, with the parameters of Tensor Comprehensions
    RANDOM = "random"


class Numerics(Enum):
    """Which bits a winner may compute."""

    ANY = "any"  # whatever the oracle accepts
    BITWISE = "bitwise"  # those of the static default on the arguments of the search


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """How a search goes about it.

    ``seconds``: of one measurement.  ``capsules``: the folder for scripts that reproduce what was killed.
    """

    budget: Budget
    seed: int = 0
    strategy: Strategy = Strategy.COMBINED
    numerics: Numerics = Numerics.ANY
    jobs: int = 2
    seconds: float = 0.08
    capsules: Path | None = None


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What a search came to; times are seconds of a call, with intervals of 95 % confidence.

    ``default``: of the static default options, measured in turns with the winner.  ``bound``: the least that this
    machine allows, None if it is not known.  ``stopped``: why the search ended.
    """

    best: Options
    seconds: float
    interval: tuple[float, float]
    default: float
    bound: float | None
    numerics: str
    trials: tuple[Trial, ...]
    stopped: str
    executable: Executable = field(repr=False)

    @property
    def speedup(self) -> float:
        """How many times as quick as the static default the winner is."""
        return self.default / self.seconds

    @property
    def failures(self) -> Mapping[FailureKind, int]:
        """How many candidates failed, by kind."""
        return count_failures(trial.outcome for trial in self.trials)


@dataclass(slots=True)
class _State:
    """What a search remembers beside its trials."""

    quickest_calibration: float = math.inf
    longest_build: float = _LONGEST_BUILD
    by_source: dict[str, Outcome] = field(default_factory=dict)
    packed: dict[int, Packed] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    numerics: str | None = None


class Tuning:
    """One search: ``step`` tries a generation, ``finish`` lets the quickest compete; ``run`` does all of it.

    ``bound``: seconds that no call falls below.  ``stop``: asked between trials whether to end now.  ``silent``: names
    of options that change nothing.
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
        bound: float | None = None,
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
        self._known = ledger.known()
        self._run = secrets.token_hex(8)
        self._state = _State()
        self._generations = 0
        self._before: float | None = None
        self._search = self._begin(self._first_options())
        self._listen(Started(task.definition, task.target, self._space.size, len(self._known), bound))

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
        """Seconds that no call falls below."""
        return self._bound

    def rest(self) -> None:
        """Ends the processes until they are needed again."""
        self._crew.rest()

    @property
    def finishing(self) -> float:
        """Seconds that ``finish`` takes, about."""
        return _ROUNDS * (_FINALISTS + 2) * self._settings.seconds * _OVERHEAD

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
            "bound": self._bound,
        }
        self._ledger.begin(Run(self._run, json.dumps(told), self._ledger.wanted.machine, utc_now()))
        return chosen

    def _begin(self, first: Sequence[Options]) -> Search:
        random = Random(self._settings.seed)
        match self._settings.strategy:
            case Strategy.COMBINED:
                return combined_search(self._space, random, first)
            case Strategy.GENETIC:
                return genetic_search(self._space, random, first, DEFAULT)
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
            for candidate, outcome in zip(part, self._try(part), strict=True):
                search.tell((outcome,))
                if options_text(candidate.options) not in self._known:
                    source = self._state.sources.get(candidate.number, "")
                    self._ledger.record(Trial(candidate, outcome), source, self._run)
            if (reason := self._reason_to_end(allowance)) is not None:
                return reason
        return None

    def _reason_to_end(self, allowance: Allowance) -> str | None:
        search = self._search
        if self._stop():
            return "it was interrupted"
        if isinstance(search.trials[0].outcome, Failed):
            return "the static default fails"
        best = search.best
        if self._bound is not None and best is not None and best.seconds <= _NEAR_BOUND * self._bound:
            return f"the best is within {100 * (_NEAR_BOUND - 1):.0f} % of what this machine allows"
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

    # --- trials -------------------------------------------------------------------------------------------------

    def _try(self, part: Sequence[Candidate]) -> list[Outcome]:
        """What comes of some candidates: all that are new are compiled, then measured one by one."""
        texts = [options_text(candidate.options) for candidate in part]
        new = [text for text in texts if text not in self._known]
        built = dict(zip(new, self._build(new), strict=True))
        outcomes: list[Outcome] = []
        quickest = math.inf if self.best is None else self.best
        for candidate, text in zip(part, texts, strict=True):
            found = built.get(text)
            outcome = self._known[text] if found is None else self._judge(candidate, found, quickest)
            if isinstance(outcome, Measured):
                quickest = min(quickest, outcome.seconds)
            elif found is not None and outcome.kind in KEPT and self._settings.capsules is not None:
                write_capsule(self._settings.capsules, self._task, text, self._settings.seed, outcome)
            outcomes.append(outcome)
        return outcomes

    def _build(self, texts: Sequence[str]) -> list[Packed | Failed]:
        """Compiles candidates; nobody waits for one that takes much longer than the first one, the default."""
        begun = self._clock()
        built = self._crew.build(texts, self._state.longest_build)
        if self._state.longest_build == _LONGEST_BUILD and texts:
            self._state.longest_build = max(_SHORTEST_BUILD, _TIMES_DEFAULT * (self._clock() - begun))
        return built

    def _judge(self, candidate: Candidate, built: Packed | Failed, quickest: float) -> Outcome:
        """The outcome of a candidate; options that make a known source again are as quick as that was."""
        if isinstance(built, Failed):
            return built
        source = hashlib.sha256(unpack(built).source.encode()).hexdigest()
        self._state.sources[candidate.number] = source
        if source not in self._state.by_source:
            self._state.by_source[source] = self._measure(built, quickest)
        outcome = self._state.by_source[source]
        if isinstance(outcome, Measured):
            self._state.packed[candidate.number] = built
        return outcome

    def _measure(self, packed: Packed, quickest: float) -> Outcome:
        checked = self._crew.check(packed, "trial")
        if isinstance(checked, Failed):
            return checked
        self._state.numerics = self._state.numerics or checked.numerics
        if self._settings.numerics is Numerics.BITWISE and checked.numerics != self._state.numerics:
            return Failed(FailureKind.WRONG, "its bits are not those of the static default")
        noise = math.inf
        samples: tuple[float, ...] = ()
        for _ in range(_REPEATS):
            timed = self._crew.time("trial", self._settings.seconds, _GIVE_UP * quickest)
            if isinstance(timed, Failed):
                return timed
            found = self._noise(timed)
            if found < noise:
                noise, samples = found, timed.samples
            if noise <= _QUIET or len(timed.samples) == 1:
                break
        return Measured(statistics.median(samples), samples)

    def _noise(self, timed: Timed) -> float:
        """How many times as long as at best the calibrating kernel takes."""
        state, calibrations = self._state, (timed.before, timed.after)
        state.quickest_calibration = min(state.quickest_calibration, *calibrations)
        return max(calibrations) / state.quickest_calibration if state.quickest_calibration else 1.0

    # --- the end ------------------------------------------------------------------------------------------------

    def _decide(self, stopped: str) -> TuningResult:
        """The default, the incumbent and the quickest few, measured in turns."""
        packed = self._contenders()
        found = confirm(self._crew, packed, _ROUNDS, self._settings.seconds, lambda: not self._stop())
        if "default" not in found:
            raise TuningError(f"{self._task.definition}: the static default ran before, and fails now")
        default = found["default"]
        # Whoever holds the title keeps it until somebody is quicker beyond doubt.
        winner = "default"
        for name in sorted(found, key=lambda name: (name != "incumbent", found[name].seconds)):
            if is_quicker(found[name], found[winner]):
                winner = name
        self._listen(Decided(found, winner))
        self._ledger.keep(unpack(packed["default"]), default, default, self._run)
        if winner != "default":
            self._ledger.keep(unpack(packed[winner]), found[winner], default, self._run)
        executable = unpack(packed[winner])
        return TuningResult(
            best=executable.options,
            seconds=found[winner].seconds,
            interval=found[winner].interval,
            default=default.seconds,
            bound=self._bound,
            numerics=found[winner].numerics,
            trials=tuple(self._search.trials),
            executable=executable,
            stopped=stopped,
        )

    def _contenders(self) -> dict[str, Packed]:
        """By name: those with other sources than the ones before them."""
        search = self._search
        ranked = sorted(
            (trial for trial in search.trials if isinstance(trial.outcome, Measured)), key=lambda trial: trial.seconds
        )
        wanted = {"default": options_text(search.trials[0].candidate.options)}
        incumbent = self._ledger.incumbent()
        if incumbent is not None:
            wanted["incumbent"] = incumbent.options
        quickest = ranked[: 3 * _FINALISTS]
        wanted |= {str(trial.candidate.number): options_text(trial.candidate.options) for trial in quickest}
        chosen: dict[str, Packed] = {}
        sources: set[str] = set()
        for name, text in wanted.items():
            if len(chosen) > _FINALISTS + 1:
                break
            built = self._state.packed.get(int(name)) if name.isdigit() else None
            if built is None:
                (made,) = self._crew.build([text], _LONGEST_BUILD)
                if isinstance(made, Failed):
                    continue
                built = made
            source = unpack(built).source
            if source not in sources:
                sources.add(source)
                chosen[name] = built
        return chosen


def contenders_text(found: Mapping[str, Contender]) -> str:
    """One line for each contender, the quickest first."""
    lines = []
    for name, contender in sorted(found.items(), key=lambda item: item[1].seconds):
        low, high = contender.interval
        lines.append(f"{name:>10}: {contender.seconds * 1e6:10.2f} us ({low * 1e6:.2f} to {high * 1e6:.2f})")
    return "\n".join(lines)
