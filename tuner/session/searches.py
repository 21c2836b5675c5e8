"""``Searches``: searches of many kernels, which share one budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final

from tc.base.errors import TCError, TuningError
from tc.tuner.session.in_turns import measure_in_turns
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.settings import TuningResult
from tc.tuner.session.share_time import ScheduledSearch, share_time
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.deadline import Deadline


@dataclass(slots=True, eq=False)
class Searched:
    """A kernel that is searched for, under the ``name`` by which people know it.

    ``result``: what came of it in the end, or why nothing did; None where only the default options were tried.
    ``part``: it is a part of something larger, with whose others it is compared; what was measured of it counts at
    once.  ``begun``: whether the default options were tried; ``ended``: whether there is nothing more to come.
    """

    name: str
    part: bool = False
    search: ScheduledSearch | None = None
    result: TuningResult | TCError | None = None
    begun: bool = False
    ended: bool = False


class Searches:
    """Searches that are added one by one, measured with the default options, and then share a budget.

    ``stack``: ends them.  ``stop``: whether to end now.
    """

    def __init__(self, stack: ExitStack, stop: Callable[[], bool]) -> None:
        self._stack: Final = stack
        self._stop: Final = stop
        self._all: Final[list[Searched]] = []

    def add(self, name: str, begin: Callable[[], AbstractContextManager[Tuning]], *, part: bool = False) -> Searched:
        """A search that ``begin`` makes; what goes wrong with that is its result.  A ``part`` has no share yet."""
        searched = Searched(name, part)
        self._all.append(searched)
        try:
            started = self._stack.enter_context(begin())
            searched.search = ScheduledSearch(started, share=0.0 if part else 1.0)
        except TCError as error:
            searched.result = error
        except MemoryError as error:
            searched.result = TuningError(f"its arrays do not fit into memory: {error}; choose smaller sizes")
        return searched

    def measure(self) -> None:
        """Tries the default options of all searches that were added since; no budget is charged with it."""
        for searched in self._all:
            if searched.search is not None and not searched.begun and not self._stop():
                searched.begun = True
                searched.search.tuning.begin()
                if searched.part:
                    self._settle(searched, searched.search)
                self._rest(searched.search)

    def compare(self, several: Sequence[Searched]) -> None:
        """Measures kernels that are compared with each other again, in turns."""
        tunings = [own.search.tuning for own in several if own.search is not None and own.result is None]
        measure_in_turns([tuning.turns() for tuning in tunings], self._stop)
        for tuning in tunings:
            tuning.stop_idle()

    def share(self, budget: Budget) -> Iterator[None]:
        """Searches as long as the budget lasts; comes back after each generation."""
        searches = [searched.search for searched in self._all if searched.search is not None]
        for search in share_time(searches, budget.start(time.monotonic), time.monotonic, self._stop):
            self._rest(search)
            yield
        if self._stop():
            self.keep_best()

    def keep_best(self) -> None:
        """Stores the best of each search so far; parts for which nothing was searched have stored it."""
        for searched in self._all:
            if searched.search is not None and (searched.search.spent or not searched.part):
                searched.search.tuning.keep_best()

    def finish(self, deadline: Callable[[], Deadline | None]) -> None:
        """Ends all searches that have not ended, each of which keeps its winner.  ``deadline``: by when, if they were
        interrupted.
        """
        for searched in self._all:
            search = searched.search
            if search is None or searched.ended:
                continue
            searched.ended = True
            if searched.part and not search.spent:
                continue
            try:
                searched.result = search.tuning.finish(search.over or "the budget is spent", deadline())
            except TCError as error:
                searched.result = error

    def _settle(self, searched: Searched, search: ScheduledSearch) -> None:
        try:
            search.tuning.settle("the search was stopped")
        except TCError as error:
            searched.result, search.over = error, "the static default fails"

    def _rest(self, search: ScheduledSearch) -> None:
        """Processes of one search do not stay while those of others work."""
        if len(self._all) > 1:
            search.tuning.stop_idle()
