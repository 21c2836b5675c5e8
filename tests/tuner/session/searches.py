"""Searches for the task of ``trial_support``, with workers that are watched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from tc.artifact.definition import Parsed
from tc.base.environment import environment
from tc.cache.content.store import Store
from tc.language.lower.specialize import specialize
from tc.store.wanted import Wanted
from tc.targets.options import CpuOptions
from tc.tuner.roofline.bound import Bound
from tc.tuner.roofline.bounds import Bounds
from tc.tuner.session.control import Control
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.progress_events import Event, silence
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.settings import TuningResult, TuningSettings
from tc.tuner.space.nests import nest_of
from tc.tuner.space.space import Space
from tc.tuner.trial.budget import Budget, Clock
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.task import parse_task
from tc.tuner.trial.trial_outcome import Failed
from tc.tuner.trial.workers import LocalWorkers, Packed, Workers
from tests.tuner import trial_support as trial

SETTINGS = TuningSettings(Budget(trials=12), seed=7, jobs=1, seconds=0.005)


class Watched:
    """Workers that record what they compile, and whose candidates may be others than they should be."""

    def __init__(
        self, workers: LocalWorkers, change: Callable[[int, Packed], Packed] = lambda _number, packed: packed
    ) -> None:
        self.workers = workers
        self.change = change
        self.built: list[str] = []

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        built = self.workers.build(options, limit)
        changed: list[Packed | Failed] = []
        for text, one in zip(options, built, strict=True):
            changed.append(one if isinstance(one, Failed) else self.change(len(self.built), one))
            self.built.append(text)
        return changed

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        return self.workers.check(packed, slot)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        return self.workers.time(slot, seconds, quickest)

    def stop_idle(self) -> None:
        self.workers.stop_idle()


def records(path: Path) -> SearchRecords:
    """What the cache at ``path`` knows of the task."""
    definition = Parsed(parse_task(trial.TASK), trial.TEXT)
    wanted = Wanted(definition, trial.TASK.signature, trial.TARGET, None)
    return SearchRecords(Store.open(path), wanted, {"mm": definition}, environment())


def patient() -> Clock:
    """A clock that goes on by minutes whenever it is read, so that no compilation takes too long."""
    return map(float, itertools.count(0, 600)).__next__


def search(
    workers: Workers,
    path: Path,
    settings: TuningSettings = SETTINGS,
    *,
    bound: Bound | None = None,
    listen: Callable[[Event], None] = silence,
    stop: Callable[[], bool] = lambda: False,
) -> TuningResult:
    """A search for the task of ``trial``."""
    return begun(workers, path, settings, bound=bound, listen=listen, stop=stop).run()


def begun(
    workers: Workers,
    path: Path,
    settings: TuningSettings = SETTINGS,
    *,
    bound: Bound | None = None,
    listen: Callable[[Event], None] = silence,
    stop: Callable[[], bool] = lambda: False,
) -> Tuning:
    """The search, before it does anything."""
    nest = nest_of(specialize(parse_task(trial.TASK), trial.TASK.signature))
    # The kernel scatters nothing: these change nothing.
    fixed = ("scatter_owners", "scatter_parts")
    space = Space.of(CpuOptions, nest, fixed=fixed, preferences=settings.preferences)
    return Tuning(
        trial.TASK,
        space,
        workers,
        records(path),
        settings,
        Control(listen, stop, patient()),
        Bounds(bound),
    )
