"""The environment variables of this package, read once and in this place only."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

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
    dump: str | None = None
    cache_home: str | None = None
    cache: str | None = None
    cache_mode: str | None = None
    cache_key: str | None = None
    cuda_runtime: str | None = None
    sync: bool = False

    @staticmethod
    def read(variables: Mapping[str, str]) -> Environment:
        """The environment that ``variables`` describe; an empty value counts as absent."""
        return Environment(
            target=variables.get("TC_TARGET") or None,
            compiler=variables.get("TC_CC") or None,
            dump=variables.get("TC_DUMP") or None,
            cache_home=_cache_home(variables),
            cache=variables.get("TC_CACHE") or None,
            cache_mode=variables.get("TC_CACHE_MODE") or None,
            cache_key=variables.get("TC_CACHE_KEY") or None,
            cuda_runtime=variables.get("TC_CUDA_RUNTIME") or None,
            sync=variables.get("TC_SYNC", "") not in ("", "0"),
        )


def _cache_home(variables: Mapping[str, str]) -> str | None:
    # The XDG specification: a relative path is invalid and must be ignored.
    chosen = variables.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):
        return chosen
    home = variables.get("HOME", "")
    return os.path.join(home, ".cache") if os.path.isabs(home) else None


@functools.cache
def environment() -> Environment:
    """The environment of this process, as it was when first asked for."""
    return Environment.read(os.environ)
