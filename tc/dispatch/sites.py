"""Sites of calls: the device and stream, how results are allocated, and how the kernel is launched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tc.artifact.convention import Convention
from tc.artifact.executable import Executable
from tc.artifact.fault_report import report_fault
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.dispatch.arguments import Arguments
from tc.dispatch.array_placement import CudaPlace, check_on_host, cuda_place
from tc.runtime.frameworks.arrays import allocator, deliver, describe
from tc.runtime.host.threads import get_threads
from tc.runtime.loaded_kernel import LoadedKernel
from tc.runtime.views.view import CudaMemory, Framework, Stream
from tc.targets.target import CudaTarget

if TYPE_CHECKING:  # their drivers are not everybody's
    from tc.runtime.cuda.cuda import CudaKernel
    from tc.runtime.opencl.opencl import OpenClKernel


class Site(Protocol):
    """The place of one call."""

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        """What makes memory for a result; ArgumentError where the caller's framework has no such elements."""

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        """Runs or starts the kernel on its operands; raises what it finds in them."""

    def deliver(self, memory: object, type: ScalarType, /) -> object:
        """What the caller gets for the memory of a result."""


@frozen
class HostSite:
    """The memory of this machine.  ``most_threads``: of a call, 0 where there is no limit."""

    kernel: LoadedKernel | OpenClKernel
    convention: Convention
    most_threads: int
    framework: Framework

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        """What makes memory for a result; ArgumentError where the caller's framework has no such elements."""
        return allocator(self.framework, shape, type)

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        """Runs or starts the kernel on its operands; raises what it finds in them."""
        fault = self.kernel.launch(addresses, scalars, min(self.most_threads or get_threads(), get_threads()))
        if fault:
            report_fault(self.convention, fault)

    def deliver(self, memory: object, type: ScalarType) -> object:
        """What the caller gets for the memory of a result."""
        return deliver(memory, self.framework, type)


class CudaLauncher(Protocol):
    """A kernel that is ready for GPUs, or many."""

    @property
    def workspace(self) -> int:
        """Bytes of memory that a call needs beyond its arrays."""

    def launch(
        self,
        addresses: Sequence[int],
        workspace: int,
        scalars: Sequence[int | float],
        memory: CudaMemory,
        after: Sequence[Stream],
        leases: Sequence[object],
        /,
    ) -> None:
        """As ``CudaKernel.launch``."""


@frozen
class CudaSite:
    """The memory of a GPU; nothing waits for what runs there.

    ``framework``: whose kind results are; ``frameworks``: those of all arrays.  ``like``: an array of the first one,
    whose allocator is the caller's.  ``leases``: what must be there until the kernel has run.
    """

    kernel: CudaLauncher
    place: CudaPlace
    framework: Framework
    frameworks: frozenset[Framework]
    like: object
    leases: tuple[object, ...]

    def at(self, stream: Stream, like: object, leases: tuple[object, ...]) -> CudaSite:
        """That of another call, whose arrays are of the same kind and lie on the same device."""
        place = CudaPlace(CudaMemory(self.place.memory.device, stream))
        return CudaSite(self.kernel, place, self.framework, self.frameworks, like, leases)

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        """What makes memory for a result; ArgumentError where the caller's framework has no such elements."""
        from tc.runtime.frameworks.cuda_arrays import cuda_allocator

        return cuda_allocator(self.framework, shape, type, self.place.memory, self.like)

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        """Runs or starts the kernel on its operands; raises what it finds in them."""
        memory, leases, begin = self.place.memory, self.leases, 0
        if self.kernel.workspace:
            from tc.runtime.frameworks.cuda_arrays import cuda_workspace

            workspace = cuda_workspace(self.framework, self.kernel.workspace, memory, self.like)
            view = describe(workspace, "a workspace")
            begin = view.address
            if view.framework is Framework.PYCUDA:  # whose allocators know nothing of streams
                leases = (*leases, workspace)
        if leases:
            from tc.runtime.frameworks.cuda_arrays import held

            leases = tuple(held(leases, self.frameworks, memory.device))
        self.kernel.launch(addresses, begin, scalars, memory, self.place.others, leases)

    def deliver(self, memory: object, _type: ScalarType) -> object:
        """What the caller gets for the memory of a result."""
        from tc.runtime.frameworks.cuda_arrays import deliver_cuda

        return deliver_cuda(memory, self.framework)


def site_of(kernel: LoadedKernel | OpenClKernel | CudaKernel, executable: Executable, bound: Arguments) -> Site:
    """Where a call of a loaded executable runs; DeviceError, naming arrays, unless they lie there."""
    convention, target = executable.convention, executable.target
    if isinstance(target, CudaTarget):
        from tc.runtime.cuda.cuda import CudaKernel

        assert isinstance(kernel, CudaKernel)
        return cuda_site(kernel, cuda_place(bound, convention.interface.name, target), bound)
    check_on_host(bound, convention.interface.name, target)
    if not isinstance(kernel, LoadedKernel):
        from tc.runtime.opencl.opencl import OpenClKernel

        assert isinstance(kernel, OpenClKernel)
    return HostSite(kernel, convention, executable.most_threads, bound.framework)


def cuda_site(kernel: CudaLauncher, place: CudaPlace, bound: Arguments) -> CudaSite:
    """Where a call runs whose arrays are on a GPU."""
    # Exporters may use the memory anew once they get it back, and others once their own stream has got there.
    leases = [view.lease for view in bound.views if view.lease is not None]
    if not place.ordered:
        leases += [view.owner for view in bound.views]
    like = next((view.owner for view in bound.views if view.framework is bound.framework), None)
    frameworks = frozenset(view.framework for view in bound.views)
    return CudaSite(kernel, place, bound.framework, frameworks, like, tuple(leases))
