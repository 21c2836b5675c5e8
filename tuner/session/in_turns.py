"""Kernels measured in turns: what changes the machine meanwhile affects all of them alike.

Kernels of different searches are measured at different times otherwise, when others may have kept the machine busy; so
nothing that follows from comparing kernels with each other is believed before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from tc.artifact.packing import pack, unpack
from tc.tuner.session.confirm import Contender
from tc.tuner.session.final_comparison import DEFAULT, INCUMBENT
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.workers import Packed, Workers


class Turns:
    """The winner of one kernel that is stored, and the default beside it, if it is another one.

    ``seconds``: of one measurement.  ``default``: None where it does not compile now.
    """

    def __init__(
        self, workers: Workers, records: SearchRecords, seconds: float, rounds: int, default: Packed | None
    ) -> None:
        self.rounds: Final = rounds
        self._workers: Final = workers
        self._records: Final = records
        self._seconds: Final = seconds
        # By name, the executable, the hash of the bits of its results, and seconds.
        self._measured: Final[dict[str, tuple[Packed, str, list[float]]]] = {}
        winner = records.incumbent()
        executable = None if winner is None else records.executable(winner)
        if executable is None or default is None:
            return
        self._enter(INCUMBENT, pack(executable))
        if unpack(default).source != executable.source:
            self._enter(DEFAULT, default)

    def take(self) -> None:
        """Measures them once more; those that fail drop out."""
        for name, (_, _, samples) in list(self._measured.items()):
            timed = self._workers.time(name, self._seconds, math.inf)
            if isinstance(timed, Timed):
                samples.append(statistics.median(timed.samples))
            else:
                del self._measured[name]

    def keep(self) -> None:
        """Stores what was measured."""
        found = {
            name: (packed, Contender(tuple(samples), numerics))
            for name, (packed, numerics, samples) in self._measured.items()
            if samples
        }
        for packed, contender in found.values():
            default = found.get(DEFAULT, (packed, contender))[1]
            self._records.keep(unpack(packed), contender, default, run="")

    def _enter(self, name: str, packed: Packed) -> None:
        checked = self._workers.check(packed, name)
        if isinstance(checked, Checked):
            self._measured[name] = packed, checked.numerics, []


def measure_in_turns(several: Sequence[Turns], stop: Callable[[], bool]) -> None:
    """Measures the winners of several kernels alternately, and stores what they take from then on."""
    for _ in range(max((turns.rounds for turns in several), default=0)):
        for turns in several:
            if not stop():
                turns.take()
    for turns in several:
        turns.keep()
