"""A machine with two GPUs that are not there: ``driver.c`` takes the calls, the emulator runs the kernels.

A process that has one cannot have a real driver, so these tests run in a process of their own (``test_simulated.py``).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tc.api.comprehension import Comprehension
from tc.artifact.executable import Executable, load
from tc.base.environment import environment
from tc.base.grid import Argument, GridKernel, Place
from tc.base.types import ScalarType
from tc.dispatch.arguments import bind
from tc.dispatch.kernel import Kernel
from tc.graph.compiled import CompiledModel
from tc.graph.ir.nodes import Call
from tc.graph.model import Model
from tc.graph.run.comprehensions import comprehension_of
from tc.language.program.specialization import Signature
from tc.runtime.host.c_compiler import compile_shared, find_compiler
from tc.runtime.host.disk import temporary_folder
from tc.runtime.host.flags import SHARED
from tc.runtime.loaded_kernel import LoadedKernel
from tc.runtime.named_target import named_target
from tc.targets.options import Options
from tests.cuda.ptx import translated

_NAME: Final = "libcuda.so.1"
_ILLEGAL_ADDRESS: Final = 700
_LAUNCHER: Final = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_GATHERER: Final = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_FORMATS: Final = MappingProxyType(
    {
        ScalarType.BOOL: "?",
        ScalarType.INT8: "b",
        ScalarType.INT16: "h",
        ScalarType.INT32: "i",
        ScalarType.INT64: "q",
        ScalarType.UINT8: "B",
        ScalarType.UINT16: "H",
        ScalarType.UINT32: "I",
        ScalarType.UINT64: "Q",
        ScalarType.FLOAT8_E4M3FN: "f",
        ScalarType.FLOAT8_E5M2: "f",
        ScalarType.FLOAT16: "f",
        ScalarType.BFLOAT16: "f",
        ScalarType.FLOAT32: "f",
        ScalarType.FLOAT64: "d",
    }
)


_OTHERS = {Place.STEP: "i", Place.MAP: "128s"}


class _Program:
    """What a binary stands for: the same loops, compiled for the emulator."""

    def __init__(self, executable: Executable, emulated: Executable) -> None:
        self._convention = executable.convention
        self._grids = {grid.name: grid for grid in self._convention.grids}
        self._scalars = [scalar.type for scalar in self._convention.interface.scalars]
        self._scalars += [ScalarType.INT64 for _ in self._convention.signature.symbolic]
        loaded = load(emulated)
        assert isinstance(loaded, LoadedKernel)
        self._loaded = loaded
        self._given: dict[Argument, Any] = {}

    def launch(self, name: str, sizes: list[int], packed: bytes) -> int:
        """One kernel of the program; its last one runs them all, on what all of them were given."""
        grid = self._grids[name]
        if sizes != [*grid.grid, *grid.block, grid.dynamic_bytes]:
            return 1
        self._given |= zip(grid.arguments, struct.unpack(self._format(grid), packed), strict=True)
        if name != self._convention.grids[-1].name:
            return 0
        given, self._given = self._given, {}
        buffers = [given.get(Argument(Place.BUFFER, n), 0) for n in range(len(self._convention.operands))]
        scalars = [given.get(Argument(Place.SCALAR, n), 0) for n in range(len(self._scalars))]
        fault = self._loaded.launch(buffers, scalars, 1)
        if fault:
            ctypes.c_int32.from_address(given[Argument(Place.FAULT)]).value = fault
        return 0

    def gather(self, name: str, parameters: Sequence[int]) -> bytes:
        """Arguments that are given one by one, packed."""
        grid, found = self._grids[name], b""
        for place, own in zip(parameters, self._formats(grid), strict=False):
            found += bytes(-len(found) % min(8, struct.calcsize(own))) + ctypes.string_at(place, struct.calcsize(own))
        return found

    def _format(self, grid: GridKernel) -> str:
        return "".join(self._formats(grid))

    def _formats(self, grid: GridKernel) -> Iterator[str]:
        for own in grid.arguments:
            yield _FORMATS[self._scalars[own.number]] if own.place is Place.SCALAR else _OTHERS.get(own.place, "P")


class Translated:
    """What a binary does: the PTX that it was made of, as C."""

    def __init__(self, ptx: str) -> None:
        found = translated(ptx)
        self._kernels = found.kernels
        flags = (*SHARED, "-O1", "-w", "-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing")
        library = compile_shared(found.text, flags, find_compiler(environment()))
        with temporary_folder() as folder:
            file = folder / "kernels.so"
            file.write_bytes(library)
            self._run = ctypes.CDLL(str(file)).ptx_run
        self._run.restype = ctypes.c_char_p

    def gather(self, name: str, parameters: Sequence[int]) -> bytes:
        """Arguments that are given one by one, where the kernel expects them."""
        found = b""
        for place, own in zip(parameters, self._kernels[name], strict=False):
            found = found.ljust(own.offset, b"\0") + ctypes.string_at(place, own.size)
        return found

    def launch(self, name: str, sizes: list[int], packed: bytes, ranges: list[int]) -> str:
        """Runs one kernel; what went wrong, or nothing.  ``ranges``: where memory begins and ends, by turns."""
        found: bytes = self._run(
            list(self._kernels).index(name),
            (ctypes.c_uint32 * len(sizes))(*sizes),
            packed,
            (ctypes.c_uint64 * len(ranges))(*ranges),
            len(ranges) // 2,
        )
        return found.decode()


def _elf_size(address: int) -> int:
    """Bytes of a binary up to its tables of sections and segments, whichever ends later (ELF-64, the file header)."""
    segments, sections = struct.unpack_from("<QQ", ctypes.string_at(address, 64), 32)
    segment, segment_count, section, section_count = struct.unpack_from("<HHHH", ctypes.string_at(address, 64), 54)
    return int(max(segments + segment * segment_count, sections + section * section_count))


def _digest(code: bytes) -> bytes:
    """What tells binaries apart, wherever they lie."""
    address = ctypes.cast(ctypes.c_char_p(code), ctypes.c_void_p).value
    assert address is not None
    return hashlib.sha256(code[: _elf_size(address)]).digest()


class Simulator:
    """The driver of this process from now on."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("driver.c").read_text(encoding="utf-8")
        flags = (*SHARED, "-O1", "-Wall", "-Wextra", "-pthread", f"-Wl,-soname,{_NAME}")
        library = compile_shared(source, flags, find_compiler(environment()))
        with temporary_folder() as folder:
            file = folder / _NAME
            file.write_bytes(library)
            # Who asks for the driver by its name gets what has that name already.
            self._library = ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL)
        self._library.simulator_log.restype = ctypes.c_char_p
        self._library.simulator_capture.restype = ctypes.c_char_p
        self._programs: dict[bytes, _Program] = {}
        self._translated: dict[bytes, Translated] = {}
        self.failures: list[str] = []
        self._idle: frozenset[str] = frozenset()
        self._launcher = _LAUNCHER(self._launch)
        self._gatherer = _GATHERER(self._gather)
        self._library.simulator_launches(self._launcher, self._gatherer)

    def compile(
        self, comprehension: Comprehension, *arguments: object, options: Options | None = None, target: str = "cuda"
    ) -> Kernel:
        """The kernel for a device, which the simulator can run from now on."""
        kernel = comprehension.compile(*arguments, target=target, options=options)
        emulated = comprehension.compile(*arguments, target="emulator", options=options)
        code = kernel.executable.binary.code
        self._programs[_digest(code)] = _Program(kernel.executable, emulated.executable)
        return kernel

    def compile_model(self, model: Model, *shapes: Sequence[int]) -> CompiledModel:
        """The kernels of a model, which the simulator can run from now on."""
        compiled = model.compile(*shapes)
        for node in compiled.plan.graph.nodes:
            if isinstance(node, Call):
                self.compile_signature(comprehension_of(node.program), compiled.kernels[node.results[0]].signature)
        return compiled

    @property
    def graphs(self) -> int:
        """Graphs of launches, and executable ones, that are in use."""
        return int(self._library.simulator_graphs())

    def compile_in_place(self, comprehension: Comprehension, array: np.ndarray) -> None:
        """The kernel for calls on one array that is the result, too, which the simulator can run from now on."""
        self.compile_signature(
            comprehension, bind(comprehension.interface, (array,), array).signature(comprehension.interface)
        )

    def compile_signature(self, comprehension: Comprehension, signature: Signature) -> None:
        """The kernel for calls with a signature, which the simulator can run from now on."""
        kernel, emulated = (comprehension._kernels.get(signature, named_target(t), None) for t in ("cuda", "emulator"))
        self._programs[_digest(kernel.executable.binary.code)] = _Program(kernel.executable, emulated.executable)

    def _launch(self, code: int, name: bytes, sizes: Any, _stream: int, arguments: int, size: int) -> int:
        if name.decode() in self._idle:
            return 0
        digest = _digest(ctypes.string_at(code, _elf_size(code)))
        if digest in self._translated:
            packed = ctypes.string_at(arguments, size)
            failure = self._translated[digest].launch(name.decode(), sizes[:7], packed, self._ranges())
            self.failures += [f"{name.decode()}: {failure}"] if failure else []
            return _ILLEGAL_ADDRESS if failure else 0
        program = self._programs[digest]
        return program.launch(name.decode(), sizes[:7], ctypes.string_at(arguments, size))

    def _gather(self, code: int, name: bytes, parameters: Any, arguments: int, room: int) -> int:
        digest = _digest(ctypes.string_at(code, _elf_size(code)))
        kernels = self._translated.get(digest) or self._programs[digest]
        found = kernels.gather(name.decode(), parameters)
        assert len(found) <= room
        ctypes.memmove(arguments, found, len(found))
        return len(found)

    def alike(self) -> None:
        """Makes both devices those of one kind, before anything asks what they are."""
        self._library.simulator_alike()

    def translate(self, code: bytes, ptx: str) -> None:
        """From now on a binary does what the PTX does that it was made of."""
        self._translated[_digest(code)] = Translated(ptx)

    def _ranges(self) -> list[int]:
        most = 4096
        found = (ctypes.c_uint64 * (2 * most))()
        count = self._library.simulator_ranges(found, most)
        return list(found[: 2 * count])

    def idle(self, *names: str) -> None:
        """From now on kernels with these names do nothing: they are not of a comprehension."""
        self._idle = frozenset(names)

    def fail(self, function: str, status: int, times: int = 1) -> None:
        """The next calls of a function of the driver fail like this."""
        self._library.simulator_fail(function.encode(), status, times)

    def hold(self, hold: bool) -> None:
        """Keeps events from happening, until they are let go, or waited for."""
        self._library.simulator_hold(int(hold))

    def capture(self, stream: int, *, blocking: bool = False) -> str:
        """What the stream is given from now on becomes part of a graph; 0 ends that, and says what is wrong with it.

        ``blocking``: the default stream would wait for it, as for most streams that programs make.
        """
        found: bytes = self._library.simulator_capture(ctypes.c_size_t(stream), int(blocking))
        return found.decode()

    def pools(self, *, have: bool) -> None:
        """Whether devices have pools of memory, from now on."""
        self._library.simulator_pools(int(have))

    def log(self) -> list[str]:
        """The calls since the last time."""
        found: bytes = self._library.simulator_log()
        return found.decode().splitlines()

    @property
    def blocks(self) -> int:
        """Pieces of memory that are in use."""
        return int(self._library.simulator_blocks())

    @property
    def events(self) -> int:
        """Events that are in use."""
        return int(self._library.simulator_events())


@functools.cache
def simulator() -> Simulator:
    """The one of this process."""
    return Simulator()
