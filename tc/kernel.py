"""``Kernel``: a definition compiled for one signature, ready to be called on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tc.arguments import Arguments, bind
from tc.compiler import Compilation, build, load
from tc.environment import Environment
from tc.errors import ArgumentError, DeviceError
from tc.language.specialization import Layout, Signature, Specialization
from tc.options import CpuOptions
from tc.polyhedral.pipeline import Stage
from tc.polyhedral.verify import Proof
from tc.runtime.arrays import allocator, announce_write, deliver, fast_address
from tc.runtime.kernel import LoadedKernel
from tc.runtime.threads import get_threads
from tc.runtime.view import Framework
from tc.target import CpuTarget


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes beyond its arguments and results, in bytes.

    ``temporaries``: memory that the threads of a call share; ``scratch``: memory of each thread, for packed operands.
    ``binary``: the compiled code.
    """

    temporaries: int
    scratch: int
    binary: int


class Kernel:
    """A comprehension compiled for one signature; immutable, and safe to call from many threads."""

    def __init__(self, compilation: Compilation, structural: frozenset[str], settings: Environment) -> None:
        binary, building = build(compilation, settings)
        self._compilation = compilation
        self._structural = structural
        self._binary_size = len(binary)
        # A kernel for another processor can be made and read here, but not called.
        self._loaded: LoadedKernel | DeviceError
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
    def source(self) -> str:
        """The C source."""
        return self._compilation.source.text

    @property
    def schedule(self) -> str:
        """The schedule tree, mapped, as text."""
        return self._compilation.mapped.stage("unroll").text

    @property
    def options(self) -> CpuOptions:
        return self._compilation.options

    @property
    def target(self) -> CpuTarget:
        return self._compilation.target

    @property
    def proof(self) -> Proof:
        """What was proven of the generated loops."""
        return self._compilation.proof

    @property
    def resources(self) -> Resources:
        memory = self._compilation.memory
        return Resources(memory.shared, memory.scratch, self._binary_size)

    def __call__(self, *arguments: object, out: object = None) -> object:
        """Run on arrays of exactly the kernel's signature; ArgumentError for any other.

        Returns one array, or a tuple in the order of the definition's results.
        """
        program = self._compilation.specialization.program
        bound = bind(program, arguments, out)
        found = bound.signature(program, self._structural)
        if found != self.signature:
            raise ArgumentError(
                f"this kernel of {program.name} is compiled for {_describe(self.signature)}, got {_describe(found)}; "
                "compile another one, or call the definition itself"
            )
        return self.run(bound)

    def run(self, bound: Arguments) -> object:
        """Run on arguments that have the kernel's signature; results that the caller did not bring are allocated."""
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
                memory[name] = self._allocate(name, bound.framework)()
                addresses[name] = fast_address(memory[name])
        scalars = [bound.scalars[scalar.name] for scalar in program.scalars]
        for view in bound.outputs.values():
            announce_write(view)
        self._launch([addresses[name] for name in self._compilation.tensors], scalars)
        results = tuple(self._deliver(name, memory[name], bound) for name in program.results)
        return results[0] if len(results) == 1 else results

    def _deliver(self, name: str, memory: object, bound: Arguments) -> object:
        if name in bound.outputs:
            return memory
        return deliver(memory, bound.framework, self.layout(name).type)

    def layout(self, name: str) -> Layout:
        """Where the elements of a tensor or temporary lie."""
        loops = self._compilation.mapped.loops
        return next(b.layout for b in (*loops.buffers, *loops.temporaries) if b.name == name)

    def _allocate(self, name: str, framework: Framework) -> Callable[[], object]:
        layout = self.layout(name)
        return allocator(framework, layout.shape, layout.type)

    def _launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        if isinstance(self._loaded, DeviceError):
            # An exception that is raised again collects the traceback of every call.
            raise DeviceError(str(self._loaded))
        fault = self._loaded.launch(addresses, scalars, self._threads())
        if fault:
            self._report(fault)

    def _threads(self) -> int:
        chosen = self.options.threads
        return min(chosen, get_threads()) if chosen else get_threads()

    def _report(self, fault: int) -> None:
        check = self._compilation.checks[fault - 1]
        name = self._compilation.specialization.program.name
        raise ArgumentError(
            f"{name}: an index into dimension {check.dimension} of {check.tensor} is outside of 0:{check.extent} "
            f"(statement {check.statement}); the results are undefined"
        )

    def fast_path(self, framework: Framework, tensors: Sequence[int]) -> Callable[[Sequence[object]], object] | None:
        """A function of the call's arguments for repeated calls whose arrays are known to fit the kernel.

        ``tensors``: positions of the tensor arguments.  None where a result must be brought, converted or shared, or a
        scalar passed.
        """
        program = self._compilation.specialization.program
        loaded = self._loaded
        given = [program.arguments[position] for position in tensors]
        fresh = [name for name in self._compilation.tensors if name not in given]
        if (
            isinstance(loaded, DeviceError)
            or framework is Framework.JAX
            or program.scalars
            or fresh != list(program.results)
            or [*given, *fresh] != list(self._compilation.tensors)
        ):
            return None
        allocate = [self._allocate(name, framework) for name in fresh]
        single = len(fresh) == 1
        launch, threads, report = loaded.launch, self._threads, self._report

        def run(arguments: Sequence[object]) -> object:
            memory = [make() for make in allocate]
            fault = launch([*map(fast_address, arguments), *map(fast_address, memory)], (), threads())
            if fault:
                report(fault)
            return memory[0] if single else tuple(memory)

        return run


def _describe(signature: Signature) -> str:
    parts = [
        f"{name}: {spec.dtype}{list(spec.shape)}" + (f" strides {spec.strides}" if spec.strides is not None else "")
        for name, spec in (*signature.arguments, *signature.results)
    ]
    parts += [f"{name} = {value}" for name, value in signature.scalars]
    parts += [f"{output} is {input}" for output, input in signature.aliases]
    return ", ".join(parts) or "no arguments"
