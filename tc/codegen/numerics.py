"""The prelude: the parts of ``numerics.h`` and ``vectors.h`` that a source text mentions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

_MARKER = "//= "
_NAME = re.compile(r"\b[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a header: the names that it defines (patterns with ``*``), and its text."""

    provides: tuple[str, ...]
    text: str

    def defines(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.provides)


@cache
def sections() -> tuple[Section, ...]:
    """All sections, in the order of the files; a section uses only sections before it."""
    folder = files("tc.codegen")
    texts = [folder.joinpath(name).read_text(encoding="utf-8") for name in ("numerics.h", "vectors.h")]
    parts = [part for text in texts for part in text.split(_MARKER)[1:]]
    return tuple(Section(tuple(part.split("\n", 1)[0].split()), part.split("\n", 1)[1].strip()) for part in parts)


def prelude(source: str) -> str:
    """The text to put before ``source`` so that every helper that it mentions is defined."""
    mentioned = set(_NAME.findall(source))
    needed: list[str] = []
    for section in reversed(sections()):
        if any(section.defines(name) for name in mentioned):
            needed.append(section.text)
            mentioned |= set(_NAME.findall(section.text))
    return "\n\n".join(reversed(needed))
