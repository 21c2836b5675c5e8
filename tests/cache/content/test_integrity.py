"""Whatever is wrong with a cache is complained about, all of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tc.cache.content.integrity import verify
from tc.cache.content.store import Store
from tests.cache.samples import fill, filled
from tests.turns import one_in


@pytest.mark.parametrize("key", [None, b"secret"])
def test_a_sound_cache_gives_no_cause(where: str, key: bytes | None) -> None:
    fill(Store.open(where, key=key), 1)
    assert verify(where, key=key) == ()


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


CHANGES = {
    "UPDATE kernels SET shapes = 'x'": "its ingredients do not match its key",
    "UPDATE kernels SET program_hash = 'x'": "its ingredients do not match its key",
    "UPDATE kernels SET dtypes = x'00'": "dtypes must be str, got b'\\x00'",
    "UPDATE variants SET binary = x'00'": "its content does not match its hash",
    "UPDATE variants SET identity = 'a' || substr(identity, 2)": "its content does not match its hash",
    "UPDATE variants SET digest = x'07'": "digest must be str, got",
    "UPDATE measurements SET variant = 'x'": "measurement without its variant",
    "UPDATE measurements SET at = 'x'": "its content does not match its hash",
    "UPDATE trials SET samples = '[1, 2]'": "samples must be tuple[float, ...], got '[1, 2]'",
    "UPDATE trials SET number = 'x'": "number must be int, got 'x'",
    "UPDATE runs SET name = 'x'": "its content does not match its hash",
    "UPDATE texts SET definitions = ''": "its content does not match its hash",
    "UPDATE natives SET binary = zeroblob(10)": "its content does not match its hash",
    "DELETE FROM variants": "measurement without its variant",
    "DELETE FROM kernels": "variant without its kernel",
    "DELETE FROM compilers": "kernel without its compiler",
    "DELETE FROM meta": "belongs to another application",
}


@one_in(2)
@pytest.mark.parametrize(("statement", "complaint"), CHANGES.items())
def test_every_change_is_noticed(tmp_path: Path, statement: str, complaint: str) -> None:
    path = filled(tmp_path / "cache.db")
    change(path, statement)
    complaints = verify(path)
    assert any(complaint in one for one in complaints), complaints
    assert all(one.startswith(str(path)) for one in complaints)


def test_trials_without_their_kernel_are_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    change(path, "DELETE FROM kernels")
    assert any("trial without its kernel" in one for one in verify(path))


def test_all_complaints_come_at_once(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    change(path, "UPDATE texts SET definitions = ''", "UPDATE natives SET binary = x''")
    with closing(sqlite3.connect(path)) as connection:
        (expected,) = connection.execute(
            "SELECT (SELECT count(*) FROM texts) + (SELECT count(*) FROM natives)"
        ).fetchone()
    assert len(verify(path)) == expected > 2


def test_seals_are_checked_with_a_key(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db", key=b"secret")
    change(path, "UPDATE texts SET seal = ''")
    assert verify(path) == ()
    complaints = verify(path, key=b"secret")
    assert complaints
    assert all("table texts is not sealed" in one for one in complaints)


def test_a_broken_structure_is_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    change(path, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_master WHERE name = 'variants_of_kernel'")
    assert any("never used" in one for one in verify(path))


def test_what_is_no_cache_is_one_complaint(tmp_path: Path) -> None:
    (complaint,) = verify(tmp_path / "none.db")
    assert "does not exist" in complaint
    (tmp_path / "text.db").write_text("hello " * 1000)
    (tmp_path / "text.db").chmod(0o600)
    (complaint,) = verify(tmp_path / "text.db")
    assert "is not a cache of tc (file is not a database); name another file" in complaint
