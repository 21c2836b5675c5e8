"""The version of what generates kernels: a kernel that was kept serves only the sources that would make it again."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import Final

RELEASE: Final = "0.1.0"

_SOURCES: Final = (".py", ".h", ".c", ".lark")
# These look at kernels from outside.
_ASIDE: Final = ("commands", "cache", "tuner")


@functools.cache
def generator_version() -> str:
    """The release and a hash of the sources, so that any change of them is another version; takes milliseconds."""
    digest = hashlib.sha256()
    for package in ("tc", "tc.grammar"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        for folder in sorted(spec.submodule_search_locations or ()):
            for name, content in _files(Path(folder)):
                digest.update(f"{package}/{name}\0{len(content)}\0".encode())
                digest.update(content)
    return f"{RELEASE} {digest.hexdigest()[:16]}"


def _files(folder: Path) -> list[tuple[str, bytes]]:
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.suffix in _SOURCES and name.parts[0] not in (*_ASIDE, "grammar"):
            found.append((name.as_posix(), path.read_bytes()))
    return sorted(found)
