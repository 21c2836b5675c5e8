"""Names in C for what models call as they like."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 48


def plain(text: str) -> str:
    """Letters, digits and single underlines of a name; it may be empty, or begin with a digit."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text)[:_LONGEST].strip("_")


def owner_of(folder: str) -> str:
    """What the names of an exported model begin with, as its folder is called."""
    name = plain(folder)
    # tc is what the names of the run time begin with.
    taken = not name or name[0].isdigit() or name == "tc" or name.startswith("tc_")
    return f"model_{name}".rstrip("_") if taken else name


def distinct_names(names: Iterable[str], start: str) -> tuple[str, ...]:
    """A name of its own for each: ``in_x``; ``start`` keeps it from being a word of C."""
    found: dict[str, None] = {}
    for name in names:
        wanted = f"{start}_{plain(name)}".rstrip("_")
        numbered = (f"{wanted}_{number}" for number in itertools.count(2))
        found[next(own for own in (wanted, *itertools.islice(numbered, len(found) + 1)) if own not in found)] = None
    return tuple(found)
