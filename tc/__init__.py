"""Tensor Comprehensions: Einstein notation compiled to proven kernels.

>>> import tc
>>> mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }")
>>> C = mm(A, B)
"""

from importlib import import_module
from types import ModuleType

from tc.api.available import targets
from tc.api.comprehension import Comprehension, Pair
from tc.api.definitions import Definitions, define
from tc.base.decision import Decision
from tc.base.dots import Products
from tc.base.errors import (
    ArgumentError,
    CacheError,
    CacheWarning,
    CompileError,
    DeviceError,
    GradientError,
    GraphError,
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
from tc.base.types import ScalarType
from tc.dispatch.devices import to_device
from tc.dispatch.kernel import Kernel
from tc.dispatch.streams import on_stream, synchronize
from tc.language.program.specialization import ArraySpec, dynamic
from tc.runtime.host.threads import get_threads, set_threads
from tc.targets.numerics import Numerics
from tc.targets.options import (
    CpuOptions,
    Distribution,
    Fusion,
    GpuOptions,
    ScheduleOptions,
    TensorCores,
    TileLayout,
)

__all__ = [
    "ArgumentError",
    "ArraySpec",
    "CacheError",
    "CacheWarning",
    "CompileError",
    "Comprehension",
    "CpuOptions",
    "Decision",
    "Definitions",
    "DeviceError",
    "Distribution",
    "Fusion",
    "GpuOptions",
    "GradientError",
    "GraphError",
    "Kernel",
    "LibraryCallWarning",
    "Numerics",
    "OptionsError",
    "Pair",
    "ParseError",
    "Products",
    "RangeError",
    "ScalarType",
    "ScheduleOptions",
    "SemanticError",
    "StickyDeviceError",
    "TCError",
    "TensorCores",
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


def __getattr__(name: str) -> ModuleType:
    """``tc.graph``, and ``tc.torch`` and ``tc.jax``, which need PyTorch and JAX: imported when they are asked for."""
    if name in ("graph", "torch", "jax"):
        return import_module(f"tc.{name}")
    raise AttributeError(f"module 'tc' has no attribute {name!r}")
