"""``ModelSearch``: tunes the kernels of one graph, and those that it would have if it were divided otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from tc.api.together import Wanted
from tc.base.errors import TCError
from tc.graph.ir.graph import Graph
from tc.graph.memory.plan import MemoryPlan
from tc.graph.partition.costs import NO_RECORD
from tc.graph.partition.decide import Choice
from tc.graph.partition.divisions import Change, Divisions
from tc.graph.partition.edges import edges_of
from tc.graph.preparation import Prepared, divided, optimized
from tc.graph.run.kernels import wanted_in
from tc.graph.run.recorded import forms_of
from tc.graph.settings import Settings
from tc.graph.tuning.pool import KernelPool, name_of
from tc.graph.tuning.report import ModelTuning, TunedKernel
from tc.store.cached import KernelCache
from tc.tuner.session.settings import TuningResult
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.deadline import Deadline

# Kernels that take less of the model's time are not divided otherwise: it would gain nothing that shows.
_WORTH: Final = 0.01
# A division that costs at most so much more than the one that is chosen may be better when it is tuned ...
_CLOSE: Final = 1.05
# ... and half of what is spent on such kernels is of no use.
_USE: Final = 0.5


# Keeps a plan beside the kernels in a cache.
Keep: TypeAlias = Callable[[KernelCache, MemoryPlan], None]


class ModelSearch:
    """``name``: of the model, for people.  ``keep``: keeps the plan that comes of it, so that later processes run it as
    it is; None does not.  GraphError where the graph has open sizes.
    """

    def __init__(self, name: str, graph: Graph, settings: Settings, pool: KernelPool, keep: Keep | None = None) -> None:
        self._name: Final = name
        self._graph: Final = graph
        self._settings: Final = settings
        self._pool: Final = pool
        self._keep: Final = keep
        self._optimized: Final = optimized(graph, settings)
        self._decides: Final = settings.fuse and settings.cuts is None
        rule = replace(settings, cuts=()) if self._decides else settings
        self._by_rule: Final = _kernels(divided(graph, self._optimized, rule, NO_RECORD))
        # How often each kernel of the model occurs; then those that may take the place of others, as far as they do.
        self._counts: Counter[Wanted] = Counter()
        self._others: dict[Wanted, float] = {}

    def measure(self) -> None:
        """Measures, with the default options, all kernels that the model may have, as it seems best divided now."""
        for wanted in self._by_rule:
            self._pool.add(wanted)
        compared: set[Wanted] = set()
        changed = True
        while changed and not self._pool.stop():
            self._pool.searches.measure()
            prepared = self._decided()
            # What the division depends on is measured again, in turns, once.
            choices = prepared.decision.choices
            disputed = dict.fromkeys(own for choice in choices for own in self._compared(prepared, choice))
            changed = not compared.issuperset(disputed)
            if changed:
                compared.update(disputed)
                self._pool.compare(disputed)
                prepared = self._decided()
            self._counts = _kernels(prepared)
            changes = list(self._changes(prepared))
            possible = [*self._counts, *(other for change in changes for other in _instead(prepared, change))]
            changed = sum(map(self._pool.add, possible)) > 0 or changed
            self._others = self._hopeful(prepared, changes)

    def weigh(self) -> None:
        """Tells all searches how much of the model's time their kernels take now, beside what they take of others."""
        weights = {**self._others, **self._counts}
        seconds = {wanted: (self._pool.times(wanted) or (0.0, 0.0))[0] for wanted in weights}
        total = sum(seconds[wanted] * count for wanted, count in self._counts.items())
        for wanted, weight in weights.items():
            pooled = self._pool.get(wanted)
            if pooled is not None and pooled.searched.search is not None and total:
                search = pooled.searched.search
                search.share = min(1.0, search.share + weight * seconds[wanted] / total)

    def report(self) -> tuple[ModelTuning, tuple[str, ...] | None]:
        """What came of it, once all searches have ended, and the cuts by name; None where the settings decide them."""
        prepared = self._decided()
        counts, reasons = _kernels(prepared), prepared.decision.reasons(prepared.rewritten)
        kernels = sorted(self._tuned(counts), key=lambda kernel: -(kernel.seconds or 0.0) * kernel.count)
        tuning = ModelTuning(
            self._name,
            tuple(kernels),
            sum((self._pool.times(wanted) or (0.0, 0.0))[1] * count for wanted, count in self._by_rule.items()),
            sum((self._pool.times(wanted) or (0.0, 0.0))[0] * count for wanted, count in counts.items()),
            reasons,
        )
        return tuning, tuple(reasons) if self._decides else None

    def keep(self) -> None:
        """Keeps the plan, in the place of one that was made before the kernels were measured."""
        if self._keep is not None:
            self._keep(self._pool.cache, self._decided().memory)

    def refresh(self) -> None:
        """From now on, calls in this process run the winners."""
        for wanted in _kernels(self._decided()):
            wanted.comprehension.kernels.refresh(wanted.signature, self._pool.target, self._pool.cache)

    def _decided(self) -> Prepared:
        return divided(self._graph, self._optimized, self._settings, self._pool.record())

    def _changes(self, prepared: Prepared) -> Iterator[Change]:
        """How the kernels that are worth it may be divided otherwise."""
        if not self._decides:
            return
        partition, costs = prepared.decision.partition, prepared.costs
        total = sum(costs.of(group).seconds for group in partition.groups)
        divisions = Divisions(prepared.rewritten, edges_of(prepared.rewritten), partition.cuts)
        for part in divisions.parts:
            for change in divisions.changes(part):
                if sum(costs.of(group).seconds for group in change.old) >= _WORTH * total:
                    yield change

    def _compared(self, prepared: Prepared, choice: Choice) -> Iterator[Wanted]:
        """The kernels whose measurements have made a choice."""
        for group in (*choice.old, *choice.new) if choice.after.measured else ():
            for wanted in forms_of(prepared.rewritten, prepared.costs.call(group)):
                if self._pool.get(wanted) is not None:
                    yield wanted

    def _hopeful(self, prepared: Prepared, changes: list[Change]) -> dict[Wanted, float]:
        """The kernels of changes that may be better when they are tuned, with how often they would be of use: those
        that cost little more, and those that the rule would make, which the model prefers.
        """
        costs, cuts = prepared.costs, prepared.decision.partition.cuts
        found: dict[Wanted, float] = {}
        for change in changes:
            place = costs.place((*change.old, *change.new))
            old, new = costs.at(place, change.old), costs.at(place, change.new)
            if change.cuts < cuts or (new.measured and new.seconds <= _CLOSE * old.seconds):
                for wanted in _instead(prepared, change):
                    found[wanted] = found.get(wanted, 0.0) + _USE
        return found

    def _tuned(self, counts: Counter[Wanted]) -> Iterator[TunedKernel]:
        by_search: dict[int, tuple[Wanted, int]] = {}
        for wanted, count in counts.items():
            pooled = self._pool.get(wanted)
            key = id(wanted) if pooled is None else id(pooled)
            by_search[key] = wanted, by_search.get(key, (wanted, 0))[1] + count
        for wanted, count in by_search.values():
            yield self._kernel(wanted, count)

    def _kernel(self, wanted: Wanted, count: int) -> TunedKernel:
        pooled, times = self._pool.get(wanted), self._pool.times(wanted)
        result = None if pooled is None else pooled.searched.result
        seconds, default = (None, None) if times is None else times
        trials = len(result.trials) if isinstance(result, TuningResult) else 1 if seconds is not None else 0
        failed = str(result) if isinstance(result, TCError) else ""
        return TunedKernel(name_of(wanted), count, default, seconds, trials, failed)


def search(
    models: Sequence[ModelSearch], pool: KernelPool, budget: Budget, deadline: Callable[[], Deadline | None]
) -> None:
    """Tunes models together, and what else there is in the pool.  ``deadline``: by when all of it ends, if it was
    interrupted.
    """

    def weigh() -> None:
        pool.forget_shares()
        for model in models:
            model.weigh()

    for model in models:
        model.measure()
    weigh()
    for _ in pool.searches.share(budget):
        weigh()
    pool.searches.finish(deadline)
    # They may be divided otherwise now, into kernels that are new.
    for model in models:
        model.measure()
    pool.searches.finish(deadline)
    for model in models:
        model.keep()


def _kernels(prepared: Prepared) -> Counter[Wanted]:
    return Counter(wanted_in(prepared.memory))


def _instead(prepared: Prepared, change: Change) -> list[Wanted]:
    """The kernels that a change makes."""
    calls = (prepared.costs.call(group) for group in change.new)
    return [next(forms_of(prepared.rewritten, call)) for call in calls]
