"""Calls of cuda-bindings, and what their statuses mean.  Imported where a kernel is to run on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tc.base.errors import DeviceError
from tc.runtime.cuda.cuda_driver import INSTALL, failure

try:
    from cuda.bindings import driver
except ImportError as error:
    raise DeviceError(f"kernels for CUDA are run by cuda-bindings or PyCUDA; {INSTALL}") from error

cuda: Final[Any] = driver
_RELAXED: Final = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


def reason(status: Any) -> str:
    """The name of a status and what the driver says about it."""
    _, text = cuda.cuGetErrorString(status)
    return f"{status.name}: {text.decode() if text else 'an error that the driver does not explain'}"


def checked(answer: tuple[Any, ...]) -> Any:
    """What the driver returned beside its status: nothing, one value, or a tuple."""
    status, *values = answer
    if status:
        raise failure(status.name, f"the CUDA driver failed: {reason(status)}")
    return values[0] if len(values) == 1 else tuple(values)


@contextmanager
def relaxed() -> Iterator[None]:
    """In the block, calls that captures do not allow leave them alone: anybody's would end with an error otherwise."""
    status, mode = cuda.cuThreadExchangeStreamCaptureMode(_RELAXED)
    try:
        yield
    finally:
        if not status:
            cuda.cuThreadExchangeStreamCaptureMode(mode)
