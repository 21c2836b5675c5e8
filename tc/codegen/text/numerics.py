"""The prelude: the parts of ``numerics.h``, ``vectors.h``, ``atomics.h`` and ``emulator.h`` that a source mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
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
    """A part of a header: the names that it defines, those in it or made up there, its text.

    In ``tc_*int8_from_float*``, a star stands for any characters, as in names of files.
    """

    provides: tuple[str, ...]
    uses: frozenset[str]
    text: str

    def defines(self, name: str) -> bool:
        """Whether the section defines a name."""
        return any(name == own or ("*" in own and _fits(name, own)) for own in self.provides)


def _fits(name: str, pattern: str) -> bool:
    first, *middle, last = pattern.split("*")
    at = len(first)
    for part in middle:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return name.startswith(first) and name.endswith(last) and len(name) >= at + len(last)


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
    if not name.startswith(_beginnings()):  # so are most names in a source
        return ()
    return tuple(number for number, section in enumerate(sections()) if section.defines(name))


@cache
def _beginnings() -> tuple[str, ...]:
    return tuple(name.partition("*")[0] for section in sections() for name in section.provides)
