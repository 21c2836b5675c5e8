"""``KernelPool``: the kernels of graphs that are searched for, equal ones once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from tc.api.together import Wanted
from tc.api.tuning import subject_for
from tc.artifact.definition import Parsed
from tc.base.frozen import frozen
from tc.graph.run.recorded import Recorded, Times
from tc.store.cached import KernelCache
from tc.targets.target import Target
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.searches import Searched, Searches
from tc.tuner.session.subject import Subject

# Makes the search for a kernel of this name.
Begin: TypeAlias = Callable[[str, Subject], AbstractContextManager[Tuning]]


@frozen
class Pooled:
    """A kernel, by the first definition that it was wanted for, and the search for it."""

    wanted: Wanted
    searched: Searched


class KernelPool:
    """``cache``: what trials and winners go to.  ``stop``: whether to end now."""

    def __init__(
        self, searches: Searches, begin: Begin, target: Target, cache: KernelCache, stop: Callable[[], bool]
    ) -> None:
        self.searches: Final = searches
        self.target: Final = target
        self.cache: Final = cache
        self.stop: Final = stop
        self._begin: Final = begin
        self._known: Final[dict[str, Pooled]] = {}
        self._keys: Final[dict[Wanted, str]] = {}

    def add(self, wanted: Wanted) -> bool:
        """Begins to search for a kernel, and says whether it is new."""
        key = self._key(wanted)
        if key in self._known or self.stop():
            return False
        program, name = wanted.comprehension.program, name_of(wanted)
        definition = Parsed(program)
        subject = subject_for(definition, {program.name: definition}, wanted.signature)
        searched = self.searches.add(name, lambda: self._begin(name, subject), part=True)
        self._known[key] = Pooled(wanted, searched)
        return True

    def forget_shares(self) -> None:
        """Before searches are told their shares again."""
        for pooled in self._known.values():
            if pooled.searched.search is not None:
                pooled.searched.search.share = 0.0

    def compare(self, several: Iterable[Wanted]) -> None:
        """Measures kernels again, in turns."""
        found = {id(pooled): pooled for wanted in several if (pooled := self.get(wanted)) is not None}
        self.searches.compare([pooled.searched for pooled in found.values()])

    def get(self, wanted: Wanted) -> Pooled | None:
        """The search for a kernel, if there is one."""
        return self._known.get(self._key(wanted))

    def times(self, wanted: Wanted) -> Times | None:
        """Seconds of a call here, of the best kernel that is known by now, and with the default options."""
        record = self.record()
        found = record.times(wanted).get(record.here)
        pooled = self.get(wanted)
        search = None if pooled is None or pooled.searched.ended else pooled.searched.search
        if found is None or search is None or search.tuning.best is None or not search.spent:
            return found
        return min(found[0], search.tuning.best), found[1]

    def record(self) -> Recorded:
        """What the cache knows by now."""
        return Recorded(self.target, self.cache)

    def _key(self, wanted: Wanted) -> str:
        if wanted not in self._keys:
            own = wanted.comprehension.kernels.wanted(wanted.signature, self.target)
            # Equal kernels have equal ones, whatever their definitions are called.
            self._keys[wanted] = own.ingredients("any").key
        return self._keys[wanted]


def name_of(wanted: Wanted) -> str:
    """A kernel in words: ``matmul_relu(8x16, 16x4)``."""
    shapes = ", ".join("x".join(map(str, spec.shape)) or "scalar" for spec in wanted.operands)
    how = f"{', in place' if wanted.in_place else ''}{', with strides' if wanted.out else ''}"
    return f"{wanted.comprehension.name}({shapes}{how})"
