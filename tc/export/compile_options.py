"""The options that exported sources are compiled with."""

from __future__ import annotations

from typing import assert_never

from tc.export.exported import Exported
from tc.runtime.cuda.nvrtc import nvrtc_flags
from tc.runtime.opencl.opencl import EXACT_DIVISION, STANDARD
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget


def own_flags(kernel: Exported) -> tuple[str, ...]:
    """Those that a source of this target needs; for processors, beside those that all sources need."""
    match kernel.executable.target:
        case CpuTarget() | EmulatorTarget() as target:
            return target.flags
        case CudaTarget(architecture):
            return nvrtc_flags(architecture)
        case OpenClTarget():
            return STANDARD, EXACT_DIVISION
        case other:
            assert_never(other)
