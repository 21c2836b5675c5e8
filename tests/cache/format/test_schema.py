"""Tables are made, brought up to date and recognized."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tc.base.errors import CacheError
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tc.cache.format.schema import MIGRATIONS, migrate
from tc.cache.format.schema_version import VERSION, require_readable, version_of
from tests.cache.samples import fill, filled, kernel, set_version


def note(connection: Connection) -> None:
    """A migration of the future."""
    connection.execute(text("ALTER TABLE kernels ADD COLUMN note TEXT NOT NULL DEFAULT ''"))


def break_down(connection: Connection) -> None:
    note(connection)
    raise RuntimeError("no luck")


def test_the_version_counts_the_migrations() -> None:
    assert len(MIGRATIONS) == VERSION


def test_opening_again_changes_nothing(where: str) -> None:
    fill(Store.open(where), 1)
    before = Reader.open(where).manifest()
    Store.open(where)
    assert Reader.open(where).manifest() == before


def test_a_migration_keeps_what_is_there(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    with store.transaction() as connection:
        migrate(connection, "here", (*MIGRATIONS, note))
        migrate(connection, "here", (*MIGRATIONS, note))
    with store.transaction() as connection:
        assert connection.execute(text("SELECT key, note FROM kernels")).all() == [(kernel().key, "")]
        assert connection.execute(text("SELECT value FROM meta WHERE name = 'version'")).scalar() == str(VERSION + 1)


def test_a_migration_that_fails_leaves_the_old_version(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    with pytest.raises(RuntimeError, match="no luck"), store.transaction() as connection:
        migrate(connection, "here", (*MIGRATIONS, break_down))
    with store.transaction() as connection:
        assert connection.execute(text("SELECT value FROM meta WHERE name = 'version'")).scalar() == str(VERSION)
        migrate(connection, "here", (*MIGRATIONS, note))


def test_newer_versions_are_refused_and_left_alone(where: str) -> None:
    store = Store.open(where)
    with store.transaction() as connection:
        migrate(connection, "here", (*MIGRATIONS, note))
    message = f"was written by a newer tc: its tables have version {VERSION + 1}, and this tc knows {VERSION}; install"
    for use in (Store.open, Reader.open):
        with pytest.raises(CacheError, match=message):
            use(where)


def test_newer_files_are_not_touched(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    set_version(path, "999")
    before = path.read_bytes()
    for use in (Store.open, Reader.open):
        with pytest.raises(CacheError, match="was written by a newer tc: its tables have version 999"):
            use(path)
    assert path.read_bytes() == before


def test_older_versions_are_read_after_they_were_written() -> None:
    meta: dict[object, object] = {"application": "tc kernel cache", "version": str(VERSION - 1)}
    with pytest.raises(CacheError, match=r"here was written by an older tc: its tables have version .*; open it once"):
        require_readable(meta, "here")
    assert version_of(meta, "here") == VERSION - 1


@pytest.mark.parametrize("version", ["", "-1", "1.0", "one", None, "\u0661", "9" * 10_000])
def test_what_is_no_version_is_damage(version: object) -> None:
    with pytest.raises(CacheError, match="here is damaged: it has no version; restore the file from a copy"):
        version_of({"application": "tc kernel cache", "version": version}, "here")


def test_tables_of_others_are_left_alone(where: str) -> None:
    store = Store.open(where)
    for statements in (["UPDATE meta SET value = 'another' WHERE name = 'application'"], ["DELETE FROM meta"]):
        with store.transaction() as connection:
            for statement in statements:
                connection.execute(text(statement))
        for use in (Store.open, Reader.open):
            with pytest.raises(CacheError, match="belongs to another application; name another file or database"):
                use(where)
    with store.transaction() as connection:
        connection.execute(text("DROP TABLE meta"))
    with pytest.raises(CacheError, match="belongs to another application; name another file or database"):
        Store.open(where)
    with pytest.raises(CacheError, match="meta"):
        Reader.open(where)
