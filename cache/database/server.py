"""Reading a cache on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from tc.base.frozen import frozen
from tc.cache.database.database import Session
from tc.cache.database.engine import engine_at
from tc.cache.database.place import Server
from tc.cache.format.database_errors import told
from tc.cache.format.rows import Row


@frozen
class ConnectionSession:
    """A session of ``database`` on a connection of SQLAlchemy, to a server or a file."""

    place: str
    connection: Connection

    def rows(self, sql: str, **parameters: str | int) -> Iterator[Row]:
        """As the protocol says."""
        options = {"yield_per": 100}
        with (
            told(self.place, SQLAlchemyError),
            self.connection.execute(text(sql), parameters, execution_options=options) as found,
        ):
            for row in found.mappings():
                yield dict(row)


@frozen
class LiveServer:
    """A database of ``database`` on a server.  Every session has a connection of its own, as for files."""

    place: str
    engine: Engine

    @staticmethod
    def open(server: Server) -> LiveServer:
        """CacheError for a URL that cannot serve; whether a server answers is seen when a session begins."""
        engine = engine_at(server, sealed=False).execution_options(isolation_level="REPEATABLE READ")
        return LiveServer(str(server), engine)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """As the protocol says."""
        with told(self.place, SQLAlchemyError):
            connection = self.engine.connect()
        with connection:
            yield ConnectionSession(self.place, connection)
