"""The fast path of repeated calls, which bypasses the interpreter (``warm.c``)."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.dispatch.warm_cuda import CudaPlan, WarmCudaCalls
from tc.runtime.frameworks.numpy_arrays import numpy_address
from tc.runtime.host.library import load_library
from tc.runtime.host.native import native_binary
from tc.runtime.host.pool import shared_pool
from tc.runtime.host_program import HostProgram

WarmCall: TypeAlias = Callable[[tuple[object, ...], object], object]
Allocator: TypeAlias = Callable[[], object]
Announcer: TypeAlias = Callable[..., object]


@frozen
class Plan:
    """What is to be done for calls of one kind.

    Slots are the arrays of a call: arguments, then results.  ``program``: what is run; its memories are the slots.
    ``element_sizes``: in bytes, of every slot.  ``allocate``: how a result is made that the caller does not bring.
    ``announce``: what is to be called with the caller's array before it changes.  ``threads``: how many are allowed.
    ``owner`` keeps addresses of the program valid.
    """

    program: HostProgram
    element_sizes: tuple[int, ...]
    allocate: tuple[Allocator | None, ...]
    announce: tuple[Announcer | None, ...]
    threads: Callable[[], int]
    owner: object = None


class WarmCalls:
    """The calls of one definition or kernel that have plans; safe from many threads.

    ``call(arguments, out)`` returns what the kernel makes, or None where there is no plan for such arguments.
    """

    __slots__ = ("_cuda", "_host", "_plans", "call")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Calls that come from now on have no plan."""
        self._plans: dict[bytes, tuple[object, ...]] = {}
        self._host: WarmCall = _unknown
        self._cuda = WarmCudaCalls()
        self.call: WarmCall = _unknown

    def remember(self, arguments: tuple[object, ...], out: object, plan: Plan | CudaPlan) -> None:
        """Calls like this one, which was made, follow the plan from now on, where they can be described quickly."""
        if isinstance(plan, Plan):
            self._remember_on_host(arguments, out, plan)
        else:
            self._cuda.remember(arguments, out, plan)
        on_host, on_cuda = bool(self._plans), self._cuda.known
        self.call = self._anywhere if on_host and on_cuda else self._cuda.call if on_cuda else self._host

    def _anywhere(self, arguments: tuple[object, ...], out: object) -> object:
        result = self._host(arguments, out)
        return self._cuda.call(arguments, out) if result is None else result

    def _remember_on_host(self, arguments: tuple[object, ...], out: object, plan: Plan) -> None:
        key = call_key(arguments, out)
        interface = _interface()
        if key is None or interface is None:
            return
        elements = struct.pack(f"{len(plan.element_sizes)}q", *plan.element_sizes)
        # Keys hold the addresses of NumPy's types, which must not become those of other types.
        types = [array.dtype for array in (*arguments, *_listed(out)) if isinstance(array, np.ndarray)]
        self._plans[key] = (
            elements,
            plan.program.packed(),
            plan.allocate,
            plan.announce,
            plan.threads,
            plan.program.report,
            types,
            plan.owner,
        )
        self._host = interface(self._plans, _CALL)


def call_key(arguments: tuple[object, ...], out: object) -> bytes | None:
    """What tells a call from others that need another plan: shapes, strides, element types, kinds of arrays, and which
    outputs are arguments; not addresses.  None for a call that cannot be described quickly, or would be refused.
    """
    interface = _interface()
    key = None if interface is None else interface({}, _KEY)(arguments, out)
    return key if isinstance(key, bytes) else None


def _unknown(_arguments: tuple[object, ...], _out: object) -> object:
    return None


def _listed(out: object) -> tuple[object, ...]:
    return out if isinstance(out, tuple) else (out,)


# The functions that ``tc_warm_function`` makes.
_CALL, _KEY = 0, 1
_Interface: TypeAlias = Callable[[dict[bytes, tuple[object, ...]], int], WarmCall]


def _interface() -> _Interface | None:
    """What makes the functions of ``warm.c``, with all frameworks told that were imported since."""
    loaded = _load()
    if loaded is None:
        return None
    torch = sys.modules.get("torch")
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None) if torch is not None else None
    if torch is not None and exchange is not None:
        from tc.runtime.frameworks.dlpack import exported_pointer

        pointer = exported_pointer(exchange, b"dlpack_exchange_api")
        loaded.tc_know_torch(torch.Tensor, torch.nn.Parameter, torch.is_grad_enabled, pointer)
    function: _Interface = loaded.tc_warm_function
    return function


@functools.cache
def _load() -> ctypes.CDLL | None:
    """``warm.c``, or None where it does not know the interpreter or NumPy well enough."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    library = load_library(native_binary("warm.c", environment()), ctypes.PyDLL)
    library.tc_know_numpy.argtypes = (ctypes.py_object, ctypes.c_int64, ctypes.c_void_p)
    library.tc_know_numpy.restype = None
    library.tc_know_torch.argtypes = (ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    library.tc_know_torch.restype = None
    library.tc_warm_function.argtypes = (ctypes.py_object, ctypes.c_int)
    library.tc_warm_function.restype = ctypes.py_object
    library.tc_know_numpy(np.ndarray, object.__basicsize__, shared_pool().program_address)
    return library if _reads_numpy(library.tc_warm_function({}, _KEY)) else None


def _reads_numpy(key: WarmCall) -> bool:
    """Whether NumPy's arrays have the fields that ``warm.c`` expects."""
    block = np.arange(12.0).reshape(3, 4)
    for trial in (block, block[1:, ::-1], block.T[2:]):
        expected = struct.pack("8q", 1, 1, id(trial.dtype), 2, *trial.shape, *trial.strides)
        if key((trial,), None) != expected or numpy_address(trial) != trial.ctypes.data:
            return False
    return True
