"""Records as rows of a table and back, checked: what comes out is what went in, or an error."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Final, TypeAlias

from tc.base.errors import CacheError
from tc.cache.format.database_errors import damaged
from tc.cache.format.encoding import Value
from tc.cache.format.ingredients import FIELDS, Ingredients
from tc.cache.format.tables import KEPT, Kept, Table
from tc.cache.format.trust import seal_of, sealed

Row: TypeAlias = Mapping[str, object]

_SAMPLES: Final = "tuple[float, ...]"
# By the annotation of a field, what its column may hold; samples are stored as JSON.
_STORED: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (float,),
    "bytes": (bytes,),
    "float | None": (float, NoneType),
    _SAMPLES: (str,),
}


def row_of(table: Table[Kept], record: Kept, key: bytes | None, created: str) -> dict[str, Value]:
    """Every column of a record that is stored at ``created``; CacheError for a field of the wrong type."""
    row: dict[str, Value] = {
        field.name: json.dumps(value) if isinstance(value := getattr(record, field.name), tuple) else value
        for field in dataclasses.fields(record)
    }
    row |= {name: getattr(record, name) for name in table.derived}
    digest = record.digest
    row |= {"identity": record.identity, "digest": digest, "seal": seal_of(digest, key), "created": created}
    if wrong := _misfit(table, row):
        raise CacheError(f"a {table.record.__name__} cannot be stored: {wrong}")
    return row


def record_of(table: Table[Kept], row: Row, key: bytes | None, place: str) -> Kept:
    """The record in a row that has all columns of the table; CacheError for what is not what once was stored.

    With a ``key`` the record must also bear the seal of that key.  ``place``: the file or server, for messages.
    """
    part = f"record {_shown(row['identity'])} of table {table.name}"
    if wrong := _misfit(table, row):
        raise damaged(place, part, wrong)
    make: Callable[..., Kept] = table.record
    kinds = {field.name: field.type for field in dataclasses.fields(table.record)}
    record = make(**{name: _floats(row[name]) if kind == _SAMPLES else row[name] for name, kind in kinds.items()})
    if any(getattr(record, name) != row[name] for name in ("identity", "digest", *table.derived)):
        raise damaged(place, part, "its content does not match its hash")
    if key is not None and not sealed(record.digest, str(row["seal"]), key):
        reason = "bears the seal of another key" if row["seal"] else "is not sealed"
        raise CacheError(f"{place}: {part} {reason}; use the key that it was made with, or get it from a trusted place")
    return record


def ingredients_of(row: Row, place: str) -> Ingredients:
    """The ingredients in a row of the table of kernels; CacheError unless the key is their hash."""
    part = f"kernel {_shown(row['key'])}"
    values = {name: row[name] for name in FIELDS}
    for name, value in values.items():
        if not isinstance(value, str):
            raise damaged(place, part, f"{name} must be str, got {_shown(value)}")
    make: Callable[..., Ingredients] = Ingredients
    ingredients = make(**values)
    if ingredients.key != row["key"] or ingredients.program_hash != row["program_hash"]:
        raise damaged(place, part, "its ingredients do not match its key")
    return ingredients


def _misfit(table: Table[Kept], row: Row) -> str | None:
    """What is wrong with the types in a row, if anything."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(table.record)}
    kinds |= dict.fromkeys((*table.derived, *KEPT), "str")
    for name, kind in kinds.items():
        value = row[name]
        # A boolean is not a number here.
        if type(value) not in _STORED[kind] or (kind == _SAMPLES and _floats(value) is None):
            return f"{name} must be {kind}, got {_shown(value)}"
    return None


def _floats(text: object) -> tuple[float, ...] | None:
    """The numbers in a JSON list of nothing but floats; None for anything else."""
    try:
        values = json.loads(str(text))
    except (ValueError, RecursionError):
        return None
    return tuple(values) if isinstance(values, list) and all(type(value) is float for value in values) else None


def _shown(value: object) -> str:
    """The start of a value that may be huge, or anything."""
    text = repr(value[:64] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 100 else text[:100] + "..."
