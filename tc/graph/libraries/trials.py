"""Trials of libraries: found in the cache of the process, or made now, where the cache may be written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from tc.api.kernels import process_cache
from tc.base.generator import generator_version
from tc.base.once import Once
from tc.cache.format.records import LibraryTrial
from tc.graph.libraries.check import wrong
from tc.graph.libraries.outcomes import RIGHT
from tc.graph.libraries.times import least_times
from tc.runtime.host.threads import get_threads
from tc.store.measured_machine import measured_machine

if TYPE_CHECKING:
    import numpy as np

    from tc.graph.ir.graph import Graph
    from tc.graph.libraries.form import Form
    from tc.graph.libraries.library import Library
    from tc.graph.libraries.work import Work

    # Makes a graph ready, to be called with its inputs by name.
    Ready: TypeAlias = Callable[[Graph], Callable[[Mapping[str, np.ndarray]], object]]


def trial_of(library: Library, work: Work, form: Form, ready: Ready) -> LibraryTrial | None:
    """How long the library takes for the node of a work; None where that is not known, and must not be measured."""
    cache = process_cache()
    place = (work.digest, measured_machine(gpu=False), get_threads(), library.title, generator_version())

    def made() -> LibraryTrial:
        return _made(place, library, work, form, ready)

    if cache is None:
        return _in_this_process().get(place, made)
    found = cache.library_trial(*place)
    if found is None and cache.keeps:
        found = made()
        cache.keep_library_trial(found)
    return found


@functools.cache
def _in_this_process() -> Once[tuple[object, ...], LibraryTrial]:
    return Once()


def _made(
    place: tuple[str, str, int, str, str], library: Library, work: Work, form: Form, ready: Ready
) -> LibraryTrial:
    function = library.function(form)
    assert function is not None
    found = wrong(work.call, form, function, work.operands())
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    if found is not None:
        return LibraryTrial(*place, outcome=found, ours=None, theirs=None, at=at)
    inputs, ours, theirs = work.inputs(), ready(work.graph), ready(work.by(function))
    times = least_times(lambda: ours(inputs), lambda: theirs(inputs))
    return LibraryTrial(*place, RIGHT, *times, at)
