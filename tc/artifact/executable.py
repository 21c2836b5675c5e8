"""``Executable``: a compiled kernel as plain data, which the cache keeps and any process can load."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tc.artifact.convention import Convention
from tc.artifact.fault_report import report_fault
from tc.artifact.resources import Resources, resources_of
from tc.base.decision import Decision
from tc.base.errors import DeviceError
from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.proof import Proof
from tc.base.types import ScalarType
from tc.runtime.host.binary import Binary
from tc.runtime.host.libc import check_libc, required_libc
from tc.runtime.host.pool import shared_pool
from tc.runtime.loaded_kernel import LoadedKernel, load_kernel
from tc.targets.options import CpuOptions, Options
from tc.targets.target import CudaTarget, OpenClTarget, Target, check_runs, processor

if TYPE_CHECKING:  # their drivers are not everybody's, nor are predictions
    from tc.prediction.machine_code import MachineLoop
    from tc.prediction.prediction import Prediction
    from tc.runtime.cuda.cuda import CudaKernel
    from tc.runtime.opencl.opencl import OpenClKernel
    from tc.targets.devices import Device


@frozen
class Executable:
    """All that calls of a kernel need, and what can be told of it without the compiler.

    ``asked``: the options that were asked for, ``options``: what the kernel is really made with, ``decisions``: where
    they differ, and why.  ``threads``: how many the default options were chosen for; 1 where the target runs grids.
    ``asks``: what the kernels ask of an NVIDIA GPU, as ``counts_text`` writes it, which is read when it is needed.
    """

    convention: Convention
    asked: Options
    options: Options
    decisions: tuple[Decision, ...]
    target: Target
    threads: int
    source: str
    schedule: str
    proof: Proof
    binary: Binary
    asks: str = ""

    @property
    def most_threads(self) -> int:
        """The most threads of a call; 0 where there is no limit."""
        return self.options.threads if isinstance(self.options, CpuOptions) else 1

    @property
    def resources(self) -> Resources:
        """What a call takes of the machine."""
        return resources_of(self.convention.memory, self.convention.grids, self.binary, self.target)

    @property
    def predicted(self) -> Prediction | None:
        """The time of a call on the usual GPU of the architecture; None for other targets."""
        from tc.targets.devices import DEVICES, USUAL

        if not self.asks or not isinstance(self.target, CudaTarget):
            return None
        device = DEVICES.get(USUAL.get(self.target.architecture, ""))
        return None if device is None else self.predicted_on(device)

    def predicted_on(self, device: Device, *, cold: bool = True) -> Prediction:
        """The time of a call on a device; ``cold``: whether its caches hold nothing that the call reads."""
        from tc.prediction.counts import counts_of
        from tc.prediction.predict import Use, predict

        grids = self.resources.grids
        return predict(counts_of(self.asks), device, [Use(grid.registers) for grid in grids], cold=cold)

    @property
    def hot_loops(self) -> tuple[MachineLoop | None, ...]:
        """The loop with most arithmetic in the machine code of each kernel of an NVIDIA GPU; None where it has none."""
        from tc.prediction.machine_code import hot_loop

        if not isinstance(self.target, CudaTarget):
            return ()
        code, architecture = self.binary.code, self.target.architecture
        return tuple(hot_loop(code, grid.name, architecture) for grid in self.convention.grids)

    def renamed(self, interface: Interface) -> Executable:
        """The same for a definition that differs in names only; the source keeps its names."""
        return replace(self, convention=self.convention.renamed(interface))


def load(executable: Executable) -> LoadedKernel | OpenClKernel | CudaKernel:
    """The kernel in this process; DeviceError if this machine cannot run its target."""
    convention, binary = executable.convention, executable.binary
    scalars = [scalar.type for scalar in convention.interface.scalars]
    scalars += [ScalarType.INT64 for _ in convention.signature.symbolic]
    if isinstance(executable.target, CudaTarget):
        return _load_cuda(executable, executable.target, scalars)
    if isinstance(executable.target, OpenClTarget):
        from tc.runtime.opencl.opencl import Extent, OpenClKernel

        extents = []
        for operand in convention.operands:
            offsets, size = operand.layout.offsets, operand.layout.type.itemsize
            extents.append(Extent(offsets.start * size, len(offsets) * size, operand.writable))
        return OpenClKernel(binary, convention.grids, convention.steps, extents, convention.temporaries, scalars)
    check_runs(executable.target, processor())
    check_libc(required_libc(binary.code))
    return load_kernel(binary.code, len(convention.operands), scalars, shared_pool(), convention.memory)


def _load_cuda(executable: Executable, target: CudaTarget, scalars: Sequence[ScalarType]) -> CudaKernel:
    from tc.runtime.cuda.cuda import CudaKernel

    convention = executable.convention
    try:
        return CudaKernel(
            convention.interface.name,
            target.architecture,
            executable.binary,
            convention.grids,
            convention.steps,
            len(convention.operands),
            convention.temporaries,
            scalars,
            functools.partial(report_fault, convention),
        )
    except DeviceError as error:
        raise DeviceError(f"target '{target}' does not run here: {error}; use target 'emulator'") from error
