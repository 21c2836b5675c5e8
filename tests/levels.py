"""Which levels of processors, and which extensions, this processor has."""

from __future__ import annotations

import tc
from tc.targets.target import check_runs, parse_cpu_target, processor


def runs(target: str) -> bool:
    """Whether kernels for such a processor run here."""
    try:
        check_runs(parse_cpu_target(target), processor())
    except tc.DeviceError:
        return False
    return True
