"""``Access``: the cache of a process, opened when it is first used; and which of its faults stop the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from tc.base.environment import Environment
from tc.base.errors import CacheError, CacheWarning
from tc.base.once import Once
from tc.base.warn import warn
from tc.cache.content.configured import Configuration, Mode, claim, exists, open_reader
from tc.cache.database.place import place_of
from tc.cache.format.schema_version import OlderVersionError

if TYPE_CHECKING:
    from tc.cache.content.lookup import Reader
    from tc.cache.content.store import Store

# The user's own cache does not grow beyond; what was tuned, and is the best, always stays.
_OWN_BYTES: Final = 1 << 30


class Access:
    """Safe from many threads.

    Faults of a cache that was named are CacheErrors; those of the user's default cache are warnings, and the process
    goes on without it.  ``beside``: another access to the cache, which has said some of them perhaps.
    """

    def __init__(self, configuration: Configuration, settings: Environment, beside: Access | None = None) -> None:
        self._configuration: Final = configuration
        self._settings: Final = settings
        self._said: Final[set[str]] = set() if beside is None else beside._said
        self._store: Final[Once[None, Store]] = Once() if beside is None else beside._store

    @classmethod
    def beside(cls, other: Access) -> Self:
        """The same cache."""
        return cls(other._configuration, other._settings, other)

    @property
    def keeps(self) -> bool:
        """Whether what is missing is made and stored, by the very versions that are here."""
        return self._configuration.mode is Mode.STORE

    def _open_store(self) -> Store:
        from tc.cache.content.store import Store

        claim(self._configuration)
        return Store.open(self._configuration.where, key=self._configuration.key)

    def _limit(self) -> None:
        """Prunes the user's own cache where it has become too large."""
        if self._configuration.own:
            from tc.cache.content.prune import limit

            limit(self._configuration.where, _OWN_BYTES)

    def _reader(self) -> Reader | None:
        """None where nothing has been kept yet, which only a cache that is read is blamed for."""
        if not self.keeps:
            return open_reader(self._configuration)
        if not exists(self._configuration):
            return None
        try:
            return open_reader(self._configuration)
        except OlderVersionError:
            self._store.get(None, self._open_store)  # which brings the tables up to date
            return open_reader(self._configuration)

    def _damaged(self, what: str) -> CacheError:
        return CacheError(f"{self._place} holds what tc did not make: {what}; restore the file, or delete it")

    @property
    def _place(self) -> str:
        """For messages: a password has no place in them."""
        return str(place_of(self._configuration.where))

    @contextmanager
    def _forgiven(self) -> Iterator[None]:
        try:
            yield
        except CacheError as error:
            if not self._configuration.own:
                raise
            self._say_once("read", f"the cache of compiled kernels is not used: {error}")

    def _say_once(self, kind: str, message: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            warn(message, CacheWarning)
