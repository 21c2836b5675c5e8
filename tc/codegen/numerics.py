"""The numerics prelude: the parts of ``numerics.h`` that a source text mentions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

_MARKER = "//= "
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_COMMENT = re.compile(r"//.*")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of ``numerics.h``: the names that it defines (patterns with ``*``), and its text."""

    provides: tuple[str, ...]
    text: str

    def defines(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.provides)


@cache
def sections() -> tuple[Section, ...]:
    """All sections, in the order of the file; a section uses only sections before it."""
    text = files("tc.codegen").joinpath("numerics.h").read_text(encoding="utf-8")
    parts = text.split(_MARKER)[1:]
    return tuple(Section(tuple(part.split("\n", 1)[0].split()), part.split("\n", 1)[1].strip()) for part in parts)


def prelude(source: str) -> str:
    """The text to put before ``source`` so that every helper that it mentions is defined."""
    mentioned = _mentioned(source)
    needed: list[str] = []
    for section in reversed(sections()):
        if any(section.defines(name) for name in mentioned):
            needed.append(section.text)
            mentioned |= _mentioned(section.text)
    return "\n\n".join(reversed(needed))


def _mentioned(text: str) -> set[str]:
    """The names in a C text, comments aside."""
    return set(_NAME.findall(_COMMENT.sub("", text)))
