"""``Cluster``: the workers of a Dask scheduler that serve a search, and what is asked of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from distributed import CancelledError, Client, Future, KilledWorker, Scheduler

from tc.base.errors import DeviceError, TuningError
from tc.tuner.cluster.dask_workshop import MEASURE, Introduction, Workshop, introduce, introduction, rest_there
from tc.tuner.trial.outcome import Failed, FailureKind

Answer = TypeVar("Answer")
Workers: TypeAlias = tuple[str, ...]

# Of our clients, whose names begin so, and of what they give workers, which has the names of the clients.
_NAME: Final = "tc-tune"

# Seconds until a scheduler and its workers must be there, and another worker in the place of one that is gone.
_REACH: Final = 5.0
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.2
# Seconds between looks at whether those that were asked are still there.
_LOOK: Final = 2.0
# How often Dask tries again what raises an exception; for workers that are lost it has a number of its own.
_RETRIES: Final = 2


@dataclass(frozen=True, slots=True)
class Errand(Generic[Answer]):
    """A task for any one of some workers."""

    workers: Workers
    future: Future[Answer]


class Cluster:
    """Workers with the versions and the number of threads of this machine, which executables depend on.

    TuningError, naming the worker, if one that is there from the start has other versions; those that come later with
    other ones are not asked.  TuningError if no worker compiles, or none measures on such a machine.
    """

    def __init__(self, client: Client, target: str) -> None:
        self._client: Final = client
        self._target: Final = target
        self._here: Final = introduction(target)
        self._known: Final[dict[str, Introduction]] = {}
        with _failing():
            self._sweep()
            self._refuse_other_versions()
            self._some(self._compiles, _REACH)
            self._some(self._measures, _REACH)

    def builders(self) -> Workers:
        """Workers that compile.  TuningError if there have been none for a while."""
        with _failing():
            return self._some(self._compiles, _PATIENCE)

    def measurers(self) -> Workers:
        """Workers whose times are those of this machine.  TuningError if there have been none for a while."""
        with _failing():
            return self._some(self._measures, _PATIENCE)

    @contextmanager
    def equipped(self, workshop: Workshop) -> Iterator[str]:
        """Every worker has the workshop, also those that come later; the name under which they find it."""
        search = self._client.id
        with _failing():
            self._client.register_plugin(workshop, name=search)
        try:
            yield search
        finally:
            self._take_away(search)

    def send(
        self, workers: Workers, function: Callable[..., Answer], *arguments: object, measure: bool = False
    ) -> Errand[Answer]:
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
        return Errand(workers, future)

    def answer(self, errand: Errand[Answer]) -> Answer | Failed | None:
        """The answer; None if all who were asked are gone, or know nothing of the search any more.

        ``FailureKind.LOST`` if every worker that tried was lost, as often as Dask allows.
        """
        with _failing():
            while True:
                try:
                    return errand.future.result(timeout=_LOOK)
                except TimeoutError:
                    if not self._client.nthreads(list(errand.workers)):
                        return None
                except KilledWorker as error:
                    return Failed(FailureKind.LOST, str(error))

    def rest(self, search: str) -> None:
        """Ends the processes of the search until they are needed again."""
        with _failing():
            self._client.run(rest_there, search, workers=list(self._serving()), on_error="ignore")

    def _sweep(self) -> None:
        """Takes away the workshops of those who were killed before they could."""
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

    # --- who is there -------------------------------------------------------------------------------------------

    def _serving(self) -> dict[str, Introduction]:
        """Who is there, and has the same versions."""
        found = {worker: said for worker, said in self._introductions().items() if isinstance(said, Introduction)}
        return {worker: said for worker, said in found.items() if said.version == self._here.version}

    def _introductions(self) -> dict[str, Introduction | Exception]:
        """What everybody who is there says, or why not."""
        there = list(self._client.nthreads())
        new = [worker for worker in there if worker not in self._known]
        said = self._client.run(introduce, self._target, workers=new, on_error="return") if new else {}
        self._known.update({worker: found for worker, found in said.items() if isinstance(found, Introduction)})
        return {worker: self._known.get(worker) or said[worker] for worker in there}

    def _refuse_other_versions(self) -> None:
        for worker, said in self._introductions().items():
            match said:
                case Introduction() if said.version != self._here.version:
                    raise TuningError(
                        f"the worker {worker} has {said.version}, and this machine has {self._here.version}; "
                        "install the same versions"
                    )
                case Introduction() | OSError():  # an OSError is of one that goes while it is asked
                    continue
                case _:
                    raise TuningError(
                        f"the worker {worker} cannot serve: {type(said).__name__}: {said}; "
                        f"this machine has {self._here.version}, install the same there"
                    )

    def _compiles(self, worker: Introduction) -> bool:
        return worker.threads == self._here.threads

    def _measures(self, worker: Introduction) -> bool:
        return worker.measures and worker.machine == self._here.machine

    def _some(self, wanted: Callable[[Introduction], bool], patience: float) -> Workers:
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
    """What clients of ours gave the workers, and left behind."""
    return [name for name in dask_scheduler.worker_plugins if _NAME in name and name not in dask_scheduler.clients]


@contextmanager
def _failing() -> Iterator[None]:
    """What the scheduler does when it goes is an error of the search."""
    try:
        yield
    except (OSError, CancelledError) as error:
        raise TuningError(f"what was found is kept, but the Dask cluster fails: {error}") from error
