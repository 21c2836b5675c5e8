"""``Cluster``: the workers of a Dask scheduler that serve a search, and what is asked of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeAlias, TypeVar

from distributed import CancelledError, Client, Future, KilledWorker, Scheduler

from tc.base.errors import DeviceError, TuningError
from tc.base.frozen import frozen
from tc.tuner.cluster.worker_plugin import (
    MEASURE,
    SearchPlugin,
    WorkerDescription,
    describe_worker,
    local_description,
    stop_idle_there,
)
from tc.tuner.trial.trial_outcome import Failed, FailureKind

Answer = TypeVar("Answer")
Addresses: TypeAlias = tuple[str, ...]

# The prefix of the names of our clients, and of their plugins, which are named like the client.
_NAME: Final = "tc-tune"

# Seconds until a scheduler and its workers must be there, and another worker in the place of one that is gone.
_REACH: Final = 5.0
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.2
# Seconds between looks at whether those that were asked are still there.
_LOOK: Final = 2.0
# How often Dask tries again what raises an exception; for workers that are lost it has a number of its own.
_RETRIES: Final = 2


@frozen
class RemoteCall(Generic[Answer]):
    """A task for any one of some workers."""

    workers: Addresses
    future: Future[Answer]


class Cluster:
    """Workers with the versions and the number of threads of this machine, which executables depend on.

    TuningError, naming the worker, if one that is there from the start has other versions; those that come later with
    other ones are not asked.  TuningError if no worker compiles, or none measures on such a machine.
    """

    def __init__(self, client: Client, target: str) -> None:
        self._client: Final = client
        self._target: Final = target
        self._here: Final = local_description(target)
        self._known: Final[dict[str, WorkerDescription]] = {}
        with _failing():
            self._sweep()
            self._refuse_other_versions()
            self._some(self._compiles, _REACH)
            self._some(self._measures, _REACH)

    def builders(self) -> Addresses:
        """Workers that compile.  TuningError if there have been none for a while."""
        with _failing():
            return self._some(self._compiles, _PATIENCE)

    def measurers(self) -> Addresses:
        """Workers whose times are those of this machine.  TuningError if there have been none for a while."""
        with _failing():
            return self._some(self._measures, _PATIENCE)

    @contextmanager
    def registered(self, plugin: SearchPlugin) -> Iterator[str]:
        """Every worker has the plugin, also those that come later; the name under which they find it."""
        search = self._client.id
        with _failing():
            self._client.register_plugin(plugin, name=search)
        try:
            yield search
        finally:
            self._take_away(search)

    def send(
        self, workers: Addresses, function: Callable[..., Answer], *arguments: object, measure: bool = False
    ) -> RemoteCall[Answer]:
        """Sends a call to one of the workers, whichever is free; ``measure``: while it measures nothing else."""
        with _failing():
            future = self._client.submit(
                function,
                *arguments,
                workers=list(workers),
                resources={MEASURE: 1} if measure else None,
                retries=_RETRIES,
                pure=False,
            )
        return RemoteCall(workers, future)

    def answer(self, call: RemoteCall[Answer]) -> Answer | Failed | None:
        """The answer; None if all who were asked are gone, or know nothing of the search any more.

        ``FailureKind.LOST`` if every worker that tried was lost, as often as Dask allows.
        """
        with _failing():
            while True:
                try:
                    return call.future.result(timeout=_LOOK)
                except TimeoutError:
                    if not self._client.nthreads(list(call.workers)):
                        return None
                except KilledWorker as error:
                    return Failed(FailureKind.LOST, str(error))

    def stop_idle(self, search: str) -> None:
        """Ends the processes of the search until they are needed again."""
        with _failing():
            self._client.run(stop_idle_there, search, workers=list(self._serving()), on_error="ignore")

    def _sweep(self) -> None:
        """Removes the plugins of searches that were killed before they could do so."""
        try:
            abandoned = self._client.run_on_scheduler(_abandoned)
        except ImportError as error:
            raise TuningError(
                f"the scheduler cannot serve: {error}; this machine has {self._here.version}, install the same there"
            ) from error
        for search in abandoned:
            self._take_away(search)

    def _take_away(self, search: str) -> None:
        # Workers that are gone have taken theirs with them, and another one may have been quicker (ValueError).
        with suppress(OSError, CancelledError, ValueError):
            self._client.unregister_worker_plugin(search)

    # --- connected workers ------------------------------------------------------------------------------------------

    def _serving(self) -> dict[str, WorkerDescription]:
        """The connected workers with the same versions."""
        found = {worker: said for worker, said in self._descriptions().items() if isinstance(said, WorkerDescription)}
        return {worker: said for worker, said in found.items() if said.version == self._here.version}

    def _descriptions(self) -> dict[str, WorkerDescription | Exception]:
        """The description of every connected worker, or why there is none."""
        there = list(self._client.nthreads())
        new = [worker for worker in there if worker not in self._known]
        said = self._client.run(describe_worker, self._target, workers=new, on_error="return") if new else {}
        self._known.update({worker: found for worker, found in said.items() if isinstance(found, WorkerDescription)})
        return {worker: self._known.get(worker) or said[worker] for worker in there}

    def _refuse_other_versions(self) -> None:
        for worker, said in self._descriptions().items():
            match said:
                case WorkerDescription() if said.version != self._here.version:
                    raise TuningError(
                        f"the worker {worker} has {said.version}, and this machine has {self._here.version}; "
                        "install the same versions"
                    )
                case WorkerDescription() | OSError():  # an OSError is of one that goes while it is asked
                    continue
                case _:
                    raise TuningError(
                        f"the worker {worker} cannot serve: {type(said).__name__}: {said}; "
                        f"this machine has {self._here.version}, install the same there"
                    )

    def _compiles(self, worker: WorkerDescription) -> bool:
        return worker.threads == self._here.threads

    def _measures(self, worker: WorkerDescription) -> bool:
        return worker.measures and worker.machine == self._here.machine

    def _some(self, wanted: Callable[[WorkerDescription], bool], patience: float) -> Addresses:
        """Those who are wanted, as soon as there are any.  TuningError if none comes within so many seconds."""
        deadline = time.monotonic() + patience
        while True:
            serving = self._serving()
            if found := tuple(worker for worker, said in serving.items() if wanted(said)):
                return found
            if time.monotonic() >= deadline:
                others = "; ".join(f"{worker} is {said}" for worker, said in serving.items()) or "there are no workers"
                raise TuningError(
                    f"no worker measures on {self._here.machine}, as this machine is: {others}; start one on such a "
                    f"machine with 'dask worker ... --resources \"{MEASURE}=1\"'"
                )
            time.sleep(_PAUSE)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at ``tcp://host:port``.  DeviceError if it does not answer within some seconds."""
    try:
        client = Client(address, timeout=_REACH, set_as_default=False, name=_NAME)
    except OSError as error:
        raise DeviceError(
            f"no Dask scheduler answers at {address} within {_REACH:g} s; start one with 'dask scheduler' ({error})"
        ) from error
    with client:
        yield client


def _abandoned(dask_scheduler: Scheduler) -> list[str]:
    """Plugins that clients of ours registered and left behind."""
    return [name for name in dask_scheduler.worker_plugins if _NAME in name and name not in dask_scheduler.clients]


@contextmanager
def _failing() -> Iterator[None]:
    """What the scheduler does when it goes is an error of the search."""
    try:
        yield
    except (OSError, CancelledError) as error:
        raise TuningError(f"what was found is kept, but the Dask cluster fails: {error}") from error
