"""Parses by a table of steps that Lark has made: each is looked up once, and Lark itself is not loaded.

To import Lark takes 25 ms and to read its tables 20, which the first text of each process would pay. Texts that are in
error are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tc.base.frozen import frozen
from tc.grammar.syntax import Text
from tc.grammar.tokens import Token

END: Final = "$END"


@frozen
class Reduction:
    """How values become one, that of a rule called ``origin``.

    ``count``: how many.  ``kept``: places of those that count, and whether each is a list of several; None for all as
    they are.  ``method``: of the builder; None where they stay a list.  ``single``: one value stays what it is.
    """

    count: int
    origin: str
    kept: tuple[tuple[int, bool], ...] | None
    method: str | None
    single: bool


@frozen
class StepTables:
    """What a parser does by its state and the kind of token that comes next.

    ``rows``: by state, the next state of a kind of token or value; ``~number`` for a reduction.  ``start``, ``end``:
    states.  ``patterns``: regular expressions with a group for each kind; the first has all, and ``lexers`` says by
    state which one has those that may come.  ``ignored``: kinds that may stand anywhere.
    """

    rows: Sequence[Mapping[str, int]]
    reductions: Sequence[Reduction]
    start: int
    end: int
    patterns: Sequence[str]
    lexers: Sequence[int]
    ignored: Sequence[str]


# What makes one value of several; None where the only one stays.
_Make: TypeAlias = Callable[[list[Any]], Any] | None


class Steps:
    """The parser of such tables.  ``builder``: has the methods that make values."""

    def __init__(self, tables: StepTables, builder: object) -> None:
        self._tables: Final = tables
        self._rows: Final = tables.rows
        self._reductions: Final[list[tuple[int, str, _Make]]] = [
            (one.count, one.origin, _make(one, builder)) for one in tables.reductions
        ]
        self._ignored: Final = frozenset(tables.ignored)
        self._patterns: Final[dict[int, Callable[[str, int], re.Match[str] | None]]] = {}
        self._match: Final = self._pattern(0)

    def parsed(self, text: str, most: int) -> Text | None:
        """The definitions of a text; None where Lark must see it, and where the stack has more than ``most`` states.

        Errors are those of what makes the values.
        """
        states, values, position = [self._tables.start], list[Any](), 0
        while position < len(text):
            found = self._found(text, position, states[-1])
            if found is None:
                return None
            kind, start, position = found.lastgroup, position, found.end()
            if kind is None or kind in self._ignored:
                continue
            after = self._reduced(kind, states, values)
            if after is None or len(states) > most:
                return None
            states.append(after)
            values.append(Token(found.group(), start))
        return values[-1] if self._reduced(END, states, values) == self._tables.end else None

    def _found(self, text: str, position: int, state: int) -> re.Match[str] | None:
        """What comes next, as the lexer of all states takes tokens (see ``OnePatternLexer``)."""
        found = self._match(text, position)
        if found is not None and (found.lastgroup in self._rows[state] or found.lastgroup in self._ignored):
            return found
        return self._pattern(self._tables.lexers[state])(text, position)

    def _reduced(self, kind: str, states: list[int], values: list[Any]) -> int | None:
        """The state behind a token, once what ends before it is one value; None where none of this kind may come."""
        rows = self._rows
        while True:
            step = rows[states[-1]].get(kind)
            if step is None or step >= 0:
                return step
            count, name, make = self._reductions[~step]
            if make is not None:
                first = len(values) - count
                made = make(values[first:])
                del states[first + 1 :], values[first:]
                values.append(made)
                states.append(0)
            then = rows[states[-2]][name]
            if kind == END and then == self._tables.end:
                return then
            states[-1] = then

    def _pattern(self, number: int) -> Callable[[str, int], re.Match[str] | None]:
        """The pattern of a lexer, which takes as long to compile as a text to parse."""
        found = self._patterns.get(number)
        if found is None:
            found = self._patterns[number] = re.compile(self._tables.patterns[number]).match
        return found


def _make(reduction: Reduction, builder: object) -> _Make:
    kept, single = reduction.kept, reduction.single
    if kept is None and single and reduction.count == 1:
        return None
    method = None if reduction.method is None else getattr(builder, reduction.method)

    def make(values: list[Any]) -> Any:
        if kept is not None:
            chosen: list[Any] = []
            for place, several in kept:
                if several:
                    chosen += values[place]
                else:
                    chosen.append(values[place])
            values = chosen
        if single and len(values) == 1:
            return values[0]
        return values if method is None else method(*values)

    return make
