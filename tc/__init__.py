"""Tensor Comprehensions: Einstein notation compiled to proven kernels.

>>> import tc
>>> mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }")
>>> C = mm(A, B)
"""

from tc.comprehension import Comprehension, targets
from tc.definitions import Definitions, define
from tc.devices import to_device
from tc.errors import (
    ArgumentError,
    CacheError,
    CacheWarning,
    CompileError,
    DeviceError,
    LibraryCallWarning,
    OptionsError,
    ParseError,
    RangeError,
    SemanticError,
    StickyDeviceError,
    TCError,
    TooLargeError,
    TuningError,
    VerificationError,
)
from tc.language.specialization import ArraySpec, dynamic
from tc.options import CpuOptions, Distribution, Fusion, GpuOptions, ScheduleOptions, TileLayout
from tc.runtime.threads import get_threads, set_threads
from tc.streams import on_stream, synchronize
from tc.types import ScalarType

__all__ = [
    "ArgumentError",
    "ArraySpec",
    "CacheError",
    "CacheWarning",
    "CompileError",
    "Comprehension",
    "CpuOptions",
    "Definitions",
    "DeviceError",
    "Distribution",
    "Fusion",
    "GpuOptions",
    "LibraryCallWarning",
    "OptionsError",
    "ParseError",
    "RangeError",
    "ScalarType",
    "ScheduleOptions",
    "SemanticError",
    "StickyDeviceError",
    "TCError",
    "TileLayout",
    "TooLargeError",
    "TuningError",
    "VerificationError",
    "define",
    "dynamic",
    "get_threads",
    "on_stream",
    "set_threads",
    "synchronize",
    "targets",
    "to_device",
]
