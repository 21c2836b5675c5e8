"""``DaskWorkers`` compile and measure candidates on a Dask cluster, whose scheduler distributes the work."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from tc.base.errors import OptionsError
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Packed, Workers

if TYPE_CHECKING:
    from tc.tuner.cluster.dask_cluster import Cluster
    from tc.tuner.session.search_setup import WorkerFactory

Answer = TypeVar("Answer")

# How often a candidate is tried whose worker is lost.
_TRIES: Final = 3
_STOPPED: Final = Failed(FailureKind.LOST, "it was interrupted")
_LOST: Final = Failed(FailureKind.LOST, f"{_TRIES} workers were lost with it")


def dask_workers(address: str) -> WorkerFactory:
    """The workers of the scheduler at ``dask://host:port``, some of them with ``--resources "measure=1"``.

    Each worker decides how many candidates it compiles at a time; ``jobs`` is how many are sent at a time.
    OptionsError for another address, or where Dask is not installed.  DeviceError if the scheduler does not answer.
    """
    scheduler = scheduler_address(address)
    if importlib.util.find_spec("distributed") is None:
        raise OptionsError(
            f"{address} needs Dask, which is not installed; pip install 'tensor-comprehensions[distributed]'"
        )
    from tc.tuner.cluster.dask_cluster import Cluster, connected
    from tc.tuner.cluster.worker_plugin import SearchPlugin

    # A scheduler that cannot be reached is an error now, not after the oracle has run.
    with connected(scheduler):
        pass

    @contextmanager
    def start_workers(
        task: Task, folder: Path, _jobs: int, calibration: Packed | None, stop: Callable[[], bool]
    ) -> Iterator[Workers]:
        with connected(scheduler) as client:
            cluster = Cluster(client, task.target)
            with cluster.registered(SearchPlugin(task, calibration)) as search:
                yield DaskWorkers(cluster, search, folder, stop)

    return start_workers


def scheduler_address(text: str) -> str:
    """``tcp://host:port`` for ``dask://host:port``; OptionsError for anything else."""
    try:
        parts = urlsplit(text)
        complete = bool(parts.hostname and parts.port)
    except ValueError:
        complete = False
    if not complete or text != f"dask://{parts.netloc}" or "@" in parts.netloc:
        raise OptionsError(f"workers are named by their scheduler, as in dask://host:8786, got {text!r}")
    return f"tcp://{parts.netloc}"


class DaskWorkers:
    """Compiles on all workers, and measures on one, because times of two machines do not compare.

    The worker that measures gets what lies in ``folder`` when it is first needed.  When it is lost another one that is
    like it takes over, where executables are checked again before they are timed.  ``stop``: whether the search no
    longer waits for what is being compiled.
    """

    def __init__(self, cluster: Cluster, search: str, folder: Path, stop: Callable[[], bool] = lambda: False) -> None:
        self._stop: Final = stop
        self._cluster: Final = cluster
        self._search: Final = search
        self._folder: Final = folder
        self._measurer: str | None = None
        self._slots: Final[dict[str, Packed]] = {}
        # The slots that the measuring worker knows.
        self._checked: Final[set[str]] = set()

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        """The executable or the failure of each of the options (canonical JSON), each within ``limit`` seconds."""
        from tc.tuner.cluster.worker_plugin import build_there

        built: dict[str, Packed | Failed] = {}
        for _ in range(_TRIES):
            left = [text for text in options if text not in built]
            if not left:
                break
            workers = self._cluster.builders()
            calls = [self._cluster.send(workers, build_there, self._search, text, limit) for text in left]
            for text, call in zip(left, calls, strict=True):
                if self._stop() and len(options) > 1:
                    return [built.get(text, _STOPPED) for text in options]
                answer = self._cluster.answer(call)
                if answer is not None:
                    built[text] = answer
        return [built.get(text, _LOST) for text in options]

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        """Whether the results are right; the executable then is in the slot."""
        from tc.tuner.cluster.worker_plugin import check_there

        for _ in range(_TRIES):
            answer = self._ask(check_there, packed, slot)
            if answer is not None:
                break
        else:
            return _LOST
        if isinstance(answer, Checked):
            self._slots[slot] = packed
            self._checked.add(slot)
        return answer

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        """Times what is in the slot for about so many seconds; ``quickest``: see ``Time``."""
        from tc.tuner.cluster.worker_plugin import time_there

        for _ in range(_TRIES):
            if slot not in self._checked:
                again = self.check(self._slots[slot], slot)
                if isinstance(again, Failed):
                    return again
            answer = self._ask(time_there, slot, seconds, quickest)
            if answer is not None:
                return answer
        return _LOST

    def stop_idle(self) -> None:
        """Stops processes that are not needed until the next question."""
        self._cluster.stop_idle(self._search)

    def _ask(self, function: Callable[..., Answer], *arguments: object) -> Answer | Failed | None:
        """What the worker that measures answers; None if it is lost, and with it all that it knew."""
        if self._measurer is None:
            self._measurer = self._with_files()
        if self._measurer is None:
            return None
        call = self._cluster.send((self._measurer,), function, self._search, *arguments, measure=True)
        answer = self._cluster.answer(call)
        if answer is None:
            self._measurer = None
            self._checked.clear()
        return answer

    def _with_files(self) -> str | None:
        """A worker that measures, with all files; None if it is lost meanwhile."""
        from tc.tuner.cluster.worker_plugin import address_there, pieces, put_there

        # Dask chooses the one that has least to do.
        cluster = self._cluster
        found = cluster.answer(cluster.send(cluster.measurers(), address_there, measure=True))
        if not isinstance(found, str):
            return None
        for piece in pieces(self._folder):
            if cluster.answer(cluster.send((found,), put_there, self._search, piece)) is not True:
                return None
        return found
