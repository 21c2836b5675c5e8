"""The part of a text that is one of its definitions."""

from __future__ import annotations

import functools
from typing import Final

from tc.base.errors import TCError
from tc.grammar.parser import parse

# Of a stranger's text, which is not worth more of anybody's time.
_LONGEST: Final = 100_000


@functools.cache
def own_definition(text: str, name: str) -> str:
    """The definition with this name as it is written; all of a text that has none, or that cannot be parsed."""
    if len(text) > _LONGEST:
        return text
    try:
        definitions = parse(text).definitions
    except TCError:
        return text
    spans = [one.span for one in definitions if one.name == name]
    return text[spans[0].start : spans[0].end] if spans else text
