"""Compiled kernels, what was measured of them and how they were found, kept in one file or on one server.

``store`` writes, ``lookup`` reads; ``merge``, ``difference``, ``prune``, ``ship`` and ``verify`` work on whole files.
A cache file is code: whoever can write it decides what runs.  ``trust`` says which files are opened at all.
"""

from __future__ import annotations


def manifest() -> str:
    """One hash over all that decides which kernels the cache of this process gives, for processes that must agree.

    CacheError where there is no cache.
    """
    from tc.base.environment import environment
    from tc.base.errors import CacheError
    from tc.cache.content.configured import configured, open_reader

    configuration = configured(environment())
    if configuration is None:
        raise CacheError("there is no cache whose manifest could be told; name one in TC_CACHE")
    return open_reader(configuration).manifest()
