"""What names a file and what a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.database.place import File, Server, place_of


def test_files_are_absolute_and_free_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    expected = File(str((tmp_path / "real.db").resolve()))
    for name in ("real.db", "link.db", "./real.db", "sqlite:///real.db", f"sqlite:///{tmp_path}/real.db"):
        assert place_of(name) == expected
        assert str(place_of(name)) == str(expected.path)
    assert place_of(Path("real.db")) == expected


def test_odd_names_are_files(tmp_path: Path) -> None:
    for name in ("a?b.db", "a#b.db", "100%.db", "'; DROP TABLE kernels; --.db", "ä\n.db"):
        assert place_of(tmp_path / name) == File(str((tmp_path / name).resolve()))


def test_servers_keep_their_password_to_themselves() -> None:
    place = place_of("postgresql://me:secret@host/db")
    assert place == Server("postgresql+psycopg://me:secret@host/db")
    assert str(place) == "postgresql+psycopg://me:***@host/db"
    assert str(place_of("postgres://host/db?password=secret&a=b")) == "postgresql+psycopg://host/db?password=***&a=b"
    assert place_of("postgresql+asyncpg://host/db") == Server("postgresql+asyncpg://host/db")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://host/x", "sqlite:///x?a=b"])
def test_urls_of_no_file_are_refused(url: str) -> None:
    with pytest.raises(CacheError, match="names no file; write sqlite:///relative/path or sqlite:////absolute/path"):
        place_of(url)


def test_other_databases_are_refused() -> None:
    with pytest.raises(CacheError, match="a cache cannot live in mysql; name a file, or a URL of sqlite or postgresql"):
        place_of("mysql+pymysql://host/db")


def test_names_that_no_file_can_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"cannot be the name of a file .*; name another one"):
        place_of("a\0b")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(CacheError, match="cannot be"):
        place_of(tmp_path / "circle")
