"""A record's digest is made of all that it says; its identity of what it is about."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

import tc
from tc.base.errors import CacheError
from tc.cache.format import schema
from tc.cache.format.ingredients import FIELDS
from tc.cache.format.records import Record, native_identity, text_key, variant_identity
from tc.cache.format.rows import record_of, row_of
from tc.cache.format.tables import TABLES, Table
from tc.language.text.canonical import canonical_text
from tests.cache import samples

RECORDS: tuple[Record, ...] = (
    samples.variant(),
    samples.measurement(samples.variant()),
    samples.trial(1),
    samples.run(),
    samples.text(),
    samples.native(),
    samples.interface(),
    samples.constant(),
    samples.plan(),
    samples.library_trial(),
)
IDENTITIES = {
    "Variant": {"kernel", "options", "threads"},
    "Run": {"name"},
    "Text": {"key"},
    "Native": {"name", "machine", "source"},
    "ModelInterface": {"model", "generator", "reader"},
    "Constant": {"contents"},
    "Plan": {"model", "wanted", "target", "architecture", "threads", "generator", "reader"},
    "LibraryTrial": {"work", "machine", "threads", "library", "generator"},
}
PLACES = list(zip(TABLES, RECORDS, strict=True))


def other(value: object) -> Any:
    match value:
        case str():
            return value + " "
        case bytes():
            return value + b" "
        case tuple():
            return (*value, 1.0)
        case int() | float():
            return value + 1
        case _:
            raise AssertionError(value)


@pytest.mark.parametrize(("record", "field"), [(r, f.name) for r in RECORDS for f in dataclasses.fields(r)])
def test_every_field_changes_the_digest_and_some_the_identity(record: Record, field: str) -> None:
    changed = replace(record, **{field: other(getattr(record, field))})
    assert changed.digest != record.digest
    of_all = type(record).__name__ in ("Measurement", "Trial")
    assert (changed.identity != record.identity) == (of_all or field in IDENTITIES[type(record).__name__])


@pytest.mark.parametrize(("table", "record"), PLACES)
def test_columns_are_fields(table: Table[Record], record: Record) -> None:
    assert {column.name for column in schema.METADATA.tables[table.name].c} == set(table.columns)
    assert isinstance(record, table.record)


def test_every_ingredient_has_a_column() -> None:
    assert {column.name for column in schema.KERNELS.c} == {"key", "program_hash", "created", *FIELDS}


@pytest.mark.parametrize(("table", "record"), PLACES)
@pytest.mark.parametrize("key", [None, b"secret"])
def test_records_come_back_from_rows(table: Table[Record], record: Record, key: bytes | None) -> None:
    row = row_of(table, record, key, samples.DAWN)
    assert set(row) == set(table.columns)
    assert record_of(table, row, key, "here") == record


@pytest.mark.parametrize(("table", "record"), PLACES)
def test_no_column_can_change_unnoticed(table: Table[Record], record: Record) -> None:
    row = row_of(table, record, b"secret", samples.DAWN)
    for name in set(table.columns) - {"created"}:
        changed = "[]" if name == "samples" and isinstance(row[name], str) else other(row[name])
        with pytest.raises(CacheError, match=r"its content does not match its hash|bears the seal of another key"):
            record_of(table, row | {name: changed}, b"secret", "here")


@pytest.mark.parametrize(("table", "record"), PLACES)
@pytest.mark.parametrize("value", [None, True, 7, 1.5, "text", b"bytes", "\udc80", "x" * 100_000, 2**63, ["list"]])
def test_columns_of_other_types_are_damage(table: Table[Record], record: Record, value: object) -> None:
    row = row_of(table, record, None, samples.DAWN)
    for name in set(table.columns) - {"created", "seal"}:
        with pytest.raises(CacheError, match=f"here is damaged: record .* of table {table.name}: ") as caught:
            record_of(table, row | {name: value}, None, "here")
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("samples_text", ["", "[", "[" * 100_000, "{}", "[1]", "[true]", '["1.0"]', "[null]", "1.0"])
def test_samples_are_a_list_of_floats(samples_text: str) -> None:
    table, record = PLACES[2]
    row = row_of(table, record, None, samples.DAWN)
    with pytest.raises(CacheError, match=r"samples must be tuple\[float, ...\], got"):
        record_of(table, row | {"samples": samples_text}, None, "here")


def test_the_message_about_damage_says_what_to_do() -> None:
    row = row_of(TABLES[4], samples.text(), None, samples.DAWN)
    with pytest.raises(CacheError) as caught:
        record_of(TABLES[4], row | {"definitions": "{}"}, None, "/a/file.db")
    assert str(caught.value) == (
        f"/a/file.db is damaged: record '{0:064d}' of table texts: its content does not match its hash; "
        "restore the file from a copy or run `tc-cache verify`"
    )


def test_seals_are_asked_for_with_a_key() -> None:
    table, record = PLACES[0]
    unsealed, sealed = row_of(table, record, None, samples.DAWN), row_of(table, record, b"secret", samples.DAWN)
    assert record_of(table, sealed, None, "here") == record
    with pytest.raises(CacheError, match=r"here: record .* of table variants is not sealed; use the key that it was"):
        record_of(table, unsealed, b"secret", "here")
    with pytest.raises(CacheError, match=r"here: record .* of table variants bears the seal of another key; use the"):
        record_of(table, sealed, b"another secret", "here")
    with pytest.raises(CacheError, match="bears the seal of another key"):
        record_of(table, sealed | {"seal": "\udc80 no hash"}, b"secret", "here")


def test_fields_of_the_wrong_type_are_not_stored() -> None:
    one = replace(samples.trial(1), number=True)
    with pytest.raises(CacheError, match="a Trial cannot be stored: number must be int, got True"):
        row_of(TABLES[2], one, None, samples.DAWN)
    whole: Any = (1, 2)
    with pytest.raises(CacheError, match=r"a Trial cannot be stored: samples must be tuple\[float, ...\], got '\[1, 2"):
        row_of(TABLES[2], replace(one, number=1, samples=whole), None, samples.DAWN)


def test_names_under_which_things_are_stored() -> None:
    one = samples.variant()
    assert one.identity == variant_identity(one.kernel, one.options, one.threads)
    assert samples.measurement(one).variant == one.identity
    helper = samples.native()
    assert helper.identity == native_identity(helper.name, helper.machine, helper.source)
    assert text_key("a", "b") != text_key("b", "a")


@pytest.mark.parametrize(
    "same",
    [
        "def f(float(N) A) -> (B) { B(n) = A(n) }\n",
        "\ufeff  def f(float(N) A) -> (B) {\r\n\tB(n) = A(n)\v\f }",
        "# a copy\rdef f(float(N) A) -> (B) { # elements\n B(n) = A(n) }#",
    ],
)
def test_what_the_grammar_ignores_makes_no_other_text(same: str) -> None:
    text = "def f(float(N) A) -> (B) { B(n) = A(n) }"
    assert text_key(same, "1") == text_key(text, "1")
    assert canonical_text(tc.define(same).f.program) == canonical_text(tc.define(text).f.program)


@pytest.mark.parametrize("other", ["a  bc", "ab c", "a\u00a0b c", "a b\ufeff c", "a b # c", "a b\u2028c"])
def test_all_else_does(other: str) -> None:
    assert text_key(other, "1") != text_key("a b c", "1")
