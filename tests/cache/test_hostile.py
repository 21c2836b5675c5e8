"""Files that others made, or that the disk has spoiled: what is read is right, or it is a CacheError."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tc.base.errors import CacheError
from tc.cache.content.difference import diff
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.merge import merge
from tc.cache.content.prune import prune
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tests.cache.samples import (
    MACHINE,
    OTHER_MACHINE,
    filled,
    kernel,
    measurement,
    native,
    text,
    trial,
    variant,
)
from tests.turns import every, one_in

KERNELS: Final = 8


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a shipped file."""
    folder = tmp_path_factory.mktemp("sound")
    store = Store.open(folder / "cache.db")
    for number in range(KERNELS):
        one = variant(number, size=3000)
        store.add_variant(kernel(number), one)
        store.add_measurement(measurement(one, 1.0 + number))
        store.add_text(text(number))
        store.add_native(native(number))
        store.add_trials(trial(n, number) for n in range(3))
    ship(folder / "cache.db", folder / "ship.db", trials=True)
    return (folder / "ship.db").read_bytes()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of another sound file."""
    return filled(tmp_path_factory.mktemp("other") / "cache.db", 1, count=2).read_bytes()


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def questions(reader: Reader) -> Iterator[tuple[object, object]]:
    """Every answer that a sound reader gives, and what is right; CacheError instead of an answer ends one question."""
    for number in range(KERNELS + 1):
        key, one = kernel(number).key, variant(number, size=3000)
        yield from asked(partial(reader.winner, key, MACHINE, 2), one)
        yield from asked(partial(reader.variant, key, "{}"), one)
        yield from asked(partial(reader.text, text(number).key), text(number))
        yield from asked(partial(reader.native, "pool", MACHINE, native(number).source), native(number))
    every = {kernel(number) for number in range(KERNELS)}
    for found, _ in asked(lambda: reader.nearest(kernel()), None):
        assert found is None or (isinstance(found, tuple) and found[0] in every)
    for found, _ in asked(lambda: reader.trials(kernel().key, MACHINE, 2), None):
        assert isinstance(found, tuple)
        assert set(found) <= {trial(n) for n in range(20)}
    for _ in asked(reader.manifest, None):
        pass
    for _ in asked(lambda: reader.compilers("cpu", "x86-64-v3"), None):
        pass


def asked(question: Callable[[], object], right: object) -> Iterator[tuple[object, object]]:
    try:
        answer = question()
    except CacheError:
        return
    yield answer, right


def examine(path: Path) -> None:
    """Asks everything of a file that is not what it was; every answer is right, missing or a CacheError."""
    for immutable in (True, False):
        try:
            reader = Reader.open(path, immutable=immutable)
        except CacheError:
            continue
        for answer, right in questions(reader):
            assert answer is None or answer == right
    assert isinstance(verify(path), tuple)


def use(path: Path, folder: Path, other: bytes) -> None:
    """Does to a file what commands do; nothing but CacheError may come of it."""
    sane = put(folder / "other.db", other)
    actions: tuple[Callable[[], object], ...] = (
        lambda: merge(sane, [path]),
        lambda: diff(sane, path),
        lambda: ship(path, folder / "shipped.db"),
        lambda: Store.open(path).add_variant(kernel(30), variant(30)),
        lambda: Store.open(path).add_trials(trial(n, 0) for n in range(20)),
        lambda: prune(path, largest=1),
    )
    for action in actions:
        try:
            action()
        except CacheError:
            continue


@one_in(2)
@pytest.mark.parametrize("seed", every(6, range(100)))
def test_flipped_bits_are_noticed_or_do_no_harm(sound: bytes, other: bytes, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    content = bytearray(sound)
    # One bit somewhere, or several in the pages that hold the structure.
    for _ in range(random.choice((1, 1, 4))):
        content[random.randrange(len(content) if seed % 2 else 8192)] ^= 1 << random.randrange(8)
    path = put(tmp_path / "cache.db", bytes(content))
    examine(path)
    if seed % 5 == 0:
        use(path, tmp_path, other)


@one_in(2)
@pytest.mark.parametrize("seed", every(2, range(20)))
def test_pages_of_noise_are_noticed(sound: bytes, other: bytes, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    page = random.randrange(len(sound) // 4096) * 4096
    path = put(tmp_path / "cache.db", sound[:page] + random.randbytes(4096) + sound[page + 4096 :])
    examine(path)
    use(path, tmp_path, other)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_truncated_files_are_noticed(sound: bytes, other: bytes, tmp_path: Path, part: float) -> None:
    path = put(tmp_path / "cache.db", sound[: int(part * len(sound))])
    examine(path)
    assert verify(path) != ()
    use(path, tmp_path, other)


@pytest.mark.parametrize("seed", range(10))
def test_a_spoiled_log_is_noticed_or_does_no_harm(tmp_path: Path, seed: int) -> None:
    """SQLite takes from a log the transactions before the damage."""
    path = tmp_path / "cache.db"
    with closing(sqlite3.connect(path)) as connection:
        store = Store.open(path)
        connection.execute("SELECT count(*) FROM kernels").fetchall()
        for number in range(KERNELS):
            store.add_variant(kernel(number), variant(number, size=3000))
        log = bytearray(path.with_name("cache.db-wal").read_bytes())
        content = path.read_bytes()
    random = Random(seed)
    log[random.randrange(len(log))] ^= 1 << random.randrange(8)
    copy = put(tmp_path / "copy.db", content)
    put(tmp_path / "copy.db-wal", bytes(log))
    examine(copy)


def test_random_bytes_are_no_cache(tmp_path: Path) -> None:
    path = put(tmp_path / "cache.db", os.urandom(10_000))
    for attempt in (Reader.open, Store.open):
        with pytest.raises(CacheError, match="is not a cache of tc \\(file is not a database\\); name another file"):
            attempt(path)


def altered(path: Path, sound: bytes, *statements: str) -> Path:
    put(path, sound)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement)
    return path


def test_files_of_other_applications_are_left_alone(tmp_path: Path) -> None:
    path = altered(tmp_path / "cache.db", b"", "CREATE TABLE bookmarks (url)", "INSERT INTO bookmarks VALUES ('x')")
    before = path.read_bytes()
    with pytest.raises(CacheError, match="belongs to another application; name another file or database"):
        Store.open(path)
    with pytest.raises(CacheError, match=r"belongs to another application, or lost a part .*; name another file"):
        Reader.open(path)
    assert path.read_bytes() == before


CODE: Final = {
    "view": (
        "DROP TABLE texts",
        "CREATE VIEW texts AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n",
    ),
    "trigger": ("CREATE TRIGGER evil AFTER INSERT ON kernels BEGIN DELETE FROM variants; END",),
    "table": ("CREATE VIRTUAL TABLE evil USING fts5(x)",),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "statements"), CODE.items())
def test_files_that_run_code_are_refused(sound: bytes, tmp_path: Path, kind: str, statements: tuple[str, ...]) -> None:
    path = altered(tmp_path / "cache.db", sound, *statements)
    for attempt in (Reader.open, Store.open):
        with pytest.raises(CacheError, match=f"is not a cache of tc: it holds the {kind} '.*'; do not use this file"):
            attempt(path)


_LOOSE: Final = "replace(replace(replace(sql, 'NOT NULL', ''), 'TEXT', ''), 'BLOB', '')"
VALUES: Final = (
    "NULL",
    "7",
    "1.5",
    "x'ff00'",
    "CAST(x'ff80' AS TEXT)",
    "'x'",
    "9223372036854775807",
    "zeroblob(1000000)",
)
COLUMNS: Final = (
    *(f"variants.{name}" for name in ("identity", "digest", "kernel", "threads", "options", "source", "binary")),
    *(f"measurements.{name}" for name in ("variant", "seconds", "samples", "at", "digest", "machine")),
    *(f"texts.{name}" for name in ("identity", "key", "definitions", "digest", "seal", "created")),
    *(f"trials.{name}" for name in ("samples", "seconds", "number")),
    *(f"kernels.{name}" for name in ("key", "program_hash", "shapes", "created")),
    *(f"meta.{name}" for name in ("name", "value")),
    "natives.binary",
    "compilers.compiler",
)


@pytest.mark.parametrize("column", every(6, COLUMNS))
def test_values_of_other_types_are_noticed(sound: bytes, other: bytes, tmp_path: Path, column: str) -> None:
    table, name = column.split(".")
    for value in VALUES:
        # Columns that are never NULL or unique in our files can be anything in those of others.
        loosened = (
            "PRAGMA writable_schema = ON",
            f"UPDATE sqlite_master SET sql = {_LOOSE} WHERE name = '{table}'",
            "PRAGMA writable_schema = RESET",
        )
        change = f"UPDATE OR IGNORE {table} SET {name} = {value} WHERE rowid = 1"
        path = altered(tmp_path / "cache.db", sound, *loosened, change)
        examine(path)
        if value in ("NULL", "x'ff00'"):
            use(path, tmp_path, other)


def test_a_huge_value_is_not_loaded(sound: bytes, tmp_path: Path) -> None:
    size = 300 * 1024 * 1024
    path = altered(tmp_path / "cache.db", sound, f"UPDATE natives SET binary = zeroblob({size}) WHERE rowid = 1")
    answers = list(questions(Reader.open(path, immutable=True)))
    assert all(answer is None or answer == right for answer, right in answers)
    assert any("holds a value too big to be real" in complaint for complaint in verify(path))


def test_a_binary_that_does_not_match_its_hash_is_not_returned(sound: bytes, tmp_path: Path) -> None:
    path = altered(tmp_path / "cache.db", sound, "UPDATE variants SET binary = x'cc'")
    with pytest.raises(
        CacheError, match=r"is damaged: record .* of table variants: its content does not match its hash"
    ):
        Reader.open(path).winner(kernel().key, MACHINE, 2)


def test_whoever_can_make_hashes_cannot_make_seals(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db", key=b"secret")
    Store.open(path, key=b"guess").add_variant(kernel(), variant(options="evil"))
    Store.open(path, key=b"guess").add_measurement(measurement(variant(options="evil"), 1e-9))
    reader = Reader.open(path, key=b"secret")
    for machine, threads in itertools.product((MACHINE, OTHER_MACHINE), (1, 2)):
        with pytest.raises(CacheError, match="bears the seal of another key"):
            reader.winner(kernel().key, machine, threads)
    assert any("bears the seal of another key" in complaint for complaint in verify(path, key=b"secret"))
