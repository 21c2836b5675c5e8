"""The CUDA driver's own library, called by ctypes: what PyCUDA lacks, or ties to the thread that made an object."""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any, Final

from tc.base.errors import DeviceError
from tc.runtime.cuda.cuda_driver import failure

_LIBRARY: Final = "libcuda.so.1"
# Handles and addresses are integers; a place is where a value goes or comes from.
_HANDLE, _SIZE, _NUMBER = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
_PLACE, _BYTES = ctypes.c_void_p, ctypes.c_char_p
_PARAMETERS: Final = MappingProxyType(
    {
        "cuCtxGetCurrent": (_PLACE,),
        "cuCtxGetDevice": (_PLACE,),
        "cuCtxSynchronize": (),
        "cuDeviceGetAttribute": (_PLACE, _NUMBER, _NUMBER),
        "cuEventCreate": (_PLACE, _NUMBER),
        "cuEventDestroy_v2": (_HANDLE,),
        "cuEventElapsedTime": (_PLACE, _HANDLE, _HANDLE),
        "cuEventQuery": (_HANDLE,),
        "cuEventRecord": (_HANDLE, _HANDLE),
        "cuGetErrorName": (_NUMBER, _PLACE),
        "cuGetErrorString": (_NUMBER, _PLACE),
        "cuKernelSetAttribute": (_NUMBER, _NUMBER, _HANDLE, _NUMBER),
        "cuLaunchKernel": (_HANDLE, *(_NUMBER,) * 7, _HANDLE, _PLACE, _PLACE),
        "cuLibraryGetKernel": (_PLACE, _HANDLE, _BYTES),
        "cuLibraryLoadData": (_PLACE, _BYTES, _PLACE, _PLACE, _NUMBER, _PLACE, _PLACE, _NUMBER),
        "cuLibraryUnload": (_HANDLE,),
        "cuMemAlloc_v2": (_PLACE, _SIZE),
        "cuMemAllocFromPoolAsync": (_PLACE, _SIZE, _HANDLE, _HANDLE),
        "cuMemFree_v2": (_HANDLE,),
        "cuMemFreeAsync": (_HANDLE, _HANDLE),
        "cuMemFreeHost": (_HANDLE,),
        "cuMemHostAlloc": (_PLACE, _SIZE, _NUMBER),
        "cuMemPoolCreate": (_PLACE, _PLACE),
        "cuMemPoolSetAttribute": (_HANDLE, _NUMBER, _PLACE),
        "cuMemcpyDtoDAsync_v2": (_HANDLE, _HANDLE, _SIZE, _HANDLE),
        "cuMemcpyDtoH_v2": (_HANDLE, _HANDLE, _SIZE),
        "cuMemcpyHtoD_v2": (_HANDLE, _HANDLE, _SIZE),
        "cuMemsetD8Async": (_HANDLE, ctypes.c_ubyte, _SIZE, _HANDLE),
        "cuPointerGetAttribute": (_PLACE, _NUMBER, _HANDLE),
        "cuStreamIsCapturing": (_HANDLE, _PLACE),
        "cuStreamSynchronize": (_HANDLE,),
        "cuStreamWaitEvent": (_HANDLE, _HANDLE, _NUMBER),
        "cuTensorMapEncodeTiled": (_PLACE, _NUMBER, _NUMBER, _HANDLE, *(_PLACE,) * 4, *(_NUMBER,) * 4),
        "cuThreadExchangeStreamCaptureMode": (_PLACE,),
    }
)


class Libcuda:
    """The library that this process has loaded; the driver must be initialized."""

    def __init__(self) -> None:
        library = ctypes.CDLL(_LIBRARY)
        self._functions = {name: _function(library, name) for name in _PARAMETERS}

    def status(self, name: str, *arguments: object) -> int:
        """What a function returns: 0 where it succeeds."""
        return int(self._functions[name](*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """DeviceError where the function fails."""
        self.check(self.status(name, *arguments))

    def handle(self, name: str, *arguments: object) -> int:
        """The handle or address that a function puts where its first parameter says; DeviceError where it fails."""
        place = ctypes.c_size_t()
        self.call(name, ctypes.byref(place), *arguments)
        return place.value

    def number(self, name: str, *arguments: object) -> int:
        """``handle`` for what gives a number of 32 bits."""
        place = ctypes.c_int()
        self.call(name, ctypes.byref(place), *arguments)
        return place.value

    def check(self, status: int) -> None:
        """DeviceError for the status of a failure."""
        if status:
            raise failure(self.name_of(status), f"the CUDA driver failed: {self.reason(status)}")

    def name_of(self, status: int) -> str:
        """As NVIDIA's manual calls it: ``CUDA_ERROR_INVALID_VALUE``."""
        return self._text("cuGetErrorName", status) or f"error {status}"

    def reason(self, status: int) -> str:
        """The name of a status and what the driver says about it."""
        said = self._text("cuGetErrorString", status) or "an error that the driver does not explain"
        return f"{self.name_of(status)}: {said}"

    def _text(self, name: str, status: int) -> str:
        text = ctypes.c_char_p()
        self.status(name, status, ctypes.byref(text))
        return (text.value or b"").decode(errors="replace")


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        function = getattr(library, name)
    except AttributeError as error:
        raise DeviceError(f"the CUDA driver is too old: it has no {name}; update it to CUDA 12 or newer") from error
    function.argtypes, function.restype = _PARAMETERS[name], ctypes.c_int
    return function
