"""What measurements are made on, by name."""

from __future__ import annotations

import functools
from contextlib import suppress

from tc.errors import DeviceError
from tc.target import processor


@functools.cache
def measured_machine(*, gpu: bool) -> str:
    """The first GPU, or the processor.

    Where there is no GPU, kernels for one are the processor's, which makes them.
    """
    if gpu:
        from tc.runtime.chosen_driver import cuda_driver

        with suppress(DeviceError):
            return cuda_driver().devices()[0].name
    return processor().model
