"""Running kernels on GPUs: their modules and fault buffers are kept until they have finished."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tc.runtime.cuda.cuda_driver import LoadedModule, SharedWord


@dataclass(slots=True, eq=False)
class StartedKernel:
    """What launches of a kernel need.

    ``launcher``: who starts them, while it is there.  ``devices``: on which it did.  ``captured``: some are part of a
    graph, which may run at any time.  ``report``: raises the error for a fault.
    """

    launcher: weakref.ref[object]
    module: LoadedModule
    fault: SharedWord | None
    report: Callable[[int], None]
    devices: set[int]
    captured: bool = False

    def raise_fault(self) -> None:
        """Raises what calls that have ended found in their arguments."""
        if self.fault is not None and (found := self.fault.take()):
            self.report(found)

    @property
    def is_left(self) -> bool:
        """Whether it can no longer be launched."""
        return self.launcher() is None and not self.captured


class Started:
    """All kernels that were started and may be needed; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kernels: tuple[StartedKernel, ...] = ()

    def add(self, kernel: StartedKernel) -> None:
        """Keeps a kernel that was started first."""
        with self._lock:
            self._kernels = (*self._kernels, kernel)

    @contextmanager
    def waited(self, device: int) -> Iterator[None]:
        """The block waits for a device: what was left before does not run there any more."""
        left = [kernel for kernel in self._kernels if kernel.is_left]
        yield
        for kernel in left:
            kernel.devices.discard(device)

    def raise_faults(self) -> None:
        """Raises what calls that have ended found in their arguments; lets go of kernels that run nowhere any more."""
        kernels = self._kernels
        gone = {id(kernel) for kernel in kernels if kernel.is_left and not kernel.devices}
        for kernel in kernels:
            kernel.raise_fault()
        with self._lock:
            self._kernels = tuple(kernel for kernel in self._kernels if id(kernel) not in gone)


# Of this process.
STARTED: Final = Started()
