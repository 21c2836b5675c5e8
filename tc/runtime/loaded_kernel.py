"""A compiled kernel in this process, and the way to launch it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Final, assert_never

from tc.base.errors import DeviceError
from tc.base.frozen import frozen
from tc.base.types import Kind, ScalarType
from tc.runtime.host.library import load_library
from tc.runtime.host.pool import Pool

ENTRY: Final = "tc_kernel"
# ``TC_NO_MEMORY`` of ``pool.h``; the faults of kernels are positive.
NO_MEMORY: Final = -1


@frozen
class Memory:
    """Bytes that a call needs beyond its arrays: ``shared`` by its threads, and ``scratch`` for each of them."""

    shared: int = 0
    scratch: int = 0


def _slot(scalar: ScalarType) -> str:
    """The struct format of one ``tc_scalar``."""
    match scalar.kind:
        case Kind.SIGNED | Kind.BOOLEAN:
            return "q"
        case Kind.UNSIGNED:
            return "Q"
        case Kind.FLOATING:
            return "d" if scalar is ScalarType.FLOAT64 else "f4x"
        case _:
            assert_never(scalar.kind)


class LoadedKernel:
    """A kernel ready to run: immutable, and safe to launch from any number of threads."""

    __slots__ = ("_needs", "_pack", "_run", "address", "memory")

    def __init__(
        self, library: ctypes.CDLL, buffers: int, scalars: Sequence[ScalarType], pool: Pool, memory: Memory
    ) -> None:
        try:
            entry = library[ENTRY]
        except AttributeError as error:
            raise DeviceError(
                f"the compiled library exports no function {ENTRY!r}; compile the kernel again"
            ) from error
        address = ctypes.cast(entry, ctypes.c_void_p).value
        assert address is not None
        self.address: Final = address
        self.memory: Final = memory
        self._needs = (memory.shared, memory.scratch, buffers)
        # A call packs its launch into a bytes object of its own, which costs less than any ctypes array.
        self._pack = struct.Struct("Pqqqq" + "P" * buffers + "".join(map(_slot, scalars))).pack
        self._run = pool.run

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float], threads: int) -> int:
        """Runs the kernel on buffers at ``addresses`` and returns its fault: 0 when there was none, or ``NO_MEMORY``.

        Addresses and scalars come in the order of the kernel's parameters.  The caller keeps the memory alive and
        holds scalars in the range of their types (halves as float32 values); neither is checked here.
        """
        return self._run(self._pack(self.address, threads, *self._needs, *addresses, *scalars))


def load_kernel(binary: bytes, buffers: int, scalars: Sequence[ScalarType], pool: Pool, memory: Memory) -> LoadedKernel:
    """Loads a compiled kernel with ``buffers`` buffers and scalar parameters of these types.

    Ask ``tc.targets.target.check_runs`` first: code for another processor loads, and stops the process when it runs.
    """
    return LoadedKernel(load_library(binary), buffers, scalars, pool, memory)
