"""The kernels launched on GPUs since the last synchronization, which errors that come later name."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from tc.base.errors import DeviceError
from tc.base.grid import GridKernel
from tc.runtime.cuda.cuda_driver import configuration

# So many are remembered.
_MOST: Final = 16


class RecentLaunches:
    """The last kernels launched since the last synchronization; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launches: deque[tuple[int, str, GridKernel]] = deque(maxlen=_MOST)

    def add(self, device: int, definition: str, kernel: GridKernel) -> None:
        """Remembers that a kernel of a definition was started."""
        self.extend(device, ((definition, kernel),))

    def extend(self, device: int, launches: Iterable[tuple[str, GridKernel]]) -> None:
        """Remembers that kernels were started, each with the definition that it is of."""
        with self._lock:
            self._launches.extend((device, definition, kernel) for definition, kernel in launches)

    def naming(self, error: DeviceError, device: int) -> DeviceError:
        """The error with the kernels that may have caused it: the driver does not say which of them did."""
        names = [f"{definition}: {configuration(kernel)}" for on, definition, kernel in self._all() if on == device]
        if not names:
            return error
        first = f"the last {_MOST}" if len(names) == _MOST else "all"
        return type(error)(f"{error}; started since the last wait ({first}): {', '.join(dict.fromkeys(names))}")

    @contextmanager
    def waited(self, device: int) -> Iterator[None]:
        """The block waits for a device; its errors name what was started before, which is forgotten otherwise."""
        before = self._all()
        try:
            yield
        except DeviceError as error:
            raise self.naming(error, device) from error
        ended = {id(launch) for launch in before if launch[0] == device}
        with self._lock:
            self._launches = deque((launch for launch in self._launches if id(launch) not in ended), _MOST)

    def _all(self) -> tuple[tuple[int, str, GridKernel], ...]:
        with self._lock:
            return tuple(self._launches)


# Of this process.
RECENT_LAUNCHES: Final = RecentLaunches()
