"""What was added is there, once, and nothing is there by halves."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tests.cache.samples import (
    DAWN,
    MACHINE,
    OTHER_MACHINE,
    filled,
    kernel,
    measurement,
    native,
    run,
    text,
    trial,
    variant,
)
from tests.programs import run as run_program
from tests.waiting import PATIENCE


def test_what_was_added_comes_back(where: str) -> None:
    store = Store.open(where, now=lambda: DAWN)
    store.add_variant(kernel(), variant())
    store.add_measurement(measurement(variant()))
    store.add_text(text())
    store.add_native(native())
    store.add_run(run())
    store.add_trials(trial(number) for number in range(5))
    reader = Reader.open(where)
    assert reader.winner(kernel().key, MACHINE, 2) == variant()
    assert reader.variant(kernel().key, "{}") == variant()
    assert reader.text(text().key) == text()
    assert reader.native("pool", MACHINE, native().source) == native()
    assert store.runs() == (run(),)
    assert store.trials(kernel().key, MACHINE, 2) == tuple(trial(number) for number in range(5))
    assert verify(where) == ()


def test_adding_again_changes_nothing(where: str) -> None:
    store = Store.open(where)
    manifests = []
    for _ in range(2):
        store.add_kernel(kernel())
        store.add_variant(kernel(), variant())
        store.add_measurements([measurement(variant()), measurement(variant())])
        store.add_text(text())
        store.add_native(native())
        store.add_run(run())
        store.add_trial(trial(1))
        manifests.append(Reader.open(where).manifest())
    assert manifests[0] == manifests[1]
    assert store.trials(kernel().key, MACHINE, 2) == (trial(1),)
    assert store.runs() == (run(),)


def test_the_first_of_two_with_the_same_identity_stays_unless_it_is_replaced(where: str) -> None:
    store = Store.open(where)
    first, second = variant(), replace(variant(), source="another")
    store.add_variant(kernel(), first)
    store.add_measurement(measurement(first))
    store.add_variant(kernel(), second)
    assert Reader.open(where).variant(kernel().key, "{}", 2) == first
    store.add_variant(kernel(), second, replace=True)
    assert Reader.open(where).variant(kernel().key, "{}", 2) == second
    assert verify(where) == ()


def test_trials_belong_to_a_kernel_a_machine_and_a_number_of_threads(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel(0))
    store.add_kernel(kernel(1))
    others = [trial(1, 1), trial(2, machine=OTHER_MACHINE), trial(3, threads=1)]
    store.add_trials([trial(0), *others])
    assert store.trials(kernel().key, MACHINE, 2) == (trial(0),)
    assert store.trials("unknown", MACHINE, 2) == ()


def test_a_variant_of_another_kernel_is_refused(where: str) -> None:
    store = Store.open(where)
    with pytest.raises(CacheError, match="cannot be stored under the ingredients of another kernel; give its own"):
        store.add_variant(kernel(1), variant(0))


def test_an_executable_is_stored_with_all_that_it_needs_or_not_at_all(where: str) -> None:
    store = Store.open(where)
    with pytest.raises(CacheError, match=r"cannot be used|cannot hold such a value"):
        store.add_executable(kernel(), replace(variant(), threads=2**64), text(), [native()])
    with pytest.raises(CacheError, match="cannot be stored under the ingredients of another kernel; give its own"):
        store.add_executable(kernel(1), variant(0), text(), [native()])
    assert store.reader.text(text().key) is None
    store.add_executable(kernel(), variant(), text(), [native()])
    assert store.reader.text(text().key) == text()
    assert store.reader.variant(kernel().key, variant().options) == variant()


def test_records_that_refer_to_nothing_are_refused_all_together(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    unknown = "does not hold the kernel or variant that a record refers to; add that first"
    with pytest.raises(CacheError, match=unknown):
        store.add_trials([trial(0), trial(1, 7)])
    with pytest.raises(CacheError, match=unknown):
        store.add_measurement(measurement(variant()))
    assert store.trials(kernel().key, MACHINE, 2) == ()


def test_values_that_no_database_holds_are_refused(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    with pytest.raises(CacheError, match=r"cannot be used|cannot hold such a value"):
        store.add_trial(replace(trial(), number=2**64))
    with pytest.raises(CacheError, match=r"cannot be used|cannot hold such a value"):
        store.add_text(replace(text(), definitions="\udc80"))
    with pytest.raises(CacheError, match="holds a number that is not finite"):
        store.add_trial(replace(trial(), seconds=float("nan")))
    assert store.trials(kernel().key, MACHINE, 2) == ()


@pytest.mark.parametrize("name", ["'; DROP TABLE kernels; --", '"', ":name", "%s", "\\", "ä\n\u2028", "x" * 100_000])
def test_names_are_never_statements(where: str, name: str) -> None:
    store = Store.open(where)
    odd = replace(kernel(), program=name, target=name, compiler=name)
    one = replace(variant(), kernel=odd.key, options=name, origin=name)
    store.add_variant(odd, one)
    store.add_measurement(measurement(one, machine=name))
    store.add_native(replace(native(), name=name))
    reader = Reader.open(where)
    assert reader.winner(odd.key, name, 2) == one
    assert reader.variant(odd.key, name) == one
    assert reader.native(name, MACHINE, native().source) == replace(native(), name=name)
    assert reader.compilers(name, odd.architecture) == (name,)
    assert reader.nearest(odd) == (odd, ())
    assert reader.text(name) is None
    assert verify(where) == ()


def test_threads_share_a_store(where: str) -> None:
    store = Store.open(where)
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(store.add_variant, kernel(n), variant(n)) for n in range(40)]:
            done.result(PATIENCE)
    reader = Reader.open(where)
    assert all(reader.variant(kernel(n).key, "{}") == variant(n) for n in range(40))


def test_the_child_of_a_fork_shares_a_store(tmp_path: Path) -> None:
    run_program(
        f"""
import os
from tc.cache.content.store import Store
from tc.cache.content.lookup import Reader
from tests.cache.samples import kernel, variant
store = Store.open({str(tmp_path / "cache.db")!r})
store.add_variant(kernel(0), variant(0))
reader = Reader.open({str(tmp_path / "cache.db")!r})
assert reader.variant(kernel(0).key, "{{}}") == variant(0)
child = os.fork()
store.add_variant(kernel(1 if child else 2), variant(1 if child else 2))
assert reader.variant(kernel(0).key, "{{}}") == variant(0)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert all(reader.variant(kernel(n).key, "{{}}") == variant(n) for n in range(3))
"""
    )


def test_files_are_closed_when_nothing_happens(tmp_path: Path) -> None:
    filled(tmp_path / "cache.db")
    assert [file.name for file in tmp_path.iterdir()] == ["cache.db"]


def test_a_full_disk_keeps_what_was_committed(disk: Callable[[str], Path]) -> None:
    path = disk("size=600k") / "cache.db"
    store = Store.open(path)
    added: list[int] = []

    def add_for_ever() -> None:
        for number in itertools.count():
            store.add_variant(kernel(number), variant(number, size=20_000))
            added.append(number)

    with pytest.raises(CacheError, match=r"cannot grow, so nothing of this write was kept|cannot be read or written"):
        add_for_ever()
    reader = Reader.open(path)
    assert len(added) > 5
    assert all(reader.variant(kernel(n).key, "{}") == variant(n, size=20_000) for n in added)
    assert reader.variant(kernel(len(added)).key, "{}") is None
    assert verify(path) == ()


def test_a_disk_without_room_for_any_cache_says_so(disk: Callable[[str], Path]) -> None:
    with pytest.raises(CacheError, match=r"cannot grow|cannot be read or written|cannot be opened"):
        Store.open(disk("size=16k") / "cache.db")


def test_a_file_that_may_not_grow_keeps_what_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = Store.open(path)
    store.add_variant(kernel(), variant())

    def cramped() -> None:
        with store.transaction() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 40")
            connection.exec_driver_sql("INSERT INTO texts VALUES ('a', 'b', 'c', 'd', 'e', zeroblob(1000000))")

    with pytest.raises(CacheError, match=r"cannot grow, so nothing of this write was kept .*; free some space or run"):
        cramped()
    assert verify(path) == ()
    assert Reader.open(path).variant(kernel().key, "{}") == variant()


def test_a_read_only_disk_is_not_written(disk: Callable[[str], Path]) -> None:
    folder = disk("size=1m")
    filled(folder / "cache.db")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with pytest.raises(CacheError, match=r"cannot be written|cannot be opened|Read-only file system"):
        Store.open(folder / "cache.db")
    with pytest.raises(CacheError, match="cannot be written: its folder can only be read by this process"):
        Store.open(folder / "new.db")


def test_others_may_read_what_only_we_may_write() -> None:
    """In a folder of root, and read by another user; or, without root, in a folder that may not be written."""
    with tempfile.TemporaryDirectory(prefix="tc-") as name:
        log, no_log = filled(Path(name, "log.db")), filled(Path(name, "no_log.db"))
        with closing(sqlite3.connect(no_log)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        log.chmod(0o444)
        no_log.chmod(0o444)
        Path(name).chmod(0o555)
        run_program(
            f"""
import os
from pathlib import Path
import pytest
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tc.base.errors import CacheError
log, no_log = Path({str(log)!r}), Path({str(no_log)!r})
if os.geteuid() == 0:
    os.seteuid(65534)
for path in (log, no_log):
    with pytest.raises(CacheError, match="cannot be written: its folder can only be read by this process; name a"):
        Store.open(path)
with pytest.raises(CacheError, match="cannot be written: its folder can only be read by this process; name a"):
    Store.open(log.with_name("new.db"))
assert Reader.open(log).manifest() == Reader.open(log, immutable=True).manifest()
manifest = Reader.open(no_log).manifest()
assert Reader.open(no_log, immutable=True).manifest() == manifest
assert Reader.open(log, immutable=True).manifest() != ""
"""
        )
        Path(name).chmod(0o755)


def test_nothing_remains_of_a_transaction_that_fails(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    rows = [trial(1), replace(trial(2), kernel="unknown")]
    for _ in range(2):
        with pytest.raises(CacheError):
            store.add_trials(rows)
    assert store.trials(kernel().key, MACHINE, 2) == ()
    store.add_trials(rows[:1])
    assert store.trials(kernel().key, MACHINE, 2) == (trial(1),)


def test_a_server_that_is_not_there_is_an_error() -> None:
    url = "postgresql://me:secret@127.0.0.1:1/none"
    for use in (Store.open, Reader.open):
        with pytest.raises(CacheError, match=r"^postgresql.*(check that the server runs|needs a driver)") as caught:
            use(url)
        assert "secret" not in str(caught.value)


def test_a_url_that_means_nothing_is_an_error() -> None:
    for use in (Store.open, Reader.open):
        with pytest.raises(CacheError, match=r"postgresql\+nothing://host/db cannot be used: .*nothing"):
            use("postgresql+nothing://host/db")
