"""Chooses the Python package through which the CUDA driver is called."""

from __future__ import annotations

import functools
import sys
from typing import Final

from tc.base.environment import environment
from tc.base.errors import DeviceError, OptionsError, nearest
from tc.runtime.cuda.cuda_driver import CudaDriver

_BINDINGS: Final = "cuda-bindings"
_PYCUDA: Final = "pycuda"


@functools.cache
def cuda_driver() -> CudaDriver:
    """The driver of this process: what ``TC_CUDA_RUNTIME`` names, else PyCUDA where it is in use, else cuda-bindings.

    DeviceError if there is none, or no device.
    """
    name = environment().cuda_runtime or (_PYCUDA if "pycuda.driver" in sys.modules else _BINDINGS)
    driver: CudaDriver
    match name:
        case "cuda-bindings":
            from tc.runtime.cuda.cuda_bindings_driver import BindingsDriver

            driver = BindingsDriver()
        case "pycuda":
            from tc.runtime.cuda.pycuda_driver import PycudaDriver

            driver = PycudaDriver()
        case _:
            known = (_BINDINGS, _PYCUDA)
            guess = nearest(name, known)
            hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(known)}"
            raise OptionsError(f"TC_CUDA_RUNTIME names no driver: {name!r}; {hint}")
    if not driver.devices():
        raise DeviceError("the CUDA driver finds no device; look at nvidia-smi and CUDA_VISIBLE_DEVICES")
    return driver
