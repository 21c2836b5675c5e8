"""Which options a call gets where it names none, and nothing better is known."""

from __future__ import annotations

from tc.targets.numerics import Numerics
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.target import CpuTarget, Target


def default_options(target: Target, numerics: Numerics | None = None) -> Options:
    """What a call without options gets on a target where nothing better is known; None: the default numerics."""
    kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
    return kind(numerics=numerics or Numerics())


def default_options_of(kind: str, numerics: Numerics | None = None) -> Options:
    """The same for a kind of target, as a cache names it: ``cpu``, ``cuda``, ``opencl``, ``emulator``."""
    own = CpuOptions if kind == "cpu" else GpuOptions
    return own(numerics=numerics or Numerics())
