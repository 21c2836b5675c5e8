"""JAX arrays in and out: they are immutable, so results are exported from our memory.  Imported on demand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final

import jax
import numpy as np

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.cuda.deferred_free import Borrower
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.dlpack import describe_dlpack
from tc.runtime.frameworks.numpy_arrays import empty_bytes, numpy_dtype
from tc.runtime.views.view import ArrayView, Framework

# JAX takes over memory with this alignment; anything else it copies.
_ALIGNMENT: Final = 64


def describe_jax(array: jax.Array, place: str) -> ArrayView:
    """The view of an array that JAX has computed; a tracer, which stands for none, is refused."""
    if isinstance(array, jax.core.Tracer):
        raise ArgumentError(f"{place}: a traced JAX value has no elements; call the comprehension outside jit and grad")
    # On a GPU, the stream that reads it waits for it, and not this thread.
    on_cpu = all(device.platform == "cpu" for device in array.devices())
    return describe_dlpack(array.block_until_ready() if on_cpu else array, place, Framework.JAX)


def check_for_jax(type: ScalarType) -> None:
    """ArgumentError for a type that JAX would narrow."""
    if type.itemsize == 8 and not jax.config.read("jax_enable_x64"):
        raise ArgumentError(
            f"JAX holds no {type} results as it is configured: jax.config.update('jax_enable_x64', True)"
        )


def allocate_for_jax(shape: tuple[int, ...], type: ScalarType) -> np.ndarray:
    """Memory for a result that ``deliver_to_jax`` hands over; ArgumentError for a type that JAX would narrow."""
    check_for_jax(type)
    # JAX imports bfloat16 only as its bits.
    dtype = np.dtype(np.uint16) if type is ScalarType.BFLOAT16 else numpy_dtype(type)
    return empty_bytes(math.prod(shape) * dtype.itemsize, _ALIGNMENT).view(dtype).reshape(shape)


class _Lent:
    """A ``DeviceArray`` as JAX takes it over: it names a stream to wait on, and computes on another one."""

    def __init__(self, memory: DeviceArray) -> None:
        self._memory = memory

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return self._memory.lend(stream, Borrower.JAX)


class JaxEnd:
    """The end of all that JAX was given so far for the device of an array: it computes there in this order.

    JAX releases memory of others as soon as no more work is coming, on a stream that it does not tell.
    """

    def __init__(self, array: jax.Array) -> None:
        (device,) = array.devices()
        self._last = _following()(_first(device))

    def done(self) -> bool:
        """Whether it has come."""
        return bool(self._last.is_ready())


@functools.cache
def _first(device: jax.Device) -> jax.Array:
    return jax.device_put(np.int32(0), device)


@functools.cache
def _following() -> Callable[[jax.Array], jax.Array]:
    following: Callable[[jax.Array], jax.Array] = jax.jit(lambda number: number + 1)
    return following


def deliver_device_array(memory: DeviceArray) -> jax.Array:
    """The JAX array over memory of a GPU, which must not be written any more."""
    return jax.dlpack.from_dlpack(_Lent(memory))


def deliver_to_jax(memory: np.ndarray, type: ScalarType) -> jax.Array:
    """The JAX array over ``memory``, which must not be written any more; bfloat16 is copied once."""
    array = jax.dlpack.from_dlpack(memory)
    if type is ScalarType.BFLOAT16:
        return jax.lax.bitcast_convert_type(array, jax.numpy.bfloat16)
    return array
