"""Ordering of calls on CUDA: the caller's streams, and synchronization."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tc.base.errors import ArgumentError
from tc.runtime.cuda.chosen_stream import choosing
from tc.runtime.views.view import DEFAULT_STREAM, Stream

# The handle that names the default stream, besides 0.
_LEGACY: Final = 1


@contextmanager
def on_stream(stream: object) -> Iterator[None]:
    """In the block, calls of this thread on CUDA run on ``stream``, and not on the one their arrays are ready on.

    It is the caller who says, by events of the framework, in what order the two of them work; for arrays that come
    through DLPack, ``stream`` waits until they are ready.

    ``stream``: what has ``__cuda_stream__``, a stream of PyTorch, CuPy or PyCUDA, or the driver's handle, an integer.
    ArgumentError for anything else.
    """
    with choosing(_stream(stream)):
        yield


def _stream(stream: object) -> Stream:
    try:
        handle = _handle(stream)
    except (TypeError, ValueError):
        handle = -1
    if handle in (0, _LEGACY):
        return DEFAULT_STREAM
    if handle > 0:
        return Stream(handle, stream)
    raise ArgumentError(
        "expected a CUDA stream (of PyTorch, CuPy or PyCUDA, anything with __cuda_stream__, or a handle), "
        f"got {type(stream).__name__}"
    )


def _handle(stream: object) -> int:
    """The driver's handle; TypeError or ValueError for what is no stream."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _version, handle = protocol() if callable(protocol) else protocol
        return operator.index(handle)
    # Of PyTorch, of CuPy, of PyCUDA and Numba.
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return operator.index(getattr(handle, "value", handle) or 0)
    if isinstance(stream, bool):
        raise TypeError(stream)
    return operator.index(stream)  # type: ignore[arg-type]


def synchronize(device: int | None = None) -> None:
    """Waits for all work of a CUDA device, None for the current one, and raises what calls found in their arguments.

    ArgumentError for an index out of range in a call so far; DeviceError without a device, and for what broke it.
    """
    from tc.runtime.cuda.cuda import synchronize_cuda

    synchronize_cuda(device)
