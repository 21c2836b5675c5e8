"""Which parts are quicker with PyTorch's kernels: what tuning has measured, from the cache.

Parts are compared as a whole, ours with what PyTorch does for the same operators one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tc.base.generator import generator_version
from tc.cache.format.records import LibraryTrial
from tc.graph.libraries.outcomes import GAIN, RIGHT
from tc.graph.libraries.times import least_times
from tc.graph.libraries.torch_title import torch_title
from tc.runtime.host.threads import get_threads
from tc.store.measured_machine import measured_machine

if TYPE_CHECKING:
    from tc.store.cached import KernelCache

_MICROSECONDS: Final = 1e6
# Parts are few, and whole models often: the threads of both wait for each other longer where the machine is busy.
_SECONDS: Final = 2.0


def trial_of(cache: KernelCache, digest: str) -> LibraryTrial | None:
    """What was measured of a part on this machine, with as many threads of ours and of PyTorch."""
    return cache.library_trial(*_place(digest))


def tried(cache: KernelCache, digest: str, ours: Callable[[], object], theirs: Callable[[], object]) -> LibraryTrial:
    """Measures a part in turns, and stores what comes of it in the place of an earlier trial."""
    times = least_times(ours, theirs, _SECONDS)
    found = LibraryTrial(*_place(digest), RIGHT, *times, datetime.now(UTC).isoformat(timespec="microseconds"))
    cache.keep_library_trial(found, replace=True)
    return found


def is_left(trial: LibraryTrial) -> bool:
    """Whether PyTorch is quicker by more than measurements differ."""
    return trial.ours is not None and trial.theirs is not None and trial.ours >= GAIN * trial.theirs


def said(trial: LibraryTrial, *, left: bool) -> str:
    """``tuned: ours 12.0 us, PyTorch's 15.0 us``; ``left to PyTorch: measured 12.0 us, ours 15.0 us`` where it is."""
    ours, theirs = (f"{(seconds or 0.0) * _MICROSECONDS:,.1f} us" for seconds in (trial.ours, trial.theirs))
    return f"left to PyTorch: measured {theirs}, ours {ours}" if left else f"tuned: ours {ours}, PyTorch's {theirs}"


def _place(digest: str) -> tuple[str, str, int, str, str]:
    return digest, measured_machine(gpu=False), get_threads(), torch_title(), generator_version()
