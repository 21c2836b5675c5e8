"""``Kernel``: a definition compiled for one signature, ready to be called on arrays."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tc.artifact.convention import Convention
from tc.artifact.executable import Executable, load
from tc.artifact.fault_report import report_fault
from tc.artifact.resources import Resources
from tc.base.decision import Decision
from tc.base.errors import ArgumentError, DeviceError
from tc.base.proof import Proof
from tc.base.stage import Stage
from tc.dispatch.arguments import Arguments, bind, in_order
from tc.dispatch.sites import CudaSite, Site, site_of
from tc.dispatch.warm import Plan, WarmCalls
from tc.dispatch.warm_cuda import CudaPlan
from tc.language.program.specialization import Layout, Signature
from tc.runtime.frameworks.arrays import address_of, announcer
from tc.runtime.frameworks.fingerprint import fingerprint_function
from tc.runtime.host.threads import get_threads
from tc.runtime.host_program import HostProgram, Step, Word
from tc.runtime.loaded_kernel import LoadedKernel
from tc.runtime.views.view import Framework
from tc.targets.options import Options
from tc.targets.target import CudaTarget, Target

if TYPE_CHECKING:  # kernels that come from the cache have no compiler in their process
    from tc.compiler import Compilation
    from tc.prediction.machine_code import MachineLoop
    from tc.prediction.prediction import Prediction
    from tc.runtime.cuda.cuda import CudaKernel
    from tc.runtime.opencl.opencl import OpenClKernel


class Kernel:
    """A comprehension compiled for one signature; immutable, and safe to call from many threads."""

    def __init__(
        self, executable: Executable, stages: tuple[Stage, ...] = (), compilation: Compilation | None = None
    ) -> None:
        self._executable = executable
        self._compilation = compilation
        self._warm = WarmCalls()
        # A kernel for another processor can be made and read here, but not called.
        self._loaded: LoadedKernel | OpenClKernel | CudaKernel | DeviceError
        loading: tuple[Stage, ...] = ()
        started = time.perf_counter()
        try:
            self._loaded = load(executable)
            loading = (Stage("load", time.perf_counter() - started, ""),)
        except DeviceError as error:
            self._loaded = error
        self.stages: tuple[Stage, ...] = (*stages, *loading)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}[{', '.join(self.signature.extents(name))}]" for name, _ in self.signature.arguments)
        return f"<tc.Kernel {self._convention.interface.name}({shapes}) for {self.target}>"

    @property
    def executable(self) -> Executable:
        """The kernel as plain data."""
        return self._executable

    @property
    def compilation(self) -> Compilation | None:
        """How the kernel came about; None if it comes from the cache."""
        return self._compilation

    @property
    def _convention(self) -> Convention:
        return self._executable.convention

    @property
    def signature(self) -> Signature:
        """The dtypes, shapes, strides and scalar values that the kernel is made for."""
        return self._convention.signature

    @property
    def source(self) -> str:
        """The C source, or that of the target."""
        return self._executable.source

    @property
    def schedule(self) -> str:
        """The schedule tree, mapped, as text."""
        return self._executable.schedule

    @property
    def options(self) -> Options:
        """What the kernel is really made with; see ``decisions``."""
        return self._executable.options

    @property
    def asked(self) -> Options:
        """The options that were asked for: those of the call, or of the search or the defaults in their place."""
        return self._executable.asked

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Where ``options`` differs from ``asked``, and why; and what was decided that no option says anything of."""
        return self._executable.decisions

    @property
    def target(self) -> Target:
        """The machine that the kernel is made for."""
        return self._executable.target

    @property
    def proof(self) -> Proof:
        """What was proven of the generated loops."""
        return self._executable.proof

    @property
    def predicted(self) -> Prediction | None:
        """The time of a call on the usual GPU of the target's architecture, from its loops; None for other targets."""
        return self._executable.predicted

    @property
    def hot_loops(self) -> tuple[MachineLoop | None, ...]:
        """The loop with most arithmetic in the machine code of each kernel of an NVIDIA GPU; None where it has none."""
        return self._executable.hot_loops

    @property
    def resources(self) -> Resources:
        """What a call takes of the machine: memory, and on GPUs registers, shared memory and occupancy."""
        return self._executable.resources

    def __call__(self, /, *arguments: object, out: object = None, **named: object) -> object:
        """Run on arrays of exactly the kernel's signature, or of one that it covers; ArgumentError for any other.

        Returns one array, or a tuple in the order of the definition's results.
        """
        if named:
            arguments = in_order(self._convention.interface, arguments, named)
        result = self._warm.call(arguments, out)
        if result is not None:
            return result
        interface = self._convention.interface
        bound = bind(interface, arguments, out)
        found = bound.signature(interface)
        if self.sizes(found) is None:
            raise ArgumentError(
                f"this kernel of {interface.name} is compiled for {_describe(self.signature)}, got {_describe(found)}; "
                "compile another one, or call the definition itself"
            )
        result = self.run(bound)
        plan = self.plan(bound)
        if plan is not None:
            self._warm.remember(arguments, out, plan)
        return result

    def sizes(self, call: Signature) -> tuple[int, ...] | None:
        """The values of the symbolic sizes in a call with this signature; None if the kernel is not for such calls."""
        return self.signature.sizes_of(call)

    def run(self, bound: Arguments) -> object:
        """Run on arguments that the kernel is for; results that the caller did not bring are allocated."""
        interface, sizes, site = self._convention.interface, self._sizes(bound), self._site(bound)
        memory: dict[str, object] = {name: view.owner for name, view in bound.outputs.items()}
        addresses = {name: view.address for name, view in (*bound.inputs.items(), *bound.outputs.items())}
        for name, view in bound.outputs.items():
            shape = self.layout(name).at(sizes).shape
            if view.shape != shape:
                raise ArgumentError(f"output {name} of {interface.name}: expected shape {shape}, got {view.shape}")
        names = [operand.name for operand in self._convention.operands]
        for name in names:
            if name not in addresses:
                memory[name] = self._allocator(name, bound, site)()
                addresses[name] = address_of(memory[name])
        scalars = [*(bound.scalars[scalar.name] for scalar in interface.scalars), *sizes]
        for view in bound.outputs.values():
            tell = announcer(view.framework)
            if tell is not None:
                tell(view.owner)
        site.launch([addresses[name] for name in names], scalars)
        results = tuple(
            memory[name] if name in bound.outputs else site.deliver(memory[name], self.layout(name).type)
            for name in interface.results
        )
        return results[0] if len(results) == 1 else results

    @property
    def loaded(self) -> LoadedKernel | OpenClKernel | CudaKernel:
        """The kernel in this process; DeviceError if this machine cannot run it."""
        if isinstance(self._loaded, DeviceError):
            # An exception that is raised again collects the traceback of every call.
            raise DeviceError(str(self._loaded))
        return self._loaded

    def _site(self, bound: Arguments) -> Site:
        """Where a call runs; DeviceError unless the kernel and the arrays can be there."""
        return site_of(self.loaded, self._executable, bound)

    def layout(self, name: str) -> Layout:
        """Where the elements of an argument or result lie, with the greatest symbolic sizes."""
        return self._convention.layout(name)

    def _sizes(self, bound: Arguments) -> tuple[int, ...]:
        places = (size.places[0] for size in self.signature.symbolic)
        return tuple(bound.inputs[name].shape[dimension] for name, dimension in places)

    def _allocator(self, name: str, bound: Arguments, site: Site) -> Callable[[], object]:
        layout = self.layout(name)
        return site.allocator(layout.at(self._sizes(bound)).shape, layout.type)

    def plan(self, bound: Arguments) -> Plan | CudaPlan | None:
        """How calls like this one are repeated; None where a scalar is passed or a result is converted."""
        interface, outputs, loaded = self._convention.interface, bound.outputs, self._loaded
        if interface.scalars or bound.framework is Framework.JAX:
            return None
        if isinstance(self.target, CudaTarget):
            return self._cuda_plan(bound)
        if not isinstance(loaded, LoadedKernel):
            return None
        names, site = interface.names, self._site(bound)
        step = self.step({name: Word(slot, 0) for slot, name in enumerate(names)}, self._sizes(bound))
        return Plan(
            program=HostProgram((step,), len(names)),
            element_sizes=tuple(interface.tensor(name).type.itemsize for name in names),
            allocate=tuple(
                None if name in outputs else self._allocator(name, bound, site) for name in interface.results
            ),
            announce=tuple(
                announcer(outputs[name].framework) if name in outputs else None for name in interface.results
            ),
            threads=get_threads,
        )

    def step(self, places: Mapping[str, Word], sizes: Sequence[int] = ()) -> Step:
        """The kernel in a program of this machine: ``places`` of its operands by name, its symbolic ``sizes``.

        DeviceError if this machine cannot run it.
        """
        loaded, convention = self.loaded, self._convention
        assert isinstance(loaded, LoadedKernel)
        words = tuple(places[operand.name] for operand in convention.operands)
        return Step(
            address=loaded.address,
            needs=loaded.memory,
            words=(*words, *map(Word.number, sizes)),
            buffers=len(words),
            most_threads=self._executable.most_threads,
            report=functools.partial(report_fault, convention),
        )

    def _cuda_plan(self, bound: Arguments) -> CudaPlan | None:
        if any(fingerprint_function(type(view.owner)) is None for view in bound.views):
            return None
        from tc.dispatch.cuda_plan import cuda_plan

        site = self._site(bound)
        assert isinstance(site, CudaSite)
        return cuda_plan(site, self._convention, bound, self._sizes(bound))


def _describe(signature: Signature) -> str:
    parts = [
        f"{name}: {spec.dtype}[{', '.join(signature.extents(name))}]"
        + (f" strides {spec.strides}" if spec.strides is not None else "")
        for name, spec in (*signature.arguments, *signature.results)
    ]
    parts += [f"{name} = {value}" for name, value in signature.scalars]
    parts += [f"{output} is {input}" for output, input in signature.aliases]
    return ", ".join(parts) or "no arguments"
