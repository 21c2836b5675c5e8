"""The name of the machine that measurements are made on."""

from __future__ import annotations

import functools
from contextlib import suppress

from tc.base.errors import DeviceError
from tc.targets.target import processor


@functools.cache
def measured_machine(*, gpu: bool, device: int = 0) -> str:
    """The GPU with this number, or the processor.

    Where there is no GPU, kernels for one are the processor's, which makes them.
    """
    if gpu:
        from tc.runtime.cuda.chosen_driver import cuda_driver

        with suppress(DeviceError):
            return cuda_driver().devices()[device].name
    return processor().model
