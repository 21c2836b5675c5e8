"""The prelude: the parts of ``numerics.h``, ``vectors.h``, ``atomics.h`` and ``emulator.h`` that a source mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from fnmatch import translate
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from tc.base.frozen import frozen

_MARKER = "//= "
_FILES: Final = ("numerics.h", "vectors.h", "atomics.h", "emulator.h")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_COMMENT = re.compile(r"//.*")
_LANES = "omp declare simd"


@frozen
class Section:
    """A part of a header: the names that it defines (patterns with ``*``), those in it or made up there, its text."""

    provides: tuple[str, ...]
    uses: frozenset[str]
    text: str

    def defines(self, name: str) -> bool:
        """Whether the section defines a name."""
        return _pattern(self.provides).fullmatch(name) is not None


@cache
def _pattern(provides: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, provides)))


@cache
def sections() -> tuple[Section, ...]:
    """All sections, in the order of the files; a section uses only sections before it."""
    folder = files("tc.codegen.prelude")
    texts = [folder.joinpath(name).read_text(encoding="utf-8") for name in _FILES]
    parts = [part for text in texts for part in text.split(_MARKER)[1:]]
    return tuple(map(_section, parts))


def _section(part: str) -> Section:
    """A part after its marker: ``defined names < used names`` on the first line, the text below."""
    heading, _, text = part.partition("\n")
    provides, _, uses = heading.partition("<")
    mentioned = _NAME.findall(_COMMENT.sub("", text))
    return Section(tuple(provides.split()), frozenset(uses.split()).union(mentioned), text.strip())


def prelude(names: Set[str]) -> str:
    """The text that defines all helpers among the names."""
    return "\n\n".join(section.text for section in _needed(names))


def changes_in_lanes(functions: Iterable[str]) -> bool:
    """Whether calls of these end in functions of the C library whose last bits in lanes are not those of scalars."""
    return any(_LANES in section.text for section in _needed(functions))


def _needed(names: Iterable[str]) -> list[Section]:
    wanted = _defining(names)
    needed: list[Section] = []
    for number, section in reversed(list(enumerate(sections()))):
        if number in wanted:
            needed.append(section)
            wanted |= _defining(section.uses)
    return needed[::-1]


def _defining(names: Iterable[str]) -> set[int]:
    """The numbers of the sections that define the names."""
    return {number for name in names for number in _sections_with(name)}


@lru_cache(1 << 12)
def _sections_with(name: str) -> tuple[int, ...]:
    return tuple(number for number, section in enumerate(sections()) if section.defines(name))
