"""Sets up a search: arrays, results of the oracle, roofs, worker processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from tc.artifact.definition import Parsed
from tc.artifact.packing import pack
from tc.base.environment import Environment
from tc.base.errors import DeviceError, OptionsError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.cache.content.store import Store
from tc.compiler import build
from tc.language.lower.specialize import specialize
from tc.language.program.specialization import ArraySpec, Signature, Specialization
from tc.reference.memory import plan_within
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import check_cuda_device, device_number
from tc.runtime.host.scratch import clear_abandoned, scratch_folder, told_of_room
from tc.runtime.host.threads import available_threads
from tc.runtime.host.total_memory import oracle_memory
from tc.store.wanted import Wanted
from tc.targets.default_options import default_options
from tc.targets.devices import USUAL
from tc.targets.numerics import Numerics as KernelNumerics
from tc.targets.options import CpuOptions, GpuOptions
from tc.targets.target import CpuTarget, CudaTarget, Target
from tc.tuner.roofline.bound import Bound
from tc.tuner.roofline.bounds import Bounds
from tc.tuner.roofline.cuda_roofs import measure_cuda_roofs
from tc.tuner.roofline.roofline import Roofs, Work, highest, stable
from tc.tuner.roofline.roofs import measure_roofs
from tc.tuner.roofline.thread_bound import ThreadBound
from tc.tuner.roofline.work import least_work
from tc.tuner.session.control import UNATTENDED, Control
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.predicted_workers import PredictedWorkers
from tc.tuner.session.progress_events import Judging
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.settings import Numerics, TuningSettings
from tc.tuner.session.subject import Subject
from tc.tuner.space.nests import nest_of, silent_options
from tc.tuner.space.space import Space
from tc.tuner.space.starts import numerics_of, require_startable
from tc.tuner.trial.checked_calls import keep_calls, room_for, specialized_calls
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.workers import Limits, LocalWorkers, Packed, Workers

# Makes the workers for a task: its arrays are in the folder; the number of compile jobs; the calibration executable;
# whether to compile nothing more.
WorkerFactory: TypeAlias = Callable[
    [Task, Path, int, Packed | None, Callable[[], bool]], AbstractContextManager[Workers]
]

# It computes for about 0.1 ms on every core, out of the caches.  A GPU reads 128 MiB for it, which takes much longer
# than the half microsecond up to which events tell times apart.
_CALIBRATION: Final = "def calibrate(float(M,N) x) -> (y) { y(m) +=! exp(x(m,r_n)) * x(m,r_n) }"
_CALIBRATION_SHAPE: Final = (256, 512)
_CALIBRATION_SHAPE_ON_GPUS: Final = (8192, 4096)


_MOST_ROOFS: Final = 6


def local_workers(
    task: Task, folder: Path, jobs: int, calibration: Packed | None, stop: Callable[[], bool]
) -> AbstractContextManager[Workers]:
    """Processes on this machine."""
    return LocalWorkers(task, folder, jobs, Limits(), calibration, stop)


def device_workers(devices: Sequence[int]) -> WorkerFactory:
    """Processes on this machine, of which each one of these GPUs has one that measures."""

    def start_workers(
        task: Task, folder: Path, jobs: int, calibration: Packed | None, stop: Callable[[], bool]
    ) -> AbstractContextManager[Workers]:
        return LocalWorkers(task, folder, jobs, Limits(), calibration, stop, devices)

    return start_workers


def require_devices(devices: Sequence[int], target: Target) -> None:
    """OptionsError for GPUs that cannot measure for each other, or for a target that runs on none; DeviceError for
    those that are not there, or do not run its kernels.
    """
    if not isinstance(target, CudaTarget):
        raise OptionsError(f"devices are numbers of GPUs, and target {str(target)!r} runs on none; use target 'cuda'")
    names = [cuda_driver().devices()[device_number(device)].name for device in devices]
    for device, name in zip(devices, names, strict=True):
        check_cuda_device(target.architecture, device)
        if name != names[0]:
            raise OptionsError(
                f"devices {devices[0]} ({names[0]}) and {device} ({name}) differ: times on one say nothing of "
                "the other; search on one kind at a time"
            )


@frozen
class Machines:
    """Where candidates are compiled and measured.

    ``start_workers``: makes the workers; on CUDA, ``device`` is their first GPU.
    """

    start_workers: WorkerFactory = local_workers
    device: int = 0


@contextmanager
def tuning(
    subject: Subject,
    target: Target,
    store: Store,
    settings: TuningSettings,
    environment: Environment,
    machines: Machines,
    control: Control = UNATTENDED,
) -> Iterator[Tuning]:
    """A search for the quickest options of a subject; what it finds is kept in the store.

    Where sizes stay open, candidates are measured with the greatest ones, and checked with others too.  For a named
    architecture of NVIDIA's GPUs, on a machine without one, times are predicted, and kept as such.
    DeviceError where the machines do not run kernels of the target.  OptionsError for options to start from that the
    target does not take.
    """
    require_startable(settings.starts, target)
    if isinstance(target, CudaTarget) and machines.start_workers is local_workers and not _has_gpu():
        with _predicted(subject, target, store, settings, environment, control) as found:
            yield found
        return
    if isinstance(target, CudaTarget):
        check_cuda_device(target.architecture, machines.device)
    definition = subject.definition
    program = definition.program
    task = subject.task(target)
    calls = specialized_calls(task, program)
    memory = oracle_memory()
    control.listen(Judging(definition.interface.name, plan_within(calls[0], memory).bytes))
    given = subject.arrays
    if given is None:
        given = random_arrays(program, calls[0], settings.seed, calls[-1])
    bounds = _bounds(least_work(calls[0], given), target, machines.device)
    clear_abandoned()
    with scratch_folder("tc-tune-") as folder:
        with told_of_room(room_for(calls, given)):
            products = _numerics(subject, settings).products
            keep_calls(calls, given, dict(subject.scalars), folder, memory, products)
        space = _space(subject, calls[0], target, settings)
        # A job file may have many searches, and their arrays are in files now.
        del given, calls
        wanted = Wanted(definition, subject.signature, target, None, machines.device, space.defaults.numerics)
        records = SearchRecords(store, wanted, subject.siblings, environment)
        helper = calibration(target, environment)
        with machines.start_workers(task, folder, settings.jobs, helper, control.stop) as workers:
            yield Tuning(task, space, workers, records, settings, control, bounds)


def _space(subject: Subject, call: Specialization, target: Target, settings: TuningSettings) -> Space:
    """The options that are searched."""
    kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
    silent, numerics = silent_options(call, target), _numerics(subject, settings)
    return Space.of(kind, nest_of(call), fixed=silent, preferences=settings.preferences, numerics=numerics)


def _numerics(subject: Subject, settings: TuningSettings) -> KernelNumerics:
    """Those of all candidates."""
    return numerics_of(settings.starts, subject.numerics)


def _has_gpu() -> bool:
    """Whether the driver of NVIDIA's GPUs finds one."""
    try:
        return bool(cuda_driver().devices())
    except DeviceError:
        return False


@contextmanager
def _predicted(
    subject: Subject,
    target: CudaTarget,
    store: Store,
    settings: TuningSettings,
    environment: Environment,
    control: Control,
) -> Iterator[Tuning]:
    """A search that ranks by predicted times, which needs neither arrays nor the oracle.

    DeviceError for an architecture whose times are not predicted; OptionsError where winners must have certain bits.
    """
    if target.architecture not in USUAL:
        raise DeviceError(
            f"target '{target}' is tuned without a GPU only where times are predicted: {', '.join(USUAL)}; choose one "
            "of these, or search on a machine that has one"
        )
    if settings.numerics is Numerics.BITWISE:
        raise OptionsError(
            "bitwise numerics are compared on a GPU; leave them out, or search on a machine that has one"
        )
    task = subject.task(target)
    calls = specialized_calls(task, subject.definition.program)
    space = _space(subject, calls[0], target, settings)
    wanted = Wanted(subject.definition, subject.signature, target, None, 0, space.defaults.numerics, predicted=True)
    records = SearchRecords(store, wanted, subject.siblings, environment)
    clear_abandoned()
    with (
        scratch_folder("tc-tune-") as folder,
        LocalWorkers(task, folder, settings.jobs, Limits(), None, control.stop) as compilers,
    ):
        yield Tuning(task, space, PredictedWorkers(compilers), records, settings, control)


def _bounds(work: Work | None, target: Target, device: int) -> Bounds:
    """The lower bounds of the time of a call for this work."""
    return Bounds(_bound(work, target, device), _thread_bound(work, target, device))


def _bound(work: Work | None, target: Target, device: int) -> Bound | None:
    """The lower bound of the time of a call for this work; None where it is unknown."""
    if work is None or not isinstance(target, CpuTarget | CudaTarget):
        return None
    roofs = machine_roofs(target, available_threads(), device)

    def again() -> float:
        nonlocal roofs
        roofs = highest(roofs, _measured_roofs(target, available_threads(), device))
        return roofs.bound(work)

    return Bound(roofs.bound(work), again)


def _thread_bound(work: Work | None, target: Target, device: int) -> ThreadBound | None:
    """The bound that follows from the threads of a kernel; None where it is unknown, or there are no such threads."""
    if work is None or not isinstance(target, CudaTarget):
        return None
    return ThreadBound(work, cuda_driver().devices()[device].clock)


@functools.cache
def machine_roofs(target: CpuTarget | CudaTarget, threads: int, device: int = 0) -> Roofs:
    """What this machine or one of its GPUs can do at most, measured once in a process until another measurement adds
    nothing; takes a few seconds.
    """
    return stable(lambda: _measured_roofs(target, threads, device), _MOST_ROOFS)


def _measured_roofs(target: CpuTarget | CudaTarget, threads: int, device: int) -> Roofs:
    return measure_cuda_roofs(device) if isinstance(target, CudaTarget) else measure_roofs(target, threads)


@functools.cache
def calibration(target: Target, environment: Environment) -> Packed | None:
    """The executable that tells how quick the machine is at the moment; None where a target has none."""
    if not isinstance(target, CpuTarget | CudaTarget):
        return None
    on_host = isinstance(target, CpuTarget)
    options = default_options(target)
    shape = _CALIBRATION_SHAPE if on_host else _CALIBRATION_SHAPE_ON_GPUS
    parsed = Parsed(parse_task(Task(_CALIBRATION, "calibrate", Signature(()), str(target))))
    signature = Signature((("x", ArraySpec(shape, ScalarType.FLOAT32)),))
    specialization = specialize(parsed.program, signature)
    return pack(build(specialization, parsed.interface, options, target, environment).executable)
