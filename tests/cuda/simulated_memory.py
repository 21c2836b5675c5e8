"""Memory, streams and graphs with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.bindings.driver import CUresult

import tc
from tc.errors import StickyDeviceError
from tc.runtime.arrays import describe
from tests.cuda.simulated_cases import floats, streamed
from tests.cuda.simulator import Simulator


def test_errors_that_end_the_process_are_recognized(gpu: Simulator) -> None:
    """Those of which the driver's own descriptions say so."""
    last = [error for error in CUresult if "process must be terminated" in " ".join((error.__doc__ or "").split())]
    assert {CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_CONTAINED} <= set(last)
    for error in last:
        gpu.fail("cuCtxSynchronize", int(error))
        with pytest.raises(StickyDeviceError, match=f"{error.name}: .*start another one"):
            tc.synchronize()


def test_addresses_of_this_machine_are_refused(gpu: Simulator) -> None:
    host, array = np.zeros(3, np.float32), streamed(floats(3), None)
    array.__cuda_array_interface__["data"] = host.ctypes.data, False
    with pytest.raises(
        tc.ArgumentError,
        match=rf"^argument A of mm: its __cuda_array_interface__ names address {host.ctypes.data:#x}, which the CUDA "
        r"driver does not know as memory of a device \(.*CUDA_ERROR_INVALID_VALUE: invalid argument\); copy the array "
        r"to one, for example by tc\.to_device$",
    ):
        describe(array, "argument A of mm")
