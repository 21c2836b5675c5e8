"""``PredictedWorkers``: candidates that are compiled here, and whose times are predicted, since no GPU is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.artifact.packing import unpack
from tc.tuner.trial.messages import EMPTY, Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Packed, Workers


def predicted_seconds(packed: Packed) -> float | None:
    """What a call of an executable is predicted to take; None where nothing is known."""
    found = unpack(packed).predicted
    return None if found is None else found.seconds


def no_prediction(packed: Packed) -> float | None:
    """For targets whose times are not predicted."""
    del packed
    return None


class PredictedWorkers:
    """What ``compilers`` build, with predicted times (``Executable.predicted``).

    Results are not compared with the oracle, which would take a device that runs the kernels: every candidate is proven
    when it is built.  Bits of results are unknown.
    """

    def __init__(self, compilers: Workers) -> None:
        self._compilers: Final = compilers
        self._seconds: Final[dict[str, float]] = {}

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        """As of ``Workers``."""
        return self._compilers.build(options, limit)

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        """Puts the executable into the slot, if its time can be predicted."""
        predicted = predicted_seconds(packed)
        if predicted is None:
            return Failed(FailureKind.DEVICE, "no time is predicted for kernels of this source or architecture")
        self._seconds[slot] = predicted
        return Checked(deviation=0.0, numerics="")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        """The predicted time, whatever is asked."""
        del seconds, quickest
        found = self._seconds.get(slot)
        return EMPTY if found is None else Timed((found,), before=0.0, after=0.0)

    def stop_idle(self) -> None:
        """As of ``Workers``."""
        self._compilers.stop_idle()
