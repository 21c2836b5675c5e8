"""The version of what generates kernels: a kernel that was kept serves only the sources that would make it again."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from typing import Final

RELEASE: Final = "0.1.0"

_SOURCES: Final = (".py", ".h", ".c", ".lark")
# These look at kernels from outside, or are packages of their own.
_ASIDE: Final = ("commands", "cache", "tuner", "grammar", "__pycache__")


@functools.cache
def generator_version() -> str:
    """The release and a hash of the sources, so that any change of them is another version; takes milliseconds."""
    digest = hashlib.sha256()
    for package in ("tc", "tc.grammar"):
        for name, content in sources(package):
            digest.update(f"{package}/{name}\0{len(content)}\0".encode())
            digest.update(content)
    return f"{RELEASE} {digest.hexdigest()[:16]}"


def sources(package: str) -> list[tuple[str, bytes]]:
    """The sources of a package that decide what kernels are: their names in it, and what they contain."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return [file for folder in sorted(spec.submodule_search_locations or ()) for file in _files(folder)]


def _files(folder: str) -> list[tuple[str, bytes]]:
    """Name and content of each source in the folder, in order."""
    found: list[tuple[str, bytes]] = []
    for parent, folders, names in os.walk(folder):
        inside = parent[len(folder) + 1 :]
        folders[:] = [name for name in folders if inside or name not in _ASIDE]
        for name in names:
            if name.endswith(_SOURCES):
                # Objects for all paths would take longer than all else here.
                with open(f"{parent}/{name}", "rb", buffering=0) as stream:  # noqa: PTH123
                    found.append((f"{inside}/{name}" if inside else name, stream.read()))
    return sorted(found)
