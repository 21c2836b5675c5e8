"""The prelude: the parts of ``numerics.h``, ``vectors.h``, ``atomics.h`` and ``emulator.h`` that a source mentions.

A language has a header of its own (``lanes.h`` for C, ``cuda.h``, ``opencl.h``), whose parts take the place of those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from tc.base.frozen import frozen
from tc.codegen.text.functions import C_LIBRARY
from tc.codegen.text.streams import functions as box_functions
from tc.codegen.text.wgmma import functions

_MARKER = "//= "
_FILES: Final = ("numerics.h", "vectors.h", "atomics.h", "emulator.h")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_COMMENT = re.compile(r"//.*")
_LANES = "omp declare simd"
# What C's compilers are told of functions of the library.
OF_C: Final = "lanes.h"
OF_CUDA: Final = "cuda.h"
_IN_DOUBLE: Final = C_LIBRARY.functions | {"erf", "fmax", "fmin", "isfinite", "isnan", "lgamma_r", "rint"}
_OF_MATH_H: Final = _IN_DOUBLE | {f"{name}f" for name in _IN_DOUBLE} | {"INFINITY", "NAN", "lgammaf_r"}


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
def sections(own: str | None = None) -> tuple[Section, ...]:
    """All sections, in the order of the files, those of a language's ``own`` header first; a section uses only
    sections before it.
    """
    return (*_sections_of(own), *(section for name in _FILES for section in _sections_of(name)))


@cache
def _sections_of(file: str | None) -> tuple[Section, ...]:
    if file is None:
        return ()
    text = files("tc.codegen.prelude").joinpath(file).read_text(encoding="utf-8")
    made = (f"{name}\n{text}" for name, text in (*functions(), *box_functions())) if file == OF_CUDA else ()
    return tuple(map(_section, (*text.split(_MARKER)[1:], *made)))


def _section(part: str) -> Section:
    """A part after its marker: ``defined names < used names`` on the first line, the text below."""
    heading, _, text = part.partition("\n")
    provides, _, uses = heading.partition("<")
    mentioned = _NAME.findall(_COMMENT.sub("", text))
    return Section(tuple(provides.split()), frozenset(uses.split()).union(mentioned), text.strip())


def prelude(names: Set[str], own: str | None = None) -> str:
    """The text that defines all helpers among the names; ``own``: the header of the language."""
    return _joined(section.text for section in _needed(names, own))


def _joined(texts: Iterable[str]) -> str:
    """One behind the other, with empty lines around those that have several lines."""
    found = ""
    alone = True
    for text in texts:
        several = "\n" in text
        found += f"\n\n{text}" if several or alone else f"\n{text}"
        alone = several
    return found.strip()


def headers(names: frozenset[str], own: str | None = None) -> tuple[str, ...]:
    """The header files of C that a source with these names needs: what is in math.h takes compilers milliseconds."""
    mentioned = names.union(*(section.uses for section in _needed(names, own)))
    return ("stdbool.h", "stdint.h") if mentioned.isdisjoint(_OF_MATH_H) else ("math.h", "stdbool.h", "stdint.h")


def changes_in_lanes(functions: Iterable[str]) -> bool:
    """Whether calls of these end in functions of the C library whose last bits in lanes are not those of scalars."""
    return any(_LANES in section.text for section in _needed(functions, OF_C))


def _needed(names: Iterable[str], own: str | None) -> list[Section]:
    wanted = _defining(names, own)
    needed: list[Section] = []
    for number, section in reversed(list(enumerate(sections(own)))):
        if number in wanted:
            needed.append(section)
            wanted |= _defining(section.uses, own)
    return needed[::-1]


def _defining(names: Iterable[str], own: str | None) -> set[int]:
    """The numbers of the sections that define the names."""
    return {number for name in names for number in _sections_with(name, own)}


@lru_cache(1 << 12)
def _sections_with(name: str, own: str | None) -> tuple[int, ...]:
    if not name.startswith(_beginnings(own)):  # so are most names in a source
        return ()
    found = tuple(number for number, section in enumerate(sections(own)) if section.defines(name))
    return tuple(number for number in found if number < len(_sections_of(own))) or found


@cache
def _beginnings(own: str | None) -> tuple[str, ...]:
    return tuple(name.partition("*")[0] for section in sections(own) for name in section.provides)
