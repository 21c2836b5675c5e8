"""A shipped file holds what production needs, alone and whole."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tests.cache.content_support import content
from tests.cache.samples import MACHINE, OTHER_MACHINE, fill, filled, kernel, measurement, run, text, trial, variant
from tests.turns import one_in


def test_winners_and_what_was_never_measured_are_shipped(where: str, tmp_path: Path) -> None:
    store = Store.open(where)
    winner, loser, elsewhere = (variant(0, f'{{"a": {n}}}') for n in range(3))
    for one, seconds in ((winner, 1.0), (loser, 2.0)):
        store.add_variant(kernel(0), one)
        store.add_measurement(measurement(one, seconds))
    store.add_variant(kernel(0), elsewhere)
    store.add_measurement(measurement(elsewhere, 5.0, OTHER_MACHINE))
    store.add_variant(kernel(1), variant(1))
    store.add_kernel(kernel(2))
    store.add_trial(trial(1, 2))
    store.add_run(run())
    store.add_text(text())
    ship(where, tmp_path / "ship.db")
    reader = Reader.open(tmp_path / "ship.db", immutable=True)
    assert reader.winner(kernel(0).key, MACHINE, 2) == winner
    assert reader.winner(kernel(0).key, OTHER_MACHINE, 2) == elsewhere
    assert reader.variant(kernel(0).key, loser.options) is None
    assert reader.variant(kernel(1).key, "{}") == variant(1)
    assert reader.text(text().key) == text()
    shipped = content(tmp_path / "ship.db")
    assert len(shipped["kernels"]) == 2
    assert (shipped["trials"], shipped["runs"]) == ([], [])
    ship(where, tmp_path / "trials.db", trials=True)
    shipped = content(tmp_path / "trials.db")
    assert [len(shipped[name]) for name in ("kernels", "trials", "runs")] == [3, 1, 1]
    assert verify(tmp_path / "trials.db") == ()


@one_in(2)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_shipped_wins_as_before(tmp_path: Path, seed: int) -> None:
    source = filled(tmp_path / "source.db", seed, count=10)
    ship(source, tmp_path / "ship.db")
    before, after = Reader.open(source), Reader.open(tmp_path / "ship.db", immutable=True)
    for number, machine, threads in itertools.product(range(10), (MACHINE, OTHER_MACHINE, "third"), (1, 2, 3)):
        key = kernel(number).key
        assert after.winner(key, machine, threads) == before.winner(key, machine, threads)
    assert after.compilers("cpu", "x86-64-v3") == before.compilers("cpu", "x86-64-v3")


def test_the_file_is_alone_compact_and_for_everybody_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    ship(filled(tmp_path / "source.db"), folder / "ship.db")
    assert [file.name for file in folder.iterdir()] == ["ship.db"]
    assert (folder / "ship.db").stat().st_mode & 0o777 == 0o644
    with closing(sqlite3.connect(folder / "ship.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_an_old_file_is_replaced_all_at_once_or_not_at_all(tmp_path: Path) -> None:
    target = filled(tmp_path / "target.db", 1)
    old = Reader.open(target, immutable=True)
    before, manifest = target.read_bytes(), old.manifest()
    source = filled(tmp_path / "source.db", 2)
    with Store.open(source).transaction() as connection:
        connection.exec_driver_sql("UPDATE variants SET source = 'evil'")
    with pytest.raises(CacheError, match=r"is damaged: .* does not match its hash"):
        ship(source, target)
    assert target.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source.db", "target.db"]
    ship(filled(tmp_path / "good.db", 3), target)
    assert old.manifest() == manifest
    assert Reader.open(target, immutable=True).manifest() != manifest


def test_a_disk_that_is_full_leaves_nothing_behind(disk: Callable[[str], Path], tmp_path: Path) -> None:
    source = tmp_path / "source.db"
    store = Store.open(source)
    for number in range(10):
        store.add_variant(kernel(number), variant(number, size=50_000))
    folder = disk("size=400k")
    with pytest.raises(CacheError, match=r"cannot grow|cannot be read or written"):
        ship(source, folder / "ship.db")
    assert list(folder.iterdir()) == []


def test_seals_are_kept_or_made(tmp_path: Path) -> None:
    unsealed, sealed, target = filled(tmp_path / "u.db"), filled(tmp_path / "s.db", key=b"secret"), tmp_path / "t.db"
    ship(sealed, target, key=b"secret")
    assert verify(target, key=b"secret") == ()
    with pytest.raises(CacheError, match="is not sealed; use the key"):
        ship(unsealed, target, key=b"secret")
    assert verify(target, key=b"secret") == ()
    ship(unsealed, target, seal=b"secret")
    assert verify(target, key=b"secret") == ()
    ship(sealed, target, key=b"secret", seal=b"another")
    assert verify(target, key=b"another") == ()


def test_places_that_cannot_be_replaced_are_refused(tmp_path: Path) -> None:
    source = filled(tmp_path / "source.db")
    with pytest.raises(CacheError, match=r"only files are shipped, not postgresql.*; name a file, or merge into the"):
        ship(source, "postgresql://host/db")
    (tmp_path / "link.db").symlink_to(source)
    for own in (source, tmp_path / "link.db"):
        with pytest.raises(CacheError, match="cannot be shipped in its own place, where trials would be lost; name"):
            ship(source, own)
    target = filled(tmp_path / "target.db")
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("SELECT count(*) FROM kernels").fetchall()
        with pytest.raises(CacheError, match=r"target.db is being written by another process; name another file"):
            ship(source, target)
    with pytest.raises(CacheError, match=r"none.db does not exist; make a cache with tc-tune"):
        ship(tmp_path / "none.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_shipped_file_can_be_written_again(tmp_path: Path) -> None:
    ship(filled(tmp_path / "source.db"), tmp_path / "ship.db")
    fill(Store.open(tmp_path / "ship.db"), 5)
    assert verify(tmp_path / "ship.db") == ()
