"""``Definition``: a definition as a comprehension needs it, whether its text was parsed or is known from the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.json_records import from_json, to_json
from tc.base.once import Once

if TYPE_CHECKING:  # definitions that are known need no parser
    from tc.language.program.program import Program


class Definition(Protocol):
    """What a comprehension makes kernels of."""

    @property
    def interface(self) -> Interface:
        """What callers must know."""
        ...

    @property
    def text(self) -> str | None:
        """The text that the definition stands in; None if it was built in Python."""
        ...

    @property
    def canonical(self) -> str:
        """The text of the program with all names replaced; definitions with the same one share their kernels."""
        ...

    @property
    def program(self) -> Program:
        """What the definition means."""
        ...


class Parsed:
    """A definition whose program is here."""

    def __init__(self, program: Program, text: str | None = None) -> None:
        from tc.language.lower.interface import interface_of

        self.program: Final = program
        self.text: Final = text
        self.interface: Final = interface_of(program)
        self._canonical: Final[Once[None, str]] = Once()

    @property
    def canonical(self) -> str:
        """See ``Definition``; printed when it is asked for first."""
        from tc.language.text.canonical import canonical_text

        return self._canonical.get(None, lambda: canonical_text(self.program))


class Remembered:
    """A definition that was parsed by an earlier process; the text is parsed again when the program is needed."""

    def __init__(self, interface: Interface, canonical: str, text: str | None, parse: Callable[[], Program]) -> None:
        self.interface: Final = interface
        self.canonical: Final = canonical
        self.text: Final = text
        self._parse = parse
        self._program: Final[Once[None, Program]] = Once()

    @property
    def program(self) -> Program:
        """See ``Definition``; the text is parsed when it is asked for first."""
        return self._program.get(None, self._parse)


@frozen
class _Entry:
    interface: Interface
    canonical: str


@frozen
class _Entries:
    definitions: tuple[_Entry, ...]


def definitions_to_json(definitions: Mapping[str, Definition]) -> str:
    """What ``definitions_from_json`` needs; parses nothing, and prints every program once."""
    entries = _Entries(tuple(_Entry(d.interface, d.canonical) for d in definitions.values()))
    return json.dumps(to_json(entries), separators=(",", ":"))


def definitions_from_json(data: str, text: str, parse: Callable[[], Mapping[str, Program]]) -> dict[str, Definition]:
    """The definitions of a text that were parsed before; ValueError for anything else.

    ``parse``: what the text means, asked for when the first program is needed.
    """
    entries = from_json(_Entries, json.loads(data)).definitions
    programs: Once[None, Mapping[str, Program]] = Once()

    def program(name: str) -> Callable[[], Program]:
        return lambda: programs.get(None, parse)[name]

    return {e.interface.name: Remembered(e.interface, e.canonical, text, program(e.interface.name)) for e in entries}
