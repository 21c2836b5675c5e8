"""What a reader finds, from which thread and process it may ask, and what it refuses."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from tc.base.errors import CacheError
from tc.cache.content.insertion import Conflict, insert_kernels, insert_records
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tc.cache.format.ingredients import FIELDS
from tc.cache.format.rows import row_of
from tc.cache.format.tables import MEASUREMENTS, VARIANTS
from tests.cache.conftest import Places
from tests.cache.samples import (
    DAWN,
    MACHINE,
    OTHER_MACHINE,
    fill,
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


def test_an_empty_cache_holds_nothing(where: str) -> None:
    Store.open(where)
    reader = Reader.open(where)
    assert reader.winner(kernel().key, MACHINE, 2) is None
    assert reader.variant(kernel().key, "{}") is None
    assert reader.variant(kernel().key, "{}", 2) is None
    assert reader.text("text") is None
    assert reader.native("pool", MACHINE, "source") is None
    assert reader.compilers("cpu", "x86-64-v3") == ()
    assert reader.nearest(kernel()) is None
    assert reader.runs() == ()
    assert reader.trials(kernel().key, MACHINE, 2) == ()


def test_a_winner_was_measured(where: str) -> None:
    store = Store.open(where)
    fast, slow, untried = (variant(options=f'{{"tile": {n}}}') for n in range(3))
    for one in (fast, slow, untried):
        store.add_variant(kernel(), one)
    reader = Reader.open(where)
    assert reader.winner(kernel().key, MACHINE, 2) is None
    store.add_measurement(measurement(slow, 2.0))
    assert reader.winner(kernel().key, MACHINE, 2) == slow
    store.add_measurement(measurement(fast, 0.1, OTHER_MACHINE))
    assert reader.winner(kernel().key, MACHINE, 2) == slow
    assert reader.winner(kernel().key, OTHER_MACHINE, 2) == fast
    store.add_measurement(measurement(fast, 1.0))
    assert reader.winner(kernel().key, MACHINE, 7) == fast
    assert reader.winner(kernel(1).key, MACHINE, 2) is None


def test_seconds_are_those_of_the_winner_else_of_a_trial_of_the_default(where: str) -> None:
    store, reader = Store.open(where), Reader.open(where)
    store.add_kernel(kernel())
    key, default = kernel().key, trial(1).options
    assert reader.times({key: default})[key] == {}
    store.add_trials((trial(1), trial(2), replace(trial(1), machine=OTHER_MACHINE, seconds=3.0)))
    assert reader.times({key: default})[key] == {(MACHINE, 2): (0.25, 0.25), (OTHER_MACHINE, 2): (3.0, 3.0)}
    assert reader.times({key: trial(3).options})[key] == {}
    store.add_variant(kernel(), variant())
    store.add_measurement(measurement(variant(), 0.125))
    assert reader.times({key: default})[key] == {(MACHINE, 2): (0.125, 0.25)}


def test_the_shapes_of_what_was_measured_are_known(where: str) -> None:
    store, reader = Store.open(where), Reader.open(where)
    for number in range(3):
        store.add_variant(kernel(number), variant(number))
    assert reader.measured_shapes("cpu", "x86-64-v3", "0.1.0") == frozenset()
    store.add_measurement(measurement(variant(1)))
    store.add_trial(trial(1, 2))
    assert reader.measured_shapes("cpu", "x86-64-v3", "0.1.0") == {kernel(1).shapes, kernel(2).shapes}
    assert reader.measured_shapes("cpu", "x86-64-v4", "0.1.0") == frozenset()
    assert reader.measured_shapes("cpu", "x86-64-v3", "0.2.0") == frozenset()


def test_a_variant_is_found_by_options_and_threads(where: str) -> None:
    store = Store.open(where)
    for threads in (4, 1, 2):
        store.add_variant(kernel(), variant(threads=threads))
    reader = Reader.open(where)
    assert reader.variant(kernel().key, "{}", 4) == variant(threads=4)
    assert reader.variant(kernel().key, "{}", 3) is None
    assert reader.variant(kernel().key, "{}") == variant(threads=1)
    assert reader.variant(kernel().key, '{"tile": 1}') is None
    assert reader.variant(kernel(1).key, "{}") is None


def test_compilers_are_those_of_a_target_and_an_architecture(where: str) -> None:
    store = Store.open(where)
    for number in range(4):
        store.add_kernel(kernel(number))
    store.add_kernel(replace(kernel(), architecture="x86-64-v4", compiler="clang 18"))
    reader = Reader.open(where)
    assert reader.compilers("cpu", "x86-64-v3") == ("gcc 12", "gcc 13")
    assert reader.compilers("cpu", "x86-64-v4") == ("clang 18",)
    assert reader.compilers("cuda", "x86-64-v4") == ()


def test_what_stays_symbolic_is_found_by_program(where: str) -> None:
    store = Store.open(where)
    settled = kernel()
    opened = [replace(settled, symbolic=symbolic) for symbolic in ("[[9,[0]]]", "[[64,[0,1]]]")]
    other = replace(settled, program="def g(...)", symbolic="[[5,[0]]]")
    for one in (settled, *opened, replace(opened[0], shapes="[[9,8]]"), other):
        store.add_kernel(one)
    reader = Reader.open(where)
    found = reader.symbolic(settled.program_hash, settled.symbolic)
    assert sorted(found) == ["[[64,[0,1]]]", "[[9,[0]]]"]
    assert reader.symbolic(other.program_hash, settled.symbolic) == ("[[5,[0]]]",)
    assert reader.symbolic("of nothing", settled.symbolic) == ()


@pytest.mark.parametrize("field", FIELDS)
def test_a_miss_is_explained_by_what_differs(where: str, field: str) -> None:
    store = Store.open(where)
    store.add_kernel(kernel(0))
    store.add_kernel(kernel(5))
    asked = replace(kernel(0), **{field: "another"})
    found = Reader.open(where).nearest(asked)
    assert found == (kernel(0), ((field, "another", getattr(kernel(0), field)),))


def test_the_same_program_is_nearer_than_anything_else(where: str) -> None:
    store = Store.open(where)
    unlike = replace(kernel(), shapes="a", dtypes="b", strides="c", target="d", architecture="e", compiler="f")
    alike = replace(kernel(), program="another", shapes="x")
    store.add_kernel(alike)
    reader = Reader.open(where)
    assert reader.nearest(kernel()) == (alike, kernel().difference(alike))
    store.add_kernel(unlike)
    assert reader.nearest(kernel()) == (unlike, kernel().difference(unlike))


def test_the_manifest_depends_on_what_decides_and_not_on_the_order(places: Places) -> None:
    first, second = Store.open(places()), Store.open(places())
    for store, numbers in ((first, (0, 1, 2)), (second, (2, 0, 1))):
        for number in numbers:
            store.add_variant(kernel(number), variant(number))
            store.add_measurement(measurement(variant(number)))
            store.add_text(text(number))
            store.add_native(native(number))
    reader = Reader(first.database, None)
    before = reader.manifest()
    assert before == Reader(second.database, None).manifest()
    first.add_run(run())
    first.add_trial(trial())
    assert reader.manifest() == before
    seen = {before}
    changes: tuple[Callable[[], None], ...] = (
        lambda: first.add_kernel(kernel(7)),
        lambda: first.add_variant(kernel(8), variant(8)),
        lambda: first.add_measurement(measurement(variant(8))),
        lambda: first.add_text(text(9)),
        lambda: first.add_native(native(9)),
        lambda: first.add_variant(kernel(8), replace(variant(8), origin="x"), replace=True),
    )
    for change in changes:
        change()
        assert reader.manifest() not in seen
        seen.add(reader.manifest())


def test_readers_see_what_others_commit(where: str) -> None:
    store = Store.open(where)
    reader = Reader.open(where)
    for number in range(3):
        assert reader.variant(kernel(number).key, "{}") is None
        store.add_variant(kernel(number), variant(number))
        assert reader.variant(kernel(number).key, "{}") == variant(number)


def test_threads_share_a_reader(where: str) -> None:
    fill(Store.open(where), 3)
    reader = Reader.open(where)
    expected = reader.winner(kernel(1).key, MACHINE, 2)
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(reader.winner, kernel(1).key, MACHINE, 2) for _ in range(200)]
        assert all(one.result(PATIENCE) == expected for one in found)


def test_what_is_damaged_is_not_returned(where: str) -> None:
    store = Store.open(where)
    fill(store, 0)
    store.add_variant(kernel(), variant())
    store.add_measurement(measurement(variant(), 0.001))
    store.add_text(text())
    store.add_native(native())
    reader = Reader.open(where)
    changes: dict[str, Callable[[], object]] = {
        "UPDATE variants SET source = 'evil'": lambda: reader.winner(kernel().key, MACHINE, 2),
        "UPDATE variants SET threads = 3": lambda: reader.variant(kernel().key, "{}", 2),
        "UPDATE measurements SET seconds = 0.0001": lambda: reader.winner(kernel().key, MACHINE, 2),
        "UPDATE texts SET definitions = '{}'": lambda: reader.text(text().key),
        "UPDATE natives SET machine = 'x'": lambda: reader.native("pool", MACHINE, native().source),
        "UPDATE kernels SET shapes = 'x'": lambda: reader.nearest(kernel()),
        "UPDATE runs SET settings = 'x'": reader.runs,
        "UPDATE trials SET reason = 'x'": lambda: [reader.trials(kernel(n).key, MACHINE, 2) for n in range(6)],
    }
    for change, ask in changes.items():
        with store.transaction() as connection:
            connection.execute(sql(change))
        with pytest.raises(CacheError, match=r"is damaged: .*: .* not match its (hash|key); restore"):
            ask()


def test_a_variant_that_was_measured_and_is_gone_is_damage(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "cache.db")
    store.add_variant(kernel(), variant())
    store.add_measurement(measurement(variant()))
    with closing(sqlite3.connect(tmp_path / "cache.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM variants")
    with pytest.raises(CacheError, match=f"is damaged: kernel {kernel().key}: a variant that was measured is missing"):
        Reader.open(tmp_path / "cache.db").winner(kernel().key, MACHINE, 2)


def test_with_a_key_everything_must_be_sealed(where: str) -> None:
    open_store, sealed_store = Store.open(where), Store.open(where, key=b"secret")
    open_store.add_text(text(0))
    sealed_store.add_text(text(1))
    assert Reader.open(where).text(text(1).key) == text(1)
    reader = Reader.open(where, key=b"secret")
    assert reader.text(text(1).key) == text(1)
    with pytest.raises(CacheError, match="is not sealed; use the key that it was made with, or get it from a trusted"):
        reader.text(text(0).key)
    with pytest.raises(CacheError, match="bears the seal of another key"):
        Reader.open(where, key=b"another").text(text(1).key)
    sealed_store.add_variant(kernel(), variant())
    open_store.add_measurement(measurement(variant(), 1.0, at=DAWN))
    with pytest.raises(CacheError, match="table measurements is not sealed"):
        reader.winner(kernel().key, MACHINE, 2)


def test_there_is_no_cache_where_there_is_nothing(tmp_path: Path) -> None:
    message = "none.db does not exist; make a cache with tc-tune, or name another file"
    for immutable in (False, True):
        with pytest.raises(CacheError, match=message):
            Reader.open(tmp_path / "none.db", immutable=immutable)
    assert not list(tmp_path.iterdir())


def test_five_hundred_kernels_are_told_apart(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "cache.db")
    count = 500
    with store.transaction() as connection:
        insert_kernels(connection, ((kernel(n), DAWN) for n in range(count)))
        variants = [variant(n) for n in range(count)]
        insert_records(connection, VARIANTS, [row_of(VARIANTS, v, None, DAWN) for v in variants], Conflict.KEEP)
        measured = [row_of(MEASUREMENTS, measurement(v), None, DAWN) for v in variants]
        insert_records(connection, MEASUREMENTS, measured, Conflict.KEEP)
    reader = Reader.open(tmp_path / "cache.db", immutable=True)
    for number in range(count):
        assert reader.winner(kernel(number).key, MACHINE, 2) == variants[number]
    assert reader.winner(kernel(count).key, MACHINE, 2) is None
    assert reader.compilers("cpu", "x86-64-v3") == ("gcc 12", "gcc 13")


def test_reading_a_file_loads_neither_sqlalchemy_nor_numpy(tmp_path: Path) -> None:
    path = filled(tmp_path / "cache.db")
    run_program(
        f"""
import sys
import tc
loaded = set(sys.modules)
from tc.cache.content.lookup import Reader
reader = Reader.open({str(path)!r})
reader.winner("kernel", "machine", 2), reader.manifest()
new = {{name.split(".")[0] for name in set(sys.modules) - loaded}}
assert not new & {{"sqlalchemy", "numpy", "islpy", "lark"}}, new
assert "sqlalchemy" not in sys.modules
"""
    )


def test_the_best_is_the_winner_or_another(where: str) -> None:
    store = Store.open(where)
    plain, quick = variant(options="{}"), variant(options='{"tile": 1}')
    store.add_variant(kernel(), plain)
    store.add_variant(kernel(), quick)
    reader = Reader.open(where)
    key, threads = kernel().key, plain.threads
    assert reader.best(key, MACHINE, threads, "{}", threads) == plain
    assert reader.best(key, MACHINE, threads, "{}", threads + 1) is None
    assert reader.best(key, MACHINE, threads + 1, "{}", None) == plain
    store.add_measurement(measurement(quick))
    assert reader.best(key, MACHINE, threads + 1, "{}", threads + 1) == quick
