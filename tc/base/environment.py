"""The environment variables of this package, read once and in this place only."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from tc.base.frozen import frozen


@frozen
class Environment:
    """What the user asked for outside the program; None where nothing was asked.

    ``target``: ``TC_TARGET``, the target of calls that name none.  ``compiler``: ``TC_CC``, the C compiler's
    command with its own arguments.  ``dump``: ``TC_DUMP``, the folder that receives what every stage made.
    ``cache_home``: the user's folder for files that can be made again (``XDG_CACHE_HOME``, else ``~/.cache``).
    ``cache``: ``TC_CACHE``, the file or the SQLAlchemy URL of compiled kernels.  ``cache_mode``: ``TC_CACHE_MODE``.
    ``cache_key``: ``TC_CACHE_KEY``, the file with the secret that seals what a cache holds.
    ``cuda_runtime``: ``TC_CUDA_RUNTIME``, the package that speaks to the CUDA driver.  ``sync``: ``TC_SYNC``, whether
    calls on CUDA wait for their kernels.
    """

    target: str | None = None
    compiler: str | None = None
    dump: Path | None = None
    cache_home: Path | None = None
    cache: str | None = None
    cache_mode: str | None = None
    cache_key: Path | None = None
    cuda_runtime: str | None = None
    sync: bool = False

    @staticmethod
    def read(variables: Mapping[str, str]) -> Environment:
        """The environment that ``variables`` describe; an empty value counts as absent."""
        dump, key = variables.get("TC_DUMP"), variables.get("TC_CACHE_KEY")
        return Environment(
            target=variables.get("TC_TARGET") or None,
            compiler=variables.get("TC_CC") or None,
            dump=Path(dump) if dump else None,
            cache_home=_cache_home(variables),
            cache=variables.get("TC_CACHE") or None,
            cache_mode=variables.get("TC_CACHE_MODE") or None,
            cache_key=Path(key) if key else None,
            cuda_runtime=variables.get("TC_CUDA_RUNTIME") or None,
            sync=variables.get("TC_SYNC", "") not in ("", "0"),
        )


def _cache_home(variables: Mapping[str, str]) -> Path | None:
    # The XDG specification: a relative path is invalid and must be ignored.
    chosen = Path(variables.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen
    home = Path(variables.get("HOME", ""))
    return home / ".cache" if home.is_absolute() else None


@functools.cache
def environment() -> Environment:
    """The environment of this process, as it was when first asked for."""
    return Environment.read(os.environ)
