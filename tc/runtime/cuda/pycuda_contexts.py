"""Contexts of PyCUDA, which frees memory only where the context that it was made in is current, or in its thread."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pycuda.driver as cuda

from tc.base.errors import DeviceError
from tc.base.once import Once

_PRIMARY: Final[Once[int, Any]] = Once()


def primary_context(device: int) -> Any:
    """PyCUDA's object for the primary context of a device, one for all threads; DeviceError where there is none."""
    return _PRIMARY.get(device, lambda: _retained(device))


def _retained(device: int) -> Any:
    try:
        context = cuda.Device(device).retain_primary_context()
    except cuda.Error as error:
        raise DeviceError(f"the CUDA driver failed: {error}") from error
    # As long as the process: PyCUDA detaches what it lets go of like a context of its own, which this is not.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(context))
    return context


def has_context(device: int) -> bool:
    """Whether a context of PyCUDA is current in this thread, and of the device."""
    return cuda.Context.get_current() is not None and cuda.Context.get_device() == cuda.Device(device)


@contextmanager
def pushed(context: Any) -> Iterator[None]:
    """In the block, a context is current, in whichever thread."""
    context.push()
    try:
        yield
    finally:
        cuda.Context.pop()
