"""Many processes write into one cache, and some of them are killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from sqlite3 import connect
from typing import Final

import pytest

from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tests.cache.samples import MACHINE, kernel, native, text, trial, variant
from tests.programs import ROOT
from tests.turns import every
from tests.waiting import PATIENCE, wait_until

WRITERS: Final = 4


def start(where: str | Path, number: int, count: int = 0) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", "tests.cache.writer", str(where), str(number), str(count))
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(writers: list[subprocess.Popen[str]]) -> list[int]:
    """What the writers say is committed, after all have ended well."""
    committed: list[int] = []
    for writer in writers:
        output, errors = writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 0, errors
        committed += map(int, output.split())
    return committed


def wait_while_writing(happened: Callable[[], bool], writers: list[subprocess.Popen[str]]) -> None:
    """Waits for what writers do that write without end; those that have failed will never do it, and say why."""

    def ended() -> list[subprocess.Popen[str]]:
        return [writer for writer in writers if writer.poll() is not None]

    wait_until(lambda: happened() or bool(ended()))
    for writer in ended():
        assert not writer.communicate()[1]


def require_committed(where: str | Path, numbers: list[int]) -> None:
    assert verify(where) == ()
    reader = Reader.open(where)
    for number in numbers:
        assert reader.winner(kernel(number).key, MACHINE, 2) == variant(number, size=2000)
        assert reader.text(text(number).key) == text(number)
        assert reader.native("pool", MACHINE, native(number % 1000).source) == native(number % 1000)
        assert set(reader.trials(kernel(number).key, MACHINE, 2)) == {trial(n, number) for n in range(3)}


def test_many_processes_make_and_fill_one_cache(where: str) -> None:
    count = 10
    committed = finish([start(where, number, count) for number in range(WRITERS)])
    assert len(committed) == WRITERS * count
    require_committed(where, committed)


def test_readers_are_not_disturbed(where: str) -> None:
    store = Store.open(where)
    store.add_variant(kernel(999_999), variant(999_999))
    writers = [start(where, number, 10) for number in range(2)]
    reader = Reader.open(where)
    while any(writer.poll() is None for writer in writers):
        assert reader.variant(kernel(999_999).key, "{}") == variant(999_999)
        assert len(reader.manifest()) == 64
    require_committed(where, finish(writers))


@pytest.mark.parametrize("rounds", every(2, [2, 12]))
def test_what_was_committed_survives_killed_writers(tmp_path: Path, rounds: int) -> None:
    """Each round kills two writers, the first ones while they make the file, and all write into the same one."""
    path = tmp_path / "cache.db"
    random = Random(0)
    committed: list[int] = []
    for round_number in range(rounds):
        writers = [start(path, 2 * round_number + n) for n in range(2)]
        lines = []
        if round_number % 4:
            for writer in writers:
                assert writer.stdout is not None
                lines += [writer.stdout.readline() for _ in range(random.randint(1, 9))]
        else:
            wait_while_writing(path.exists, writers)
        for writer in writers:
            writer.kill()
            output, errors = writer.communicate(timeout=PATIENCE)
            assert errors == ""
            lines += [line + "\n" for line in output.split("\n")[:-1]]
        committed += [int(line) for line in lines]
        if path.exists() and path.stat().st_size:
            assert verify(path) == () or not committed
    assert len(committed) >= rounds
    require_committed(path, committed)
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# What is there when those who make a cache are killed: nothing, an empty file, tables on their way into it, all.
MOMENTS: Final[tuple[Callable[[Path], bool], ...]] = (
    lambda _path: True,
    lambda path: path.exists(),
    lambda path: path.exists() and path.stat().st_size > 0,
    lambda path: path.with_name(f"{path.name}-wal").exists(),
)


@pytest.mark.parametrize("moment", every(4, (2, 0, 1, 3)))
def test_a_cache_that_was_killed_in_the_making_can_be_made(tmp_path: Path, moment: int) -> None:
    path = tmp_path / "cache.db"
    writers = [start(path, number) for number in range(2)]
    wait_while_writing(lambda: MOMENTS[moment](path), writers)
    for writer in writers:
        writer.kill()
        writer.communicate(timeout=PATIENCE)
    require_committed(path, finish([start(path, 9, 2)]))
