"""From a specialization to an executable: mapping, printing and compiling, each of them timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeVar, assert_never

from tc.artifact.convention import Convention, Operand
from tc.artifact.executable import Executable
from tc.base.counted import counted
from tc.base.decision import Decision
from tc.base.dots import Dot
from tc.base.environment import Environment
from tc.base.errors import CompileError, OptionsError
from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.proof import Proof
from tc.base.stage import Stage
from tc.codegen.printer.grids import cuda_source, opencl_source
from tc.codegen.printer.source import KernelSource, c_source, emulator_source
from tc.codegen.text.functions import ABSENT_IN_OPENCL
from tc.language.program.program import Call, walk
from tc.language.program.specialization import Specialization
from tc.polyhedral.attempts import Attempt
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.ir.loops import Buffer, LoopProgram, barriers
from tc.polyhedral.pipeline import MappedProgram, Prepared
from tc.prediction.counts import counts_text
from tc.runtime.cuda.nvrtc import check_architecture, compiling_cuda, nvrtc_flags
from tc.runtime.host.binary import Binary
from tc.runtime.host.c_compiler import check_compiles, compiling, find_compiler, kernel_flags
from tc.runtime.host.threads import available_threads
from tc.runtime.loaded_kernel import Memory
from tc.runtime.opencl.opencl import compiling_opencl, opencl_device
from tc.targets.machine import GENERIC_GPU, CpuMachine, Machine, VectorUnit
from tc.targets.options import CpuOptions, Options
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, HostTarget, OpenClTarget, Target

Made = TypeVar("Made")


@frozen
class Compilation:
    """Everything that is known of a kernel before it is compiled for a processor."""

    specialization: Specialization
    target: Target
    mapped: MappedProgram
    source: KernelSource
    stages: tuple[Stage, ...]

    @property
    def asked(self) -> Options:
        """The options that were asked for."""
        return self.mapped.attempt.asked

    @property
    def options(self) -> Options:
        """What the kernel is really made with."""
        return self.mapped.attempt.options

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Where the two differ, and why; and what was decided that no option says anything of."""
        return self.mapped.attempt.decisions

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Arrays in the order of the kernel's parameters, then temporaries."""
        return (*self.mapped.loops.buffers, *self.mapped.loops.temporaries)

    @property
    def barriers(self) -> frozenset[str]:
        """Statements of the schedule at which the threads of a block wait for each other."""
        return barriers(self.mapped.loops.root)

    @property
    def schedule(self) -> str:
        """The schedule tree, mapped, as text."""
        last = "unroll" if isinstance(self.options, CpuOptions) else "place barriers"
        return self.mapped.stage(last).text

    @property
    def steps(self) -> str:
        """The steps of the schedule as rewrite rules, and what is proven of them."""
        return self.mapped.stage("steps").text

    @property
    def proof(self) -> Proof:
        """What was proven of the program."""
        return self.mapped.proof

    def convention(self, interface: Interface) -> Convention:
        """How the kernel is called by callers of ``interface``, the definition's."""
        loops, layouts = self.mapped.loops, self.specialization.layouts
        return Convention(
            interface=interface,
            signature=self.specialization.signature,
            # Of the loops' own layouts, dimensions that lie end to end may be one.
            operands=tuple(Operand(buffer.name, layouts[buffer.name], buffer.writable) for buffer in loops.buffers),
            memory=Memory(self.source.shared_bytes, self.source.scratch_bytes),
            temporaries=tuple(b.layout.span * b.layout.type.itemsize for b in loops.temporaries),
            checks=self.source.checks,
            grids=self.source.grids,
            steps=self.source.steps,
        )


def translate(program: Specialization | Prepared, options: Options, target: Target) -> Compilation:
    """Schedule, map, prove and print a specialized program; needs no C compiler.

    A prepared one is scheduled once per fusion strategy, however often it is translated.
    """
    with _printed(program, options, target) as printed:
        return printed.proven()


@frozen
class Built:
    """A compilation and what came of it; ``stages``: all of them, that of the compiler for the target last."""

    compilation: Compilation
    executable: Executable
    stages: tuple[Stage, ...]


def build(
    program: Specialization | Prepared,
    interface: Interface,
    options: Options,
    target: Target,
    settings: Environment,
    meanwhile: Callable[[], None] | None = None,
) -> Built:
    """``translate``, and the source compiled for its target.

    The compiler works while the loops that were printed are proven, and ``meanwhile`` runs; the stage is what it takes
    from then on.  ``interface``: the definition's, before it was specialized.
    DeviceError if there is no compiler for the target; CompileError with the compiler's log if it refuses the source.
    """
    with _printed(program, options, target) as printed:
        return _built(printed, interface, target, settings, meanwhile)


def build_once(
    program: Specialization | Prepared,
    interface: Interface,
    options: Options,
    target: Target,
    settings: Environment,
    known: Callable[[str], Executable | None],
) -> tuple[str, Executable]:
    """``build``, unless the very source was proven and compiled before: ``known`` says what came of it, by its digest.

    The digest, and the executable.
    """
    with _printed(program, options, target) as printed:
        found = known(printed.source.digest)
        if found is None:
            return printed.source.digest, _built(printed, interface, target, settings).executable
        made = printed.attempt
        return printed.source.digest, replace(found, asked=made.asked, options=made.options, decisions=made.decisions)


def _built(
    printed: _Printed,
    interface: Interface,
    target: Target,
    settings: Environment,
    meanwhile: Callable[[], None] | None = None,
) -> Built:
    toolchain = _toolchain(target, settings)
    if isinstance(target, OpenClTarget):
        _require_opencl_room(printed.source)
    with toolchain.compiling(printed.source.text) as finished:
        compilation = printed.proven()
        if meanwhile is not None:
            meanwhile()
        asks = counts_text(count_kernels(compilation.mapped.loops)) if isinstance(target, CudaTarget) else ""
        binary, seconds = _timed(finished)
    executable = Executable(
        convention=compilation.convention(interface),
        asked=compilation.asked,
        options=compilation.options,
        decisions=compilation.decisions,
        target=target,
        threads=_cores(target),
        source=compilation.source.text,
        schedule=compilation.schedule,
        proof=compilation.proof,
        binary=binary,
        asks=asks,
    )
    stage = Stage("compile", seconds, " ".join(toolchain.flags))
    return Built(compilation, executable, (*compilation.stages, stage))


@frozen
class _Toolchain:
    """How a source becomes a binary: beside other work."""

    compiling: Callable[[str], AbstractContextManager[Callable[[], Binary]]]
    flags: tuple[str, ...]


def compile_source(source: str, target: Target, settings: Environment) -> Binary:
    """An injected source, in the language of the target; errors as of ``build``."""
    with _toolchain(target, settings).compiling(source) as finished:
        return finished()


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


@frozen
class _Printed:
    """The source of loops that are not yet proven."""

    source: KernelSource
    attempt: Attempt
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
            return Compilation(prepared.specialization, target, mapped, source, stages)

        yield _Printed(source, generated.attempt, proven)


def _source(loops: LoopProgram, target: Target) -> KernelSource:
    match target:
        case CpuTarget():
            return c_source(loops, target.vector_bytes, registers=target.vector_registers)
        case EmulatorTarget():
            return emulator_source(loops)
        case CudaTarget():
            source = cuda_source(loops)
            _require_shared(source, target)
            _require_resident(source, target, loops.resident)
            return source
        case OpenClTarget():
            _require_opencl(loops)
            return opencl_source(loops)
        case _:
            assert_never(target)


def _require_opencl(loops: LoopProgram) -> None:
    if loops.resident != 1:
        raise OptionsError("min_blocks_per_multiprocessor cannot be asked for of OpenCL; leave it out")
    called = {part.function for body in loops.bodies for part in walk(body.value) if isinstance(part, Call)}
    if absent := sorted(called & ABSENT_IN_OPENCL):
        raise CompileError(f"{loops.name}: OpenCL C has no {' and no '.join(absent)}; choose another target")


def _require_shared(source: KernelSource, target: CudaTarget) -> None:
    most = target.multiprocessor.block_shared
    for grid in source.grids:
        if grid.shared_bytes > most:
            raise OptionsError(
                f"a block of {grid.name} needs {grid.shared_bytes} bytes of shared memory, {target} has {most}; use "
                "smaller tiles, or say how much there is with GpuOptions(shared_memory=...)"
            )


def _require_resident(source: KernelSource, target: CudaTarget, resident: int) -> None:
    """ptxas ignores what cannot be, or gives threads fewer registers for nothing."""
    for grid in source.grids:
        most = target.multiprocessor.resident(grid.threads, 0, grid.shared_bytes)
        if resident > most:
            raise OptionsError(
                f"min_blocks_per_multiprocessor asks for {counted(resident, 'block')} of {grid.name} on one of "
                f"{target}, which has room for {most} with {counted(grid.threads, 'thread')} and {grid.shared_bytes} "
                "bytes of shared memory each; ask for fewer, or make blocks or tiles smaller"
            )


def _require_opencl_room(source: KernelSource) -> None:
    """Devices differ in what a work-group may have, and say so only when it is launched."""
    device = opencl_device()
    for grid in source.grids:
        if grid.threads > device.threads:
            raise OptionsError(
                f"a block of {grid.name} has {counted(grid.threads, 'thread')}, {device.name!r} allows "
                f"{device.threads}; say how many with GpuOptions(block=..., split_k_threads=...)"
            )
        if grid.shared_bytes > device.shared:
            raise OptionsError(
                f"a block of {grid.name} needs {grid.shared_bytes} bytes of shared memory, {device.name!r} has "
                f"{device.shared}; use smaller tiles, or say how much there is with GpuOptions(shared_memory=...)"
            )


def _machine(target: Target) -> Machine:
    match target:
        case CpuTarget():
            vectors = VectorUnit(target.vector_bytes, target.vector_registers)
            dots = tuple(dot for dot in Dot if {target.march, *target.extensions} & set(dot.features))
            return CpuMachine(vectors, available_threads(), target.streams, dots)
        case CudaTarget():
            return target.gpu
        case EmulatorTarget():
            return GENERIC_GPU
        case OpenClTarget():
            # PoCL 3.0 computes something else with barriers in branches, and corrupts its heap.
            return replace(
                GENERIC_GPU,
                shuffles=False,
                asynchronous_copies=False,
                branches=False,
                matrix_shapes=(),
                warpgroups=False,
                atomic_bytes=frozenset({4}),
                most_threads=GENERIC_GPU.block_threads,
            )
        case _:
            assert_never(target)


def _cores(target: Target) -> int:
    """How many cores the default options are chosen for."""
    machine = _machine(target)
    return machine.cores if isinstance(machine, CpuMachine) else 1


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    started = time.perf_counter()
    made = make()
    return made, time.perf_counter() - started
