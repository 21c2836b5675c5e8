"""Arrays of any framework through ``__cuda_array_interface__`` (versions 2 and 3), read in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tc.base.errors import ArgumentError, DeviceError, StickyDeviceError
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.frameworks.numpy_arrays import scalar_type_of
from tc.runtime.views.view import (
    DEFAULT_STREAM,
    ArrayView,
    CudaMemory,
    Framework,
    Stream,
    check_address,
    element_strides,
    row_major,
)

# The default stream, as the interface calls it.
_LEGACY: Final = 1


def describe_cuda_interface(
    array: object,
    place: str,
    framework: Framework = Framework.OTHER,
    device: int | None = None,
    stream: Stream | None = None,
) -> ArrayView:
    """The view of what ``array`` exports; None as ``device`` asks the driver where it is, None as ``stream`` the array.

    ArgumentError for an interface that is not valid, and for elements the language does not have.
    """
    try:
        interface = array.__cuda_array_interface__  # type: ignore[attr-defined]
        shape = tuple(int(extent) for extent in interface["shape"])
        address, read_only = interface["data"]
        # Frameworks whose elements the interface cannot name say what they are themselves.
        dtype = np.dtype(getattr(array, "dtype", None) or interface["typestr"])
        given = interface.get("strides")
        strides = None if given is None else tuple(int(stride) for stride in given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"{place}: its __cuda_array_interface__ is not valid: {error!r}") from error
    if interface.get("mask") is not None:
        raise ArgumentError(f"{place}: masked arrays are not supported; pass one without a mask")
    type = scalar_type_of(dtype, place)
    elements = row_major(shape) if strides is None else element_strides(shape, strides, type.itemsize, place)
    if device is None:
        device = _device(address, place)
    memory = CudaMemory(device, _stream(interface, array) if stream is None else stream)
    # Frameworks that we know give memory back in the order of the streams on which they work.
    lease = array if framework is Framework.OTHER else None
    view = ArrayView(int(address or 0), shape, elements, type, not read_only, framework, array, lease, memory)
    check_address(view.address, view.size, type.itemsize, place)
    return view


def _device(address: int, place: str) -> int:
    """The device that holds the elements; the current one where there are none."""
    driver = cuda_driver()
    if not address:
        return driver.current_device()
    try:
        return driver.device_of(address)
    except StickyDeviceError:
        raise
    except DeviceError as error:
        raise ArgumentError(
            f"{place}: its __cuda_array_interface__ names address {address:#x}, which the CUDA driver does not know as "
            f"memory of a device ({error}); copy the array to one, for example by tc.to_device"
        ) from error


def _stream(interface: Mapping[str, object], owner: object) -> Stream:
    """The stream on which the elements are ready; the default one where the interface names none."""
    handle = interface.get("stream")
    return Stream(handle, owner) if isinstance(handle, int) and handle not in (0, _LEGACY) else DEFAULT_STREAM
