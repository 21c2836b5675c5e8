"""From a specialization to a kernel in this process: mapping, printing, compiling and loading, each of them timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar, assert_never

from tc.codegen.expressions import Check
from tc.codegen.grids import cuda_source, opencl_source
from tc.codegen.source import KernelSource, c_source, emulator_source
from tc.environment import Environment
from tc.errors import OptionsError
from tc.language.specialization import Specialization
from tc.options import Options
from tc.polyhedral.loops import LoopProgram
from tc.polyhedral.microkernel import VectorUnit
from tc.polyhedral.passes import Machine
from tc.polyhedral.pipeline import MappedProgram, Prepared, Stage
from tc.polyhedral.verify import Proof
from tc.runtime.binary import Binary
from tc.runtime.compiler import check_compiles, compiling, find_compiler, kernel_flags
from tc.runtime.kernel import LoadedKernel, Memory, load_kernel
from tc.runtime.nvrtc import check_architecture, compiling_cuda, nvrtc_flags
from tc.runtime.opencl import Extent, OpenClKernel, compiling_opencl, opencl_device
from tc.runtime.pool import shared_pool
from tc.runtime.threads import available_threads
from tc.target import CpuTarget, CudaTarget, EmulatorTarget, HostTarget, OpenClTarget, Target, check_runs, processor
from tc.types import ScalarType

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Compilation:
    """Everything that is known of a kernel before it is compiled for a processor."""

    specialization: Specialization
    options: Options
    target: Target
    mapped: MappedProgram
    source: KernelSource
    stages: tuple[Stage, ...]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The arrays that the kernel takes, in the order of its parameters."""
        return tuple(buffer.name for buffer in self.mapped.loops.buffers)

    @property
    def memory(self) -> Memory:
        """What a call needs beyond its arrays."""
        return Memory(self.source.shared_bytes, self.source.scratch_bytes)

    @property
    def proof(self) -> Proof:
        return self.mapped.proof

    @property
    def checks(self) -> tuple[Check, ...]:
        """The gather that stores fault number n stands at n - 1."""
        return self.source.checks


def translate(program: Specialization | Prepared, options: Options, target: Target) -> Compilation:
    """Schedule, map, prove and print a specialized program; needs no C compiler.

    A prepared one is scheduled once per fusion strategy, however often it is translated.
    """
    with _printed(program, options, target) as printed:
        return printed.proven()


def build(
    program: Specialization | Prepared, options: Options, target: Target, settings: Environment
) -> tuple[Compilation, Binary, Stage]:
    """``translate``, and the source compiled for its target.

    The compiler works while the loops that were printed are proven; the stage is what it takes from then on.
    DeviceError if there is no compiler for the target; CompileError with the compiler's log if it refuses the source.
    """
    toolchain = _toolchain(target, settings)
    with _printed(program, options, target) as printed, toolchain.compiling(printed.source.text) as finished:
        compilation = printed.proven()
        binary, seconds = _timed(finished)
    return compilation, binary, Stage("compile", seconds, " ".join(toolchain.flags))


@dataclass(frozen=True, slots=True)
class _Toolchain:
    """How a source becomes a binary: beside other work."""

    compiling: Callable[[str], AbstractContextManager[Callable[[], Binary]]]
    flags: tuple[str, ...]


def _toolchain(target: Target, settings: Environment) -> _Toolchain:
    match target:
        case CudaTarget(architecture):
            check_architecture(architecture)
            return _Toolchain(lambda source: compiling_cuda(source, architecture), nvrtc_flags(architecture))
        case OpenClTarget():
            return _Toolchain(compiling_opencl, opencl_device().flags)
        case CpuTarget() | EmulatorTarget():
            return _host_toolchain(target, settings)
        case _:
            assert_never(target)


def _host_toolchain(target: HostTarget, settings: Environment) -> _Toolchain:
    compiler = find_compiler(settings)
    check_compiles(target, compiler)
    flags = kernel_flags(target, compiler)

    @contextmanager
    def compiling_c(source: str) -> Iterator[Callable[[], Binary]]:
        with compiling(source, flags, compiler) as library:
            yield lambda: Binary(library())

    return _Toolchain(compiling_c, flags)


@dataclass(frozen=True, slots=True)
class _Printed:
    """The source of loops that are not yet proven."""

    source: KernelSource
    proven: Callable[[], Compilation]


@contextmanager
def _printed(program: Specialization | Prepared, options: Options, target: Target) -> Iterator[_Printed]:
    prepared = program if isinstance(program, Prepared) else Prepared(program)
    machine = _machine(target)
    with prepared.generated(options, machine) as generated:
        source, seconds = _timed(lambda: _source(generated.loops, target))

        def proven() -> Compilation:
            mapped = generated.proven()
            proofs = mapped.stages[len(generated.stages) :]
            stages = (*generated.stages, Stage("print", seconds, source.text), *proofs)
            return Compilation(prepared.specialization, options, target, mapped, source, stages)

        yield _Printed(source, proven)


def _source(loops: LoopProgram, target: Target) -> KernelSource:
    match target:
        case CpuTarget():
            return c_source(loops, target.vector_bytes)
        case EmulatorTarget():
            return emulator_source(loops)
        case CudaTarget():
            return cuda_source(loops)
        case OpenClTarget():
            if loops.resident != 1:
                raise OptionsError("resident cannot be asked for of OpenCL; leave it out")
            return opencl_source(loops)
        case _:
            assert_never(target)


def _machine(target: Target) -> Machine:
    match target:
        case CpuTarget():
            vectors = VectorUnit(target.vector_bytes, target.vector_registers)
            return Machine(vectors, available_threads(), target.streams)
        case EmulatorTarget() | CudaTarget() | OpenClTarget():
            return Machine(VectorUnit(0, 0), 1)
        case _:
            assert_never(target)


def load(compilation: Compilation, binary: Binary) -> tuple[LoadedKernel | OpenClKernel, Stage]:
    """The binary in this process; DeviceError if this machine cannot run its target."""
    scalars = [type for _, type in compilation.mapped.loops.scalars]
    if isinstance(compilation.target, OpenClTarget):
        opencl, seconds = _timed(lambda: _opencl_kernel(compilation, binary, scalars))
        return opencl, Stage("load", seconds, "")
    check_runs(compilation.target, processor())
    count = len(compilation.tensors)
    kernel, seconds = _timed(lambda: load_kernel(binary.code, count, scalars, shared_pool(), compilation.memory))
    return kernel, Stage("load", seconds, "")


def _opencl_kernel(compilation: Compilation, binary: Binary, scalars: list[ScalarType]) -> OpenClKernel:
    loops = compilation.mapped.loops
    extents = []
    for buffer in loops.buffers:
        offsets, size = buffer.layout.offsets, buffer.layout.type.itemsize
        extents.append(Extent(offsets.start * size, len(offsets) * size, buffer.writable))
    temporaries = [buffer.layout.span * buffer.layout.type.itemsize for buffer in loops.temporaries]
    return OpenClKernel(binary, compilation.source.grids, extents, temporaries, scalars)


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    started = time.perf_counter()
    made = make()
    return made, time.perf_counter() - started
