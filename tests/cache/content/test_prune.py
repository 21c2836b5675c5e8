"""A cache becomes smaller, and no winner goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.prune import PruneReport, limit, prune
from tc.cache.content.store import Store, iso_time
from tc.cache.format.records import Text
from tests.cache.content_support import Content, content
from tests.cache.samples import (
    MACHINE,
    fill,
    filled,
    kernel,
    library_trial,
    measurement,
    native,
    run,
    text,
    trial,
    variant,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def clock(days: float) -> Callable[[], str]:
    return lambda: iso_time(NOW - timedelta(days=days))


def test_age_takes_all_that_is_old_but_winners(where: str) -> None:
    old, new = Store.open(where, now=clock(90)), Store.open(where, now=clock(1))
    winner, loser = variant(0, '{"a": 1}'), variant(0, '{"a": 2}')
    for one, seconds in ((winner, 1.0), (loser, 2.0)):
        old.add_variant(kernel(0), one)
        old.add_measurement(measurement(one, seconds))
    old.add_variant(kernel(1), variant(1))
    old.add_trials([trial(1, 0), trial(2, 1)])
    old.add_run(run("old"))
    old.add_text(text(0))
    old.add_native(native(0))
    old.add_library_trial(library_trial(0))
    new.add_library_trial(library_trial(1))
    new.add_variant(kernel(2), variant(2))
    new.add_kernel(kernel(4))
    new.add_trial(trial(3, 2))
    new.add_run(run("new"))
    new.add_text(text(1))
    new.add_native(native(1))
    report = prune(where, older_than=timedelta(days=30), now=lambda: NOW)
    assert report.removed == {
        "kernels": 1, "variants": 2, "measurements": 1, "trials": 2, "runs": 1, "texts": 1, "natives": 0, "models": 0,
        "constants": 0, "plans": 0, "library_trials": 1,
    }  # fmt: skip
    reader = Reader.open(where)
    assert reader.winner(kernel(0).key, MACHINE, 2) == winner
    assert reader.variant(kernel(0).key, loser.options) is None
    assert reader.variant(kernel(2).key, "{}") == variant(2)
    assert reader.runs() == (run("new"),)
    assert reader.compilers("cpu", "x86-64-v3") == ("gcc 12",)
    assert verify(where) == ()


def defining(number: int, *programs: str) -> Text:
    """What a text means in which these programs stand."""
    return Text(f"{number:064x}", json.dumps({"definitions": [{"canonical": program} for program in programs]}))


def test_what_a_variant_needs_stays_with_it(where: str) -> None:
    """Texts in which its kernel stands, runs that measured it, and helpers, however old they are."""
    old = Store.open(where, now=clock(90))
    old.add_variant(kernel(0), variant(0))
    old.add_measurement(measurement(variant(0)))
    old.add_run(run())
    needed = (defining(1, kernel(0).program), defining(2, kernel(8).program, kernel(0).program))
    for one in (*needed, defining(3, kernel(8).program), Text(f"{4:064x}", "[" * 100_000), Text(f"{5:064x}", "{}")):
        old.add_text(one)
    for number in range(3):
        old.add_native(native(number))
    report = prune(where, older_than=timedelta(0), now=lambda: NOW)
    assert {name: count for name, count in report.removed.items() if count} == {"texts": 3}
    left = content(where)
    assert [record for record, *_ in rows_of(left, "texts")] == list(needed)
    assert [len(left[name]) for name in ("kernels", "variants", "measurements", "natives", "runs")] == [1, 1, 1, 3, 1]
    assert verify(where) == ()


def rows_of(found: Content, name: str) -> list[tuple[object, ...]]:
    return [row for row in found[name] if isinstance(row, tuple)]


def test_where_no_variant_is_left_nothing_is_needed(where: str) -> None:
    old, new = Store.open(where, now=clock(90)), Store.open(where, now=clock(0.5))
    old.add_variant(kernel(0), variant(0))
    old.add_text(defining(1, kernel(0).program))
    old.add_native(native(0))
    # Records that are stored for a variant that comes next.
    new.add_text(defining(2, kernel(2).program))
    new.add_native(native(1))
    prune(where, older_than=timedelta(0), now=lambda: NOW)
    left = content(where)
    assert [len(left[name]) for name in ("kernels", "variants", "texts", "natives")] == [0, 0, 1, 1]


def test_size_takes_what_nothing_needs_and_keeps_what_winners_need(tmp_path: Path) -> None:
    path = big(tmp_path / "cache.db")
    old = Store.open(path, now=lambda: "2026-01-01T00:00:00")
    old.add_native(native(0))
    for number in range(40):
        old.add_text(defining(number, kernel(number).program))
    old.add_text(Text(f"{99:064x}", " " * 100_000))
    before = len(content(path)["texts"])
    report = prune(path, largest=path.stat().st_size - 50_000)
    assert {name: count for name, count in report.removed.items() if count} == {"texts": 1}
    prune(path, largest=1)
    left = content(path)
    assert (before, len(left["texts"]), len(left["natives"]), len(left["variants"])) == (41, 8, 1, 4)


def test_a_kernel_that_a_search_has_just_stored_stays(where: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel())
    prune(where, older_than=timedelta(0), now=lambda: datetime.now(UTC) + timedelta(seconds=1))
    store.add_trial(trial())


def test_nothing_asked_is_nothing_removed(where: str) -> None:
    fill(Store.open(where), 2)
    before = content(where)
    assert set(prune(where).removed.values()) == {0}
    assert content(where) == before


def big(path: Path, count: int = 40) -> Path:
    """Variants of 20 kB each, in the order of their numbers, of which every tenth was measured."""
    for number in range(count):
        store = Store.open(path, now=f"2026-01-01T00:00:{number:02}".__str__)
        one = variant(number, size=20_000)
        store.add_variant(kernel(number), one)
        if number % 10 == 0:
            store.add_measurement(measurement(one))
    return path


def test_size_takes_the_oldest_that_do_not_win(tmp_path: Path) -> None:
    path = big(tmp_path / "cache.db")
    report = prune(path, largest=500_000)
    assert report.before > 800_000
    assert report.after == path.stat().st_size <= 500_000
    reader = Reader.open(path)
    left = [n for n in range(40) if reader.variant(kernel(n).key, "{}") is not None]
    removed = 40 - len(left)
    assert report.removed["variants"] == removed
    unmeasured = [n for n in range(40) if n % 10]
    assert left == sorted({0, 10, 20, 30, *unmeasured[removed:]})
    assert report.after > 400_000
    assert verify(path) == ()


def test_winners_stay_whatever_the_size(tmp_path: Path) -> None:
    path = big(tmp_path / "cache.db")
    report = prune(path, largest=1)
    assert report.removed["variants"] == 36
    reader = Reader.open(path)
    assert all(reader.winner(kernel(n).key, MACHINE, 2) == variant(n, size=20_000) for n in range(0, 40, 10))
    assert report.after == path.stat().st_size < report.before


def test_a_limit_leaves_room(tmp_path: Path) -> None:
    path = big(tmp_path / "cache.db")
    size = path.stat().st_size
    assert limit(path, size) is None
    assert limit(tmp_path / "none.db", 1) is None
    assert not (tmp_path / "none.db").exists()
    report = limit(path, size - 1)
    assert isinstance(report, PruneReport)
    assert 0.7 * size < path.stat().st_size < 0.8 * size
    assert limit(path, size - 1) is None


def test_a_server_has_no_size() -> None:
    with pytest.raises(CacheError, match="has no size of its own that could be limited; prune a server by age"):
        prune("postgresql://127.0.0.1:1/none", largest=1)
    assert limit("postgresql://127.0.0.1:1/none", 1) is None


def test_damaged_measurements_protect_what_they_measured(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    with Store.open(path).transaction() as connection:
        connection.execute(sql("UPDATE measurements SET seconds = 99"))
    before = path.read_bytes()
    with pytest.raises(CacheError, match=r"is damaged: .* does not match its hash"):
        prune(path, largest=1)
    assert path.read_bytes() == before


def test_others_read_and_write_meanwhile(tmp_path: Path) -> None:
    path = big(tmp_path / "cache.db")
    reader = Reader.open(path)
    with reader.database.session() as session:
        rows = session.rows("SELECT identity FROM variants ORDER BY identity")
        first = next(rows)["identity"]
        prune(path, largest=500_000)
        Store.open(path).add_text(text(7))
        assert len([first, *rows]) == 40
    assert reader.text(text(7).key) == text(7)
    assert verify(path) == ()
