"""What tuning has measured of parts: which of their operators are PyTorch's where that is quicker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.cache.format.records import LibraryTrial
from tc.graph.libraries.outcomes import GAIN, RIGHT
from tc.graph.libraries.times import least_times
from tc.graph.libraries.torch_title import torch_title
from tc.runtime.host.threads import get_threads
from tc.store.measured_machine import measured_machine
from tc.torch.fx.shares import Share

if TYPE_CHECKING:
    from tc.store.cached import KernelCache

_MICROSECONDS: Final = 1e6
# Parts are few, and whole models often: the threads of both wait for each other longer where the machine is busy.
_SECONDS: Final = 2.0


@frozen
class Trials:
    """By what is left to PyTorch, how long a part took with and without that, which was measured in turns."""

    trials: Mapping[Share, LibraryTrial]

    @property
    def best(self) -> Share | None:
        """What is left to PyTorch: that by which most is gained, if it is more than measurements differ."""
        gains = {share: (trial.ours or 0.0) / (trial.theirs or 1.0) for share, trial in self.trials.items()}
        found = max(gains, key=lambda share: gains[share], default=None)
        return found if found is not None and gains[found] >= GAIN else None

    def said(self, *, decides: bool) -> str:
        """In words: ``tuned: ours 12.0 us, 15.0 us by PyTorch``, or, where something is left since that ``decides``,
        ``left to PyTorch: measured 12.0 us, ours 15.0 us``.
        """
        best = self.best if decides else None
        if best is not None:
            what = "" if best is Share.ALL else f"{best} "
            trial = self.trials[best]
            return f"{what}left to PyTorch: measured {_text(trial.theirs)}, ours {_text(trial.ours)}"
        ours = min(trial.ours or 0.0 for trial in self.trials.values())
        theirs = (
            f"{_text(trial.theirs)} {'by PyTorch' if share is Share.ALL else f'with its {share}'}"
            for share, trial in self.trials.items()
        )
        return f"tuned: ours {', '.join([_text(ours), *theirs])}"


def trials_of(cache: KernelCache, digest: str) -> Trials | None:
    """What was measured of a part on this machine, with as many threads of ours and of PyTorch; None if nothing was."""
    if cache.library_trial(*_place(digest, Share.ALL)) is None:
        return None
    found = {share: cache.library_trial(*_place(digest, share)) for share in Share}
    return Trials({share: trial for share, trial in found.items() if trial is not None})


def tried(
    cache: KernelCache, digest: str, ours: Callable[[], object], theirs: Mapping[Share, Callable[[], object]]
) -> Trials:
    """Measures a part in turns with each of what may take its place, and stores the trials instead of earlier ones."""
    found = {}
    for share, other in theirs.items():
        times = least_times(ours, other, _SECONDS)
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        found[share] = LibraryTrial(*_place(digest, share), RIGHT, *times, at)
        cache.keep_library_trial(found[share], replace=True)
    return Trials(found)


def _text(seconds: float | None) -> str:
    return f"{(seconds or 0.0) * _MICROSECONDS:,.1f} us"


def _place(digest: str, share: Share) -> tuple[str, str, int, str, str]:
    title = torch_title() if share is Share.ALL else f"{torch_title()}, {share}"
    return digest, measured_machine(gpu=False), get_threads(), title, generator_version()
