"""The version of what generates kernels: a kernel that was kept serves only the sources that would make it again."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from tc.base.digest import sha256_hex

RELEASE: Final = "0.1.0"

# Beside this file in a wheel, whose sources are final: their hash (``tc.base.wheel``).
BUILT: Final = "source_hash.txt"
_PACKAGES: Final = ("tc", "tc.grammar")


@functools.cache
def generator_version() -> str:
    """The release, a hash of what its sources do (``tc.base.source_hash``), and the version of isl's bindings."""
    return f"{RELEASE} {_source_hash()} islpy {_islpy_version()}"


def _source_hash() -> str:
    """From the wheel; in a checkout, from what was found for files of these sizes and times."""
    own = os.path.dirname(__file__)
    built = _read(f"{own}/{BUILT}")
    if built is not None:
        return built
    folders = [(package, folder) for package in _PACKAGES for folder in _folders(package)]
    state = sha256_hex("\n".join(_states(folders)).encode())[:16]
    remembered = f"{own}/__pycache__/sources-{state}.txt"
    found = _read(remembered)
    return _computed(folders, remembered) if found is None else found


def _computed(folders: list[tuple[str, str]], remembered: str) -> str:
    """The hash, which takes seconds; remembered beside the modules that Python compiled, where that is allowed."""
    from pathlib import Path

    from tc.base.source_hash import source_files, source_hash

    files = [file for package, folder in folders for file in source_files(package, Path(folder))]
    found = source_hash(files)
    place = Path(remembered)
    try:
        place.parent.mkdir(exist_ok=True)
        for old in place.parent.glob("sources-*.txt"):
            old.unlink(missing_ok=True)
        new = place.with_suffix(f".{os.getpid()}.new")
        new.write_text(found, encoding="utf-8")
        new.replace(place)
    except OSError:  # a file system without room, or without the right to write
        pass
    return found


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        return None


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return sorted(spec.submodule_search_locations or ())


def _states(folders: list[tuple[str, str]]) -> Iterator[str]:
    """Size and time of each file of the packages, wherever they are."""
    for _, folder in folders:
        yield from _states_in(folder)


def _states_in(folder: str) -> Iterator[str]:
    """Those of a folder, in the order of their names.  (``os.walk`` and ``os.stat`` take twice the time.)"""
    inside: list[str] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.is_dir():
                inside += [entry.path] if entry.name != "__pycache__" else []
            else:
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
    for path in inside:
        yield from _states_in(path)


def _islpy_version() -> str:
    return installed_version("islpy") or "absent"


def installed_version(package: str) -> str | None:
    """The version of a package, as its installer wrote it, which is not imported for that; None where there is none.

    Asking ``importlib.metadata`` takes longer than a cached kernel's first call.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    site = os.path.dirname(os.path.dirname(spec.origin))
    for name in sorted(os.listdir(site)):
        if name.startswith(f"{package}-") and name.endswith(".dist-info"):
            return name.removeprefix(f"{package}-").removesuffix(".dist-info")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
