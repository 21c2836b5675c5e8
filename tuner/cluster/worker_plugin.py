"""The Dask worker plugin: the processes and files of a search, and the tasks that run there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from distributed import Worker, WorkerPlugin, get_worker

from tc.base.counted import counted
from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.runtime.host.scratch import clear_abandoned, scratch_folder
from tc.runtime.host.threads import available_threads
from tc.runtime.version import compiler_version
from tc.store.measured_machine import measured_machine
from tc.targets.target import CudaTarget, parse_target
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed
from tc.tuner.trial.workers import Limits, LocalWorkers, Packed

# The resource of workers that measure: ``dask worker ... --resources "measure=1"``.
MEASURE: Final = "measure"

# Dask warns of tasks of more than 10 MB.
_PIECE: Final = 1 << 23


@frozen
class WorkerDescription:
    """The machine, generator and compiler of a worker.  ``measures``: whether it measures."""

    generator: str
    compiler: str
    processor: str
    threads: int
    measures: bool

    @property
    def version(self) -> str:
        """What must be the same on all workers."""
        return f"tc {self.generator} with compiler {self.compiler}"

    @property
    def machine(self) -> str:
        """What must be the same where times are compared."""
        return f"{self.processor} with {counted(self.threads, 'thread')}"

    def __str__(self) -> str:
        return f"{self.machine}, {'and' if self.measures else 'but does not offer to'} measure{'s' * self.measures}"


def local_description(target: str) -> WorkerDescription:
    """The description of this machine.  DeviceError if it has no compiler for the target."""
    parsed = parse_target(target)
    compiler = compiler_version(parsed, environment())
    machine = measured_machine(gpu=isinstance(parsed, CudaTarget))
    return WorkerDescription(generator_version(), compiler, machine, available_threads(), measures=False)


def describe_worker(target: str, dask_worker: Worker) -> WorkerDescription:
    """The description of the worker that runs this, apart from its task queue."""
    return replace(local_description(target), measures=dask_worker.state.total_resources.get(MEASURE, 0) >= 1)


@frozen
class Piece:
    """A part of a file in the folder of a search; they are numbered, and nothing is missing after the ``last``."""

    number: int
    file: str
    offset: int
    content: bytes
    last: bool


def pieces(folder: Path, size: int = _PIECE) -> Iterator[Piece]:
    """All files in a folder, in parts of at most so many bytes."""
    parts = [
        (file, offset) for file in sorted(folder.iterdir()) for offset in range(0, max(1, file.stat().st_size), size)
    ]
    for number, (file, offset) in enumerate(parts):
        with file.open("rb") as stream:
            stream.seek(offset)
            yield Piece(number, file.name, offset, stream.read(size), last=number == len(parts) - 1)


class SearchPlugin(WorkerPlugin):
    """The state of one search on one worker: its own processes, and a folder.

    The scheduler sets it up on every worker, also on those that join later, and tears it down with the search or with
    the worker.
    """

    workers: LocalWorkers
    folder: Path
    has_files: bool
    _pieces: int
    _held: ExitStack

    def __init__(self, task: Task, calibration: Packed | None) -> None:
        self._task: Final = task
        self._calibration: Final = calibration

    def setup(self, worker: Worker) -> None:
        """Dask calls it where a worker begins."""
        # As many compile at a time as Dask lets run at a time; processes start when they are first needed.
        jobs = worker.state.nthreads
        clear_abandoned()
        self._held = ExitStack()
        self.folder = self._held.enter_context(scratch_folder("tc-tune-"))
        workers = LocalWorkers(self._task, self.folder, jobs, Limits(), self._calibration)
        self.workers = self._held.enter_context(workers)
        self.has_files = False
        self._pieces = 0

    def teardown(self, worker: Worker) -> None:
        """Dask calls it where a worker ends."""
        del worker  # Dask names it
        self._held.close()

    def put(self, piece: Piece) -> bool:
        """Adds a part of a file; one that comes again does no harm.  False if others are missing before it."""
        if piece.number == self._pieces:
            with (self.folder / piece.file).open("r+b" if piece.offset else "wb") as stream:
                stream.seek(piece.offset)
                stream.write(piece.content)
            self._pieces += 1
            self.has_files = piece.last
        return piece.number < self._pieces


def build_there(search: str, options: str, limit: float) -> Packed | Failed:
    """``Workers.build`` of one candidate."""
    (built,) = _plugin(search).workers.build((options,), limit)
    return built


def address_there() -> str:
    """Of the worker that Dask chose."""
    address: str = get_worker().address
    return address


def put_there(search: str, piece: Piece) -> bool:
    """Adds to the folder of the search; False if this worker came anew and has not what comes before."""
    return _plugin(search).put(piece)


def check_there(search: str, packed: Packed, slot: str) -> Checked | Failed | None:
    """``Workers.check``; None if this worker came anew and has no files."""
    plugin = _plugin(search)
    return plugin.workers.check(packed, slot) if plugin.has_files else None


def time_there(search: str, slot: str, seconds: float, quickest: float) -> Timed | Failed | None:
    """``Workers.time``; None if this worker came anew and has nothing in its slots."""
    plugin = _plugin(search)
    return plugin.workers.time(slot, seconds, quickest) if plugin.has_files else None


def stop_idle_there(search: str, dask_worker: Worker) -> None:
    """``Workers.stop_idle`` of the worker that runs this, apart from its task queue."""
    plugin = dask_worker.plugins.get(search)
    if isinstance(plugin, SearchPlugin):
        plugin.workers.stop_idle()


def _plugin(search: str) -> SearchPlugin:
    plugin = get_worker().plugins[search]
    assert isinstance(plugin, SearchPlugin)
    return plugin
