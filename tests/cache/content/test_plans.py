"""Plans of graphs are found with what they need, shipped with their kernels, and go with them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.merge import merge
from tc.cache.content.plan_needs import listed
from tc.cache.content.prune import prune
from tc.cache.content.ship import ship
from tc.cache.content.store import Store, iso_time
from tc.cache.format.records import Plan
from tests.cache.content_support import content
from tests.cache.samples import constant, interface, kernel, measurement, plan, variant

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def found(where: object, wanted: Plan) -> list[tuple[str, str, int]]:
    reader = Reader.open(str(where))
    return [*reader.plans(wanted.model, wanted.wanted, wanted.target, wanted.architecture, wanted.generator)]


def test_a_plan_comes_back_with_what_it_needs(where: str) -> None:
    store = Store.open(where)
    one = plan(constants=(1, 2))
    store.add_plan(interface(), [constant(1), constant(2)], one)
    store.add_plan(interface(), [constant(1)], plan(constants=(1,), threads=1))
    store.add_plan(interface(7), [], replace(plan(7), wanted="{}"))
    reader = Reader.open(where)
    assert [(reader_, threads) for _, reader_, threads in found(where, one)] == [("onnx 1.22", 1), ("onnx 1.22", 2)]
    assert reader.plan(found(where, one)[1][0]) == one
    assert reader.plan("none") is None
    assert found(where, replace(one, generator="0.2.0")) == []
    assert reader.interfaces(one.model, "0.1.0") == (interface(),)
    assert reader.interfaces(one.model, "0.2.0") == ()
    with reader.held() as held:
        assert [held.constant(constant(n).identity) for n in (1, 2, 3)] == [constant(1), constant(2), None]


def test_the_latest_plan_for_the_same_stays(where: str) -> None:
    store = Store.open(where)
    store.add_plan(interface(), [], plan())
    later = replace(plan(), steps="another")
    store.add_plan(interface(), [], later)
    (only,) = found(where, later)
    assert Reader.open(where).plan(only[0]) == later


def test_plans_go_with_their_kernels_and_take_along_what_they_alone_need(where: str) -> None:
    old, new = Store.open(where, now=lambda: iso_time(NOW - timedelta(days=90))), Store.open(where)
    for number, store in ((0, old), (1, new)):
        store.add_variant(kernel(number), variant(number))
    new.add_plan(interface(0), [constant(1), constant(2)], plan(0, (0, 1), (1, 2)))
    old.add_plan(interface(1), [constant(2), constant(3)], plan(1, (1,), (2, 3)))
    prune(where, older_than=timedelta(days=30), now=lambda: NOW)
    left = content(where)
    assert [record for record, *_ in rows(left, "plans")] == [plan(1, (1,), (2, 3))]
    assert {record for record, *_ in rows(left, "constants")} == {constant(2), constant(3)}
    assert [record for record, *_ in rows(left, "models")] == [interface(1)]


def test_what_is_too_large_loses_plans_before_kernels(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    for day in range(3):
        store = Store.open(path, now=lambda day=day: iso_time(NOW + timedelta(days=day)))  # type: ignore[misc]
        store.add_variant(kernel(day), variant(day, size=10_000))
        store.add_plan(interface(day), [constant(day, 200_000)], sized(day))
    report = prune(path, largest=400_000, now=lambda: NOW)
    assert {name: count for name, count in report.removed.items() if count} == {
        "plans": 2, "models": 2, "constants": 2,
    }  # fmt: skip
    assert [record for record, *_ in rows(content(path), "plans")] == [sized(2)]
    assert verify(path) == ()


def sized(day: int) -> Plan:
    return replace(plan(day, (day,)), constants=f'["{constant(day, 200_000).identity}"]')


def test_shipped_are_the_plans_whose_kernels_are(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "ship.db"
    store = Store.open(source)
    winner, loser = variant(0, '{"a": 1}'), variant(1, '{"a": 2}')
    for one, number in ((winner, 0), (loser, 1)):
        store.add_variant(kernel(number), one)
    store.add_measurement(measurement(winner))
    store.add_kernel(kernel(2))
    store.add_plan(interface(0), [constant(0)], plan(0, (0, 1), (0,)))
    store.add_plan(interface(1), [constant(1)], plan(1, (0, 2), (1,)))
    ship(source, target)
    shipped = content(target)
    assert [record for record, *_ in rows(shipped, "plans")] == [plan(0, (0, 1), (0,))]
    assert [record for record, *_ in rows(shipped, "constants")] == [constant(0)]
    assert [record for record, *_ in rows(shipped, "models")] == [interface(0)]
    assert verify(target) == ()


def test_plans_are_merged_and_decide_what_runs(tmp_path: Path) -> None:
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    for path, number in ((one, 0), (other, 1)):
        Store.open(path).add_plan(interface(number), [constant(number)], plan(number, (), (number,)))
    before = Reader.open(one).manifest()
    added = merge(one, [other]).added
    assert (added["plans"], added["models"], added["constants"]) == (1, 1, 1)
    assert Reader.open(one).manifest() != before


@pytest.mark.parametrize("table", ["plans", "models", "constants"])
def test_damage_is_found(tmp_path: Path, table: str) -> None:
    path = tmp_path / "cache.db"
    store = Store.open(path)
    store.add_plan(interface(), [constant()], plan(constants=(0,)))
    column = {"plans": "steps", "models": "interface", "constants": "contents"}[table]
    with store.transaction() as connection:
        value = "x'00'" if table == "constants" else "'{}'"
        connection.execute(sql(f"UPDATE {table} SET {column} = {value}"))
    (complaint,) = verify(path)
    assert f"of table {table}: its content does not match its hash" in complaint
    reader = Reader.open(path)
    with pytest.raises(CacheError, match=f"of table {table}: its content does not match its hash"):
        _ = reader.plan(plan(constants=(0,)).identity) and (
            reader.interfaces(interface().model, "0.1.0"),
            reader.constant(constant().identity),
        )


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, "1", "null"])
def test_what_is_no_list_names_nothing(text: str) -> None:
    assert listed(text) == frozenset()


def rows(found: dict[str, list[object]], table: str) -> list[tuple[object, ...]]:
    return [row for row in found[table] if isinstance(row, tuple)]
