"""Whether there is an OpenCL device that compiles."""

from __future__ import annotations

import functools

import pytest

import tc
from tc.runtime.opencl.opencl import require_compiler


@functools.cache
def missing() -> str | None:
    try:
        require_compiler()
    except tc.DeviceError as error:
        return str(error)
    return None


def require(target: str) -> None:
    """Skips a test of OpenCL where it cannot run."""
    why = missing() if target == "opencl" else None
    if why is not None:
        pytest.skip(why)
