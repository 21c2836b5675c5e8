"""Options as a flat table: the dotted name of each, and its value as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

from tc.base.frozen import frozen

Flat: TypeAlias = Mapping[str, object]

# Options nest less deeply; what lies deeper in a file of other origin is one value.
_DEEPEST: Final = 4
# Of a list by place: there is no such place, or no list.
ABSENT: Final = "none"
AUTOMATIC: Final = "auto"


@frozen
class Difference:
    """An option that two have set to different values."""

    name: str
    before: str
    after: str


def flat_options(text: str) -> Flat:
    """The options in a text of JSON by dotted name, lists whole; none for a text that holds no options."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return dict(_flat("", data, 0)) if isinstance(data, dict) else {}


def value_text(value: object) -> str:
    """A value as people write it; None means that the target chooses."""
    match value:
        case None:
            return AUTOMATIC
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list() if not any(isinstance(item, list | dict) for item in value):
            return f"[{', '.join(map(value_text, value))}]"
        case int() if value.bit_length() < 64:
            return str(value)
        case _:
            return "(not an option)"


def differences(before: str, after: str) -> tuple[Difference, ...]:
    """What the second options set otherwise than the first, in the order of the names."""
    ours, theirs = flat_options(before), flat_options(after)
    texts = ((name, _stated(ours, name), _stated(theirs, name)) for name in sorted({*ours, *theirs}))
    return tuple(Difference(name, one, other) for name, one, other in texts if one != other)


def columns(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each option its values, as many as there are texts; lists are compared place by place, the first is 0."""
    rows = [flat_options(text) for text in options]
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(set(chain.from_iterable(rows))):
        values = [row.get(name) for row in rows]
        longest = max((len(value) for value in values if isinstance(value, list)), default=0)
        if longest == 0:
            found[name] = tuple(map(value_text, values))
        for place in range(longest):
            found[f"{name}[{place}]"] = tuple(_at(value, place) for value in values)
    return found


def in_order(values: Iterable[str]) -> tuple[str, ...]:
    """Values of an option, each once: words first, then numbers by size."""
    return tuple(
        sorted(set(values), key=lambda value: (_is_number(value), float(value) if _is_number(value) else 0, value))
    )


def _flat(prefix: str, data: Mapping[str, object], depth: int) -> Iterable[tuple[str, object]]:
    for name, value in data.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(f"{prefix}{name}.", value, depth + 1)
        else:
            yield f"{prefix}{name}", value


def _stated(options: Flat, name: str) -> str:
    return value_text(options[name]) if name in options else "(not stated)"


def _at(value: object, place: int) -> str:
    if not isinstance(value, list):
        return value_text(value)
    return value_text(value[place]) if place < len(value) else ABSENT


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal() and text.isascii()
