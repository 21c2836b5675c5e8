"""One hash for one content: the canonical encoding that every key and digest of the cache is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeAlias

from tc.base.digest import sha256_hex
from tc.base.errors import CacheError

Value: TypeAlias = str | int | float | bytes | tuple[float, ...] | None


def digest_of(kind: str, fields: Iterable[tuple[str, Value]]) -> str:
    """SHA-256, in hexadecimal, of named values in their order; no two different lists have the same encoding.

    ``kind`` keeps records of different meaning apart.  CacheError for numbers that are not finite, which not every
    database can store.
    """
    try:
        text = json.dumps([kind, [(name, _plain(value)) for name, value in fields]], allow_nan=False)
    except ValueError as error:
        raise CacheError(f"a {kind} holds a number that is not finite; store only finite numbers") from error
    return sha256_hex(text.encode("ascii"))


def _plain(value: Value) -> object:
    match value:
        case bytes():
            return {"bytes": len(value), "sha256": sha256_hex(value)}
        case float():
            # SQLite does not keep the sign of zero.
            return value + 0.0
        case tuple():
            return [number + 0.0 for number in value]
        case _:
            return value
