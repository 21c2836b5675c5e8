"""The configuration of the cache of a process, from its environment."""

from __future__ import annotations

import functools
import os
from enum import Enum
from typing import Final

from tc.base.counted import counted
from tc.base.environment import Environment
from tc.base.errors import CacheError, OptionsError
from tc.base.frozen import frozen
from tc.base.private import reclaim
from tc.cache.content.lookup import Reader
from tc.cache.database.database import is_empty
from tc.cache.database.place import File, Server, place_of
from tc.cache.format.database_errors import told


class Mode(Enum):
    """What becomes of a kernel that the cache does not have."""

    STORE = "store"  # it is compiled and kept
    WARN = "warn"  # it is compiled with default options, and said so once; the cache is only read
    STRICT = "strict"  # it is an error; the cache is only read
    OFF = "off"  # there is no cache


@frozen
class Configuration:
    """``where``: a path or a URL.  ``key``: the secret of its seals.  ``own``: it was not named, so it is the user's
    own cache, whose faults must not stop anybody.
    """

    where: str
    mode: Mode
    key: bytes | None
    own: bool


_FILE: Final = "kernels.db"
# A secret that can be guessed seals nothing.
_SHORTEST_KEY: Final = 16


@functools.cache
def configured(settings: Environment) -> Configuration | None:
    """The cache of a process with this environment; None if there is none.

    OptionsError for a mode that is none; CacheError for a key that cannot be read.
    """
    mode = _mode(settings)
    if mode is Mode.OFF:
        return None
    if settings.cache is not None:
        return Configuration(settings.cache, mode, read_key(settings.cache_key), own=False)
    if settings.cache_home is None:
        if mode is Mode.STORE:
            return None
        raise CacheError(f"TC_CACHE_MODE={mode.value} needs a cache; name its file in TC_CACHE")
    from tc.cache.database.file_systems import of_this_host, sharing

    file = os.path.join(settings.cache_home, "tc", _FILE)
    if sharing(_resolved(file)) is not None:
        file = of_this_host(file)
    return Configuration(file, mode, read_key(settings.cache_key), own=mode is Mode.STORE)


def claim(configuration: Configuration) -> None:
    """Takes from others the right to write into the folder of the user's own cache, which earlier releases gave them.

    What lies there is trusted by its own owner and permissions.
    """
    if configuration.own:
        reclaim(os.path.dirname(configuration.where))


def _resolved(file: str) -> str:
    with told(file):
        return os.path.realpath(file)


def _mode(settings: Environment) -> Mode:
    name = settings.cache_mode or Mode.STORE.value
    for mode in Mode:
        if mode.value == name:
            return mode
    raise OptionsError(f"TC_CACHE_MODE must be one of {', '.join(mode.value for mode in Mode)}, got {name!r}")


def read_key(file: str | os.PathLike[str] | None, asked: str = "TC_CACHE_KEY") -> bytes | None:
    """The secret in a file, None without one; CacheError, naming what ``asked`` for it, if there is none in it."""
    if file is None:
        return None
    try:
        with open(file, "rb") as stream:
            key = stream.read().strip()
    except OSError as error:
        raise CacheError(f"{asked}: cannot read {file}: {error.strerror}; name the file with the secret") from error
    if len(key) < _SHORTEST_KEY:
        raise CacheError(
            f"{asked}: the secret in {file} has {counted(len(key), 'byte')}, needs {_SHORTEST_KEY} at least"
        )
    return key


@functools.cache
def open_reader(configuration: Configuration) -> Reader:
    """The reader of a cache, opened once per process; CacheError if there is no such cache, or none to trust."""
    claim(configuration)
    return Reader.open(
        configuration.where,
        immutable=configuration.mode is Mode.STRICT and _is_file(configuration),
        key=configuration.key,
    )


def exists(configuration: Configuration) -> bool:
    """Whether there is anything to read, which an empty file has not; a server is asked when it is read."""
    place = place_of(configuration.where)
    # Another process may be making the cache.
    return not isinstance(place, File) or (os.path.exists(place.path) and not is_empty(place.path))


def _is_file(configuration: Configuration) -> bool:
    return not isinstance(place_of(configuration.where), Server)
