"""Whether there is an OpenCL device."""

from __future__ import annotations

import tc
from tc.runtime.opencl.opencl import opencl_device


def missing() -> str | None:
    try:
        opencl_device()
    except tc.DeviceError as error:
        return str(error)
    return None
