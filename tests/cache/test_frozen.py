"""Files that do not change, opened where nothing can be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tests.cache.samples import MACHINE, filled, kernel, measurement, text, variant
from tests.programs import run as run_program
from tests.waiting import PATIENCE


def test_a_read_only_file_system_is_no_obstacle(disk: Callable[[str], Path], tmp_path: Path) -> None:
    folder = disk("size=1m")
    ship(filled(tmp_path / "cache.db"), folder / "cache.db")
    expected = Reader.open(folder / "cache.db").manifest()
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    assert Reader.open(folder / "cache.db", immutable=True).manifest() == expected
    assert Reader.open(folder / "cache.db").manifest() == expected
    assert [file.name for file in folder.iterdir()] == ["cache.db"]


def test_an_unmerged_log_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM kernels").fetchall()
        Store.open(path).add_text(text(99))
        copy = tmp_path / "copy"
        copy.mkdir(mode=0o755)
        for file in tmp_path.glob("cache.db*"):
            shutil.copy(file, copy)
    with pytest.raises(CacheError) as caught:
        Reader.open(copy / "cache.db", immutable=True)
    assert str(caught.value) == (
        f"{copy / 'cache.db'} is not complete: cache.db-wal beside it holds transactions that are not merged into it; "
        "make a file for read-only use with `tc-cache export --ship`"
    )
    assert Reader.open(copy / "cache.db").text(text(99).key) == text(99)
    assert Reader.open(copy / "cache.db", immutable=True).text(text(99).key) == text(99)


def test_an_empty_log_is_nothing_to_merge(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    log = path.with_name("cache.db-wal")
    log.touch(mode=0o600)
    assert Reader.open(path, immutable=True).manifest() == Reader.open(path, immutable=True).manifest()


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    before = path.read_bytes()
    reader = Reader.open(path, immutable=True)
    reader.winner(kernel(1).key, MACHINE, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["cache.db"]
    assert path.read_bytes() == before


def test_threads_share_a_reader(tmp_path: Path) -> None:
    reader = Reader.open(filled(tmp_path / "cache.db"), immutable=True)
    expected = [reader.winner(kernel(n).key, MACHINE, 2) for n in range(6)]
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(reader.winner, kernel(n % 6).key, MACHINE, 2) for n in range(300)]
        assert [one.result(PATIENCE) for one in found] == expected * 50


def test_a_file_that_is_replaced_stays_what_it_was(tmp_path: Path) -> None:
    path, other = filled(tmp_path / "cache.db", 1), filled(tmp_path / "other.db", 2)
    reader = Reader.open(path, immutable=True)
    before = reader.manifest()
    other.replace(path)
    assert reader.manifest() == before
    assert Reader.open(path, immutable=True).manifest() != before


def test_children_of_a_fork_read_the_same_file_or_none(tmp_path: Path) -> None:
    path, other = tmp_path / "cache.db", filled(tmp_path / "other.db", 2)
    store = Store.open(path)
    store.add_variant(kernel(), variant())
    store.add_measurement(measurement(variant()))
    run_program(
        f"""
import os, threading
from pathlib import Path
from tc.cache.content.lookup import Reader
from tc.base.errors import CacheError
from tests.cache.samples import MACHINE, kernel, variant
reader = Reader.open({str(path)!r}, immutable=True)

def read():
    assert reader.winner(kernel().key, MACHINE, 2) == variant()

def in_a_child(work):
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]

# A thread of the parent that reads at the moment of the fork holds the lock for ever, as the child sees it.
stop = threading.Event()
def read_on():
    while not stop.is_set():
        read()
thread = threading.Thread(target=read_on)
thread.start()
for _ in range(20):
    assert in_a_child(read) == 0
stop.set()
thread.join()

os.replace({str(other)!r}, {str(path)!r})
def refuse():
    try:
        reader.manifest()
    except CacheError as error:
        assert str(error) == {str(path)!r} + " was replaced while this program runs; start the program again", error
    else:
        raise AssertionError
assert in_a_child(refuse) == 0
read()
"""
    )


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "cache.db")
    monkeypatch.chdir(tmp_path)
    reader = Reader.open("cache.db")
    before = reader.manifest()
    monkeypatch.chdir(os.sep)
    assert reader.manifest() == before
