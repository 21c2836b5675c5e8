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
_LANES = "omp declare simd"


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
    return "\n\n".join(section.text for section in _needed(source))


def changes_in_lanes(source: str) -> bool:
    """Whether ``source`` calls functions of the C library whose last bits in lanes are not those of scalars."""
    return any(_LANES in section.text for section in _needed(source))


def _needed(source: str) -> list[Section]:
    mentioned = _mentioned(source)
    needed: list[Section] = []
    for section in reversed(sections()):
        if any(section.defines(name) for name in mentioned):
            needed.append(section)
            mentioned |= _mentioned(section.text)
    return needed[::-1]


def _mentioned(text: str) -> set[str]:
    """The names in a C text, comments aside."""
    return set(_NAME.findall(_COMMENT.sub("", text)))
