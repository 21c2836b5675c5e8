"""Which programs stand in a text that the cache remembers."""

from __future__ import annotations

import json


def programs_of(definitions: str) -> frozenset[str]:
    """The canonical texts of the definitions in a record ``Text``, as kernels have them; empty if it holds none."""
    try:
        entries = json.loads(definitions)["definitions"]
        return frozenset(str(entry["canonical"]) for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError):
        return frozenset()
