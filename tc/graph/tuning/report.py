"""``ModelTuning``: what tuning a model came to."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.counted import counted, duration
from tc.base.frozen import frozen


@frozen
class TunedKernel:
    """A kernel that occurs ``count`` times; ``default`` and ``seconds`` of one call, with the default options and now.

    They are None where the kernel could not be measured, for the reason ``failed``.
    """

    name: str
    count: int
    default: float | None
    seconds: float | None
    trials: int = 0
    failed: str = ""

    def __str__(self) -> str:
        if self.failed:
            return f"{self.count} x {self.name}: failed: {self.failed}"
        if self.default is None or self.seconds is None:
            return f"{self.count} x {self.name}: not measured"
        return (
            f"{self.count} x {self.name}: {duration(self.default)} to {duration(self.seconds)}, "
            f"{self.default / self.seconds:.2f}x, {counted(self.trials, 'trial')}"
        )


@frozen
class ModelTuning:
    """Times are seconds of all kernels that were measured: ``default``, divided by rule, with the default options, and
    ``seconds``, as the model is divided and runs now.

    ``cuts``: where kernels are divided otherwise than by rule, as ``Settings`` takes them, each with the reason.
    """

    name: str
    kernels: tuple[TunedKernel, ...]
    default: float
    seconds: float
    cuts: Mapping[str, str]

    @property
    def speedup(self) -> float:
        """How many times as quick as with the default options the kernels are."""
        return self.default / self.seconds if self.seconds else 1.0

    @property
    def failed(self) -> tuple[TunedKernel, ...]:
        """Kernels that could not be tuned."""
        return tuple(kernel for kernel in self.kernels if kernel.failed)

    def __str__(self) -> str:
        count = sum(kernel.count for kernel in self.kernels)
        times = f"{duration(self.default)} to {duration(self.seconds)}, {self.speedup:.2f}x the default"
        lines = [f"{self.name}: {counted(count, 'kernel')}, {len(self.kernels)} different: {times}"]
        lines += [f"    {kernel}" for kernel in self.kernels]
        lines += [f"    cut {name}: {why}" for name, why in self.cuts.items()]
        return "\n".join(lines)
