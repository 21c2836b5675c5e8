"""``Kernel``: a definition compiled for one signature, ready to be called on arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tc.arguments import Arguments, bind
from tc.codegen.expressions import DIVERGED, OUTSIDE
from tc.compiler import Compilation, load
from tc.errors import ArgumentError, DeviceError
from tc.grid import GridKernel
from tc.language.specialization import Layout, Signature, Specialization
from tc.options import CpuOptions, Options
from tc.polyhedral.pipeline import Stage
from tc.polyhedral.verify import Proof
from tc.runtime.arrays import address_of, allocator, announcer, deliver
from tc.runtime.binary import Binary, KernelUse
from tc.runtime.kernel import NO_MEMORY, LoadedKernel
from tc.runtime.opencl import OpenClKernel
from tc.runtime.threads import get_threads
from tc.runtime.view import Framework
from tc.runtime.warm import Plan, WarmCalls
from tc.target import CudaTarget, Target


@dataclass(frozen=True, slots=True)
class GridResources:
    """What one kernel of a GPU takes: blocks and threads along x, y and z, and what the assembler says of it.

    ``registers``: of a thread.  ``stack``, ``spill_stores``, ``spill_loads``: bytes of a thread's local memory.
    ``shared``: bytes of a block's shared memory.  ``occupancy``: the share of a multiprocessor's warps that blocks of
    this kernel can fill.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int
    occupancy: float


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes beyond its arguments and results, in bytes.

    ``temporaries``: memory that the threads of a call share; ``scratch``: memory of each thread, for packed operands.
    ``binary``: the compiled code.  ``grids``: what the kernels of a GPU take, in the order in which they run.
    """

    temporaries: int
    scratch: int
    binary: int
    grids: tuple[GridResources, ...] = ()


class Kernel:
    """A comprehension compiled for one signature; immutable, and safe to call from many threads."""

    def __init__(self, compilation: Compilation, binary: Binary, building: Stage, structural: frozenset[str]) -> None:
        self._compilation = compilation
        self._structural = structural
        self._resources = _resources(compilation, binary)
        self._warm = WarmCalls()
        # A kernel for another processor can be made and read here, but not called.
        self._loaded: LoadedKernel | OpenClKernel | DeviceError
        loading: tuple[Stage, ...] = ()
        try:
            self._loaded, stage = load(compilation, binary)
            loading = (stage,)
        except DeviceError as error:
            self._loaded = error
        self.stages: tuple[Stage, ...] = (*compilation.stages, building, *loading)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(spec.shape)}" for name, spec in self.signature.arguments)
        return f"<tc.Kernel {self._compilation.specialization.program.name}({shapes}) for {self.target}>"

    @property
    def signature(self) -> Signature:
        """The dtypes, shapes, strides and scalar values that the kernel is made for."""
        return self._compilation.specialization.signature

    @property
    def specialization(self) -> Specialization:
        """The program that the kernel runs, its sizes settled."""
        return self._compilation.specialization

    @property
    def buffers(self) -> tuple[str, ...]:
        """Tensors in the order of the kernel's parameters, then temporaries."""
        return (*self._compilation.tensors, *(b.name for b in self._compilation.mapped.loops.temporaries))

    @property
    def barriers(self) -> frozenset[str]:
        """Statements of the schedule at which the threads of a block wait for each other."""
        return self._compilation.mapped.loops.barriers

    @property
    def source(self) -> str:
        """The C source."""
        return self._compilation.source.text

    @property
    def schedule(self) -> str:
        """The schedule tree, mapped, as text."""
        last = "unroll" if isinstance(self.options, CpuOptions) else "place barriers"
        return self._compilation.mapped.stage(last).text

    @property
    def options(self) -> Options:
        return self._compilation.options

    @property
    def target(self) -> Target:
        return self._compilation.target

    @property
    def proof(self) -> Proof:
        """What was proven of the generated loops."""
        return self._compilation.proof

    @property
    def resources(self) -> Resources:
        return self._resources

    def __call__(self, *arguments: object, out: object = None) -> object:
        """Run on arrays of exactly the kernel's signature; ArgumentError for any other.

        Returns one array, or a tuple in the order of the definition's results.
        """
        result = self._warm.call(arguments, out)
        if result is not None:
            return result
        program = self._compilation.specialization.program
        bound = bind(program, arguments, out)
        found = bound.signature(program, self._structural)
        if found != self.signature:
            raise ArgumentError(
                f"this kernel of {program.name} is compiled for {_describe(self.signature)}, got {_describe(found)}; "
                "compile another one, or call the definition itself"
            )
        result = self.run(bound)
        plan = self.plan(bound)
        if plan is not None:
            self._warm.remember(arguments, out, plan)
        return result

    def run(self, bound: Arguments) -> object:
        """Run on arguments that have the kernel's signature; results that the caller did not bring are allocated."""
        if isinstance(self._loaded, DeviceError):
            # An exception that is raised again collects the traceback of every call.
            raise DeviceError(str(self._loaded))
        program = self._compilation.specialization.program
        memory: dict[str, object] = {name: view.owner for name, view in bound.outputs.items()}
        addresses = {name: view.address for name, view in (*bound.inputs.items(), *bound.outputs.items())}
        for name, view in bound.outputs.items():
            if view.shape != self.layout(name).shape:
                raise ArgumentError(
                    f"output {name} of {program.name}: expected shape {self.layout(name).shape}, got {view.shape}"
                )
        for name in self._compilation.tensors:
            if name not in addresses:
                memory[name] = self._allocator(name, bound.framework)()
                addresses[name] = address_of(memory[name])
        scalars = [bound.scalars[scalar.name] for scalar in program.scalars]
        for view in bound.outputs.values():
            tell = announcer(view.framework)
            if tell is not None:
                tell(view.owner)
        threads = min(self._most_threads or get_threads(), get_threads())
        fault = self._loaded.launch([addresses[name] for name in self._compilation.tensors], scalars, threads)
        if fault:
            _report(self._compilation, fault)
        results = tuple(self._deliver(name, memory[name], bound) for name in program.results)
        return results[0] if len(results) == 1 else results

    @property
    def _most_threads(self) -> int:
        """The most threads of a call; 0 where there is no limit."""
        return self.options.threads if isinstance(self.options, CpuOptions) else 1

    def _deliver(self, name: str, memory: object, bound: Arguments) -> object:
        if name in bound.outputs:
            return memory
        return deliver(memory, bound.framework, self.layout(name).type)

    def layout(self, name: str) -> Layout:
        """Where the elements of a tensor or temporary lie."""
        loops = self._compilation.mapped.loops
        return next(b.layout for b in (*loops.buffers, *loops.temporaries) if b.name == name)

    def _allocator(self, name: str, framework: Framework) -> Callable[[], object]:
        layout = self.layout(name)
        return allocator(framework, layout.shape, layout.type)

    def plan(self, bound: Arguments) -> Plan | None:
        """How calls like this one are repeated; None where a scalar is passed or a result is converted."""
        program, outputs = self._compilation.specialization.program, bound.outputs
        loaded = self._loaded
        if not isinstance(loaded, LoadedKernel) or program.scalars or bound.framework is Framework.JAX:
            return None
        slots = (*program.arguments, *program.results)
        return Plan(
            kernel=loaded,
            element_sizes=tuple(program.tensor(name).type.itemsize for name in slots),
            sources=tuple(slots.index(name) for name in self._compilation.tensors),
            allocate=tuple(
                None if name in outputs else self._allocator(name, bound.framework) for name in program.results
            ),
            announce=tuple(announcer(outputs[name].framework) if name in outputs else None for name in program.results),
            threads=get_threads,
            most_threads=self._most_threads,
            report=functools.partial(_report, self._compilation),
        )


def _resources(compilation: Compilation, binary: Binary) -> Resources:
    memory, target = compilation.memory, compilation.target
    if not isinstance(target, CudaTarget):
        return Resources(memory.shared, memory.scratch, len(binary.code))
    grids = (_grid_resources(grid, binary.kernels[grid.name], target) for grid in compilation.source.grids)
    return Resources(memory.shared, memory.scratch, len(binary.code), tuple(grids))


def _grid_resources(grid: GridKernel, use: KernelUse, target: CudaTarget) -> GridResources:
    occupancy = target.multiprocessor.occupancy(grid.threads, use.registers, grid.shared_bytes)
    return GridResources(
        name=grid.name,
        grid=grid.grid,
        block=grid.block,
        registers=use.registers,
        stack=use.stack,
        spill_stores=use.spill_stores,
        spill_loads=use.spill_loads,
        shared=grid.shared_bytes,
        occupancy=occupancy,
    )


def _report(compilation: Compilation, fault: int) -> NoReturn:
    name = compilation.specialization.program.name
    if fault == NO_MEMORY:
        memory = compilation.memory
        raise MemoryError(
            f"{name}: no memory for temporaries ({memory.shared} bytes) and packed operands ({memory.scratch} bytes "
            "for every thread); use fewer threads or smaller tiles"
        )
    if fault in (DIVERGED, OUTSIDE):
        wrong = "threads of a block wait at different barriers" if fault == DIVERGED else "an access left its buffer"
        raise DeviceError(f"{name}: {wrong}; the compiler made a mistake, please report it with the definition")
    check = compilation.checks[fault - 1]
    raise ArgumentError(
        f"{name}: an index into dimension {check.dimension} of {check.tensor} is outside of 0:{check.extent} "
        f"(statement {check.statement}); the results are undefined"
    )


def _describe(signature: Signature) -> str:
    parts = [
        f"{name}: {spec.dtype}{list(spec.shape)}" + (f" strides {spec.strides}" if spec.strides is not None else "")
        for name, spec in (*signature.arguments, *signature.results)
    ]
    parts += [f"{name} = {value}" for name, value in signature.scalars]
    parts += [f"{output} is {input}" for output, input in signature.aliases]
    return ", ".join(parts) or "no arguments"
