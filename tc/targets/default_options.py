"""Which options a call gets where it names none, and nothing better is known."""

from __future__ import annotations

from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.target import CpuTarget, Target


def default_options(target: Target) -> Options:
    """What a call without options gets on a target where nothing better is known."""
    return CpuOptions() if isinstance(target, CpuTarget) else GpuOptions()


def default_options_of(kind: str) -> Options:
    """The same for a kind of target, as a cache names it: ``cpu``, ``cuda``, ``opencl``, ``emulator``."""
    return CpuOptions() if kind == "cpu" else GpuOptions()
