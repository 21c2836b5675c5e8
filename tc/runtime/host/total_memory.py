"""How much memory there is for this process: that of the machine, cut to the limits of its cgroups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
# Beyond which a limit of a cgroup stands for none.
_UNLIMITED: Final = 1 << 60


def total_memory() -> int:
    """Bytes that this machine has, or the process's cgroups (versions 1 and 2) grant, whichever is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        memberships = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        memberships = ""
    return min([machine, *memory_limits(memberships, _CGROUPS)])


def oracle_memory() -> int:
    """Bytes that the oracle may take by default: a quarter of the machine's memory."""
    return total_memory() // 4


def memory_limits(memberships: str, root: Path) -> Iterator[int]:
    """Bytes that the cgroups in ``memberships`` (the text of ``/proc/self/cgroup``) and those above them grant.

    ``root`` is where the hierarchies are mounted.
    """
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            hierarchies, file = (root, root / "unified"), "memory.max"
        elif "memory" in controllers.split(","):
            hierarchies, file = (root / controllers, root / "memory"), "memory.limit_in_bytes"
        else:
            continue
        for hierarchy in hierarchies:
            group = hierarchy / path.lstrip("/")
            # Inside a container the path may be the host's, of which only the root is mounted.
            for folder in (group, *group.parents):
                limit = _number(folder / file)
                if limit is not None and limit < _UNLIMITED:
                    yield limit


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
