"""Arrays on GPUs for callers that have no framework which makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # its driver is not everybody's
    from tc.runtime.frameworks.device_array import DeviceArray


def to_device(array: object, device: int = 0) -> DeviceArray:
    """A copy of a NumPy array, or of what makes one, on a CUDA device; ``.numpy()`` of it is a copy back.

    ArgumentError for elements that the language does not have; DeviceError if there is no such device.
    """
    from tc.runtime.frameworks.device_array import to_device as copied
    from tc.runtime.frameworks.numpy_arrays import scalar_type_of

    contiguous = np.asarray(array, order="C")
    return copied(contiguous, scalar_type_of(contiguous.dtype, "the array"), device)
