"""Where a call runs: whose memory its results are, and how its kernel is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tc.arguments import Arguments
from tc.convention import Convention
from tc.executable import Executable
from tc.fault_report import report_fault
from tc.placement import CudaPlace, check_on_host, cuda_place
from tc.runtime.arrays import allocator, deliver, describe
from tc.runtime.kernel import LoadedKernel
from tc.runtime.threads import get_threads
from tc.runtime.view import Framework
from tc.target import CudaTarget
from tc.types import ScalarType

if TYPE_CHECKING:  # their drivers are not everybody's
    from tc.runtime.cuda import CudaKernel
    from tc.runtime.opencl import OpenClKernel


class Site(Protocol):
    """The place of one call."""

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        """What makes memory for a result; ArgumentError where the caller's framework has no such elements."""

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        """Runs or starts the kernel on its operands; raises what it finds in them."""

    def deliver(self, memory: object, type: ScalarType, /) -> object:
        """What the caller gets for the memory of a result."""


@dataclass(frozen=True, slots=True)
class HostSite:
    """The memory of this machine.  ``most_threads``: of a call, 0 where there is no limit."""

    kernel: LoadedKernel | OpenClKernel
    convention: Convention
    most_threads: int
    framework: Framework

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        return allocator(self.framework, shape, type)

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        fault = self.kernel.launch(addresses, scalars, min(self.most_threads or get_threads(), get_threads()))
        if fault:
            report_fault(self.convention, fault)

    def deliver(self, memory: object, type: ScalarType) -> object:
        return deliver(memory, self.framework, type)


@dataclass(frozen=True, slots=True)
class CudaSite:
    """The memory of a GPU; nothing waits for what runs there."""

    kernel: CudaKernel
    place: CudaPlace
    bound: Arguments

    def allocator(self, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
        from tc.runtime.cuda_arrays import cuda_allocator

        return cuda_allocator(self.bound.framework, shape, type, self.place.memory, self._like())

    def _like(self) -> object:
        """An array of the caller's framework, whose allocator is the caller's."""
        return next((view.owner for view in self.bound.views if view.framework is self.bound.framework), None)

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float]) -> None:
        from tc.runtime.cuda_arrays import cuda_workspace, held

        # Exporters may use the memory anew once they get it back, and others once their own stream has got there.
        leases = [view.lease for view in self.bound.views if view.lease is not None]
        if not self.place.ordered:
            leases += [view.owner for view in self.bound.views]
        begin = 0
        if self.kernel.workspace:
            workspace = cuda_workspace(self.bound.framework, self.kernel.workspace, self.place.memory, self._like())
            view = describe(workspace, "a workspace")
            begin = view.address
            if view.framework is Framework.PYCUDA:  # whose allocators know nothing of streams
                leases.append(workspace)
        kept = held(leases, {view.framework for view in self.bound.views}, self.place.memory.device)
        self.kernel.launch(addresses, begin, scalars, self.place.memory, self.place.others, kept)

    def deliver(self, memory: object, _type: ScalarType) -> object:
        from tc.runtime.cuda_arrays import deliver_cuda

        return deliver_cuda(memory, self.bound.framework)


def site_of(kernel: LoadedKernel | OpenClKernel | CudaKernel, executable: Executable, bound: Arguments) -> Site:
    """Where a call of a loaded executable runs; DeviceError, naming arrays, unless they lie there."""
    convention, target = executable.convention, executable.target
    if isinstance(target, CudaTarget):
        from tc.runtime.cuda import CudaKernel

        assert isinstance(kernel, CudaKernel)
        return CudaSite(kernel, cuda_place(bound, convention.interface, target), bound)
    check_on_host(bound, convention.interface, target)
    if not isinstance(kernel, LoadedKernel):
        from tc.runtime.opencl import OpenClKernel

        assert isinstance(kernel, OpenClKernel)
    return HostSite(kernel, convention, executable.most_threads, bound.framework)
