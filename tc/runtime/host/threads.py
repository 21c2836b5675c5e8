"""How many threads this process may use: its affinity, its cgroups' limits, and what the user set."""

from __future__ import annotations

import os
from typing import Final

from tc.base.errors import OptionsError

MOST_THREADS: Final = 1024

_CGROUPS: Final = "/sys/fs/cgroup"


def available_threads() -> int:
    """Processors this process may run on, cut to the limits of its cgroups (versions 1 and 2); at least 1."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, cgroup_limit(_text("/proc/self/cgroup"), _CGROUPS), MOST_THREADS))


def cgroup_limit(memberships: str, root: str | os.PathLike[str]) -> int:
    """Whole processors that the cgroups in ``memberships`` (the text of ``/proc/self/cgroup``) grant, rounded up.

    ``root`` is where the hierarchies are mounted.  A group's limit binds its descendants too.
    """
    root = os.fspath(root)
    limits = [MOST_THREADS]
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            hierarchies, read = (root, f"{root}/unified"), _limit_v2
        elif "cpu" in controllers.split(","):
            hierarchies, read = (f"{root}/{controllers}", f"{root}/cpu"), _limit_v1
        else:
            continue
        names = [name for name in path.split("/") if name]
        # Inside a container the path may be the host's, of which only the root is mounted.
        folders = ("/".join([mount, *names[:depth]]) for mount in hierarchies for depth in range(len(names) + 1))
        limits += [limit for folder in folders if (limit := read(folder)) is not None]
    return min(limits)


def _limit_v2(group: str) -> int | None:
    quota, _, period = _text(f"{group}/cpu.max").partition(" ")
    return _processors(quota, period)


def _limit_v1(group: str) -> int | None:
    quota = _text(f"{group}/cpu.cfs_quota_us")
    return _processors(quota, _text(f"{group}/cpu.cfs_period_us")) if quota else None


def _processors(quota: str, period: str) -> int | None:
    # "max" and -1 mean unlimited.
    if not (quota.isdecimal() and period.isdecimal() and int(period) > 0):
        return None
    return max(1, -(-int(quota) // int(period)))


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read().strip()
    except OSError:
        return ""


class ThreadCount:
    """The number of threads one call may use: what was set, else what is available, looked up once per process."""

    def __init__(self) -> None:
        self._chosen: int | None = None
        self._available: int | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._available = None

    def set(self, threads: int | None) -> None:
        """Uses ``threads`` from now on; None goes back to what is available.  OptionsError outside 1 .. 1024."""
        if threads is not None and (
            not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_THREADS
        ):
            raise OptionsError(f"threads must be an integer from 1 to {MOST_THREADS}, or None, got {threads!r}")
        self._chosen = threads

    def get(self) -> int:
        """The most threads that one call uses."""
        if self._chosen is not None:
            return self._chosen
        if self._available is None:
            self._available = available_threads()
        return self._available


_THREADS: Final = ThreadCount()
set_threads: Final = _THREADS.set
get_threads: Final = _THREADS.get
