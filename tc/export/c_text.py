"""Foreign values as C source: escaped, so that they cannot inject code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

_LONGEST: Final = 2000
# Of a line.
_WIDEST: Final = 119
# In place of a space that does not end a line.
_UNBROKEN: Final = "\0"
_HARMFUL: Final = re.compile(r"[^ -~]|[\\]|[?][?]/")


def comment(text: str) -> str:
    """A line comment; whatever could end or continue one is made harmless."""
    return f"// {_HARMFUL.sub('?', text[:_LONGEST])}".rstrip()


def string(text: str) -> str:
    """A string literal."""
    return f'"{"".join(map(_character, text[:_LONGEST].encode("utf-8", "replace")))}"'


def _character(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def listed(start: str, items: Sequence[str], end: str) -> str:
    """A list with what stands around it: in one line, or in several where that would be too long."""
    line = f"{start}{', '.join(items)}{end}"
    if len(line) <= _WIDEST:
        return line
    indent = " " * (len(start) - len(start.lstrip(" ")) + 4)
    joined = ", ".join(item.replace(" ", _UNBROKEN) for item in items)
    wrapped = textwrap.wrap(
        joined, _WIDEST, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join((start, *wrapped)).replace(_UNBROKEN, " ") + end


def numbers(values: Sequence[int]) -> str:
    """An array of 64-bit integers; a null pointer where there is none."""
    return array("int64_t", (integer(value) for value in values))


def array(type: str, values: Iterable[str]) -> str:
    """An array that is there as long as the program runs; a null pointer where there is no value."""
    listed = ", ".join(values)
    return f"(const {type}[]){{{listed}}}" if listed else "NULL"


def integer(value: int) -> str:
    """A 64-bit integer; ValueError for one that is longer."""
    if not -(1 << 63) < value < 1 << 63:
        raise ValueError(f"{value:#x} does not fit into 64 bits")
    return str(value) if abs(value) < 1 << 31 else f"INT64_C({value})"


def identifier(text: str) -> str:
    """The same text; ValueError if it is no name in C."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,255}", text) is None:
        raise ValueError(f"{text[:80]!r} is no name")
    return text
