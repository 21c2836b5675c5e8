"""Parses with Lark's tables, in which each step is looked up once: Lark looks each up by hashing a rule of the grammar.

Texts that are in error are left to Lark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from lark import Lark, Token
from lark.grammar import Rule
from lark.parse_tree_builder import ExpandSingleChild
from lark.parsers.lalr_analysis import Shift

from tc.grammar.syntax import Text

END: Final = "$END"

# How many values become one, what it is called, and what makes it; None where it is the only one of them.
_Reduction: TypeAlias = tuple[int, str, Callable[[list[Any]], Any] | None]
# That, or the next state.
_Step: TypeAlias = int | _Reduction


class Steps:
    """The steps of a parser by its state and what comes next."""

    def __init__(self, lark: Lark) -> None:
        own: Any = lark  # which declares no types of what it consists of
        made = own.parser.parser.parser
        (self._start,) = made.parse_table.start_states.values()
        (self._end,) = made.parse_table.end_states.values()
        self._steps: Final[dict[int, dict[str, _Step]]] = {
            state: {
                name: step if action is Shift else _reduction(step, made.callbacks[step])
                for name, (action, step) in row.items()
            }
            for state, row in made.parse_table.states.items()
        }
        self._lexers: Final = own.parser.lexer.lexers
        self._match: Final = _pattern(own.parser.lexer.root_lexer).match
        self._ignored: Final[frozenset[str]] = own.parser.lexer.root_lexer.ignore_types

    def parsed(self, text: str, most: int) -> Text | None:
        """The definitions of a text; None where Lark must see it, and where the stack has more than ``most`` states.

        Errors are those of what makes the values.
        """
        states, values, position = [self._start], list[Any](), 0
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
            values.append(Token(kind, found.group(), start))
        return values[-1] if self._reduced(END, states, values) == self._end else None

    def _found(self, text: str, position: int, state: int) -> re.Match[str] | None:
        """What comes next, as the lexer of all states takes tokens (see ``OnePatternLexer``)."""
        found = self._match(text, position)
        if found is not None and (found.lastgroup in self._steps[state] or found.lastgroup in self._ignored):
            return found
        return _pattern(self._lexers[state]).match(text, position)

    def _reduced(self, kind: str, states: list[int], values: list[Any]) -> int | None:
        """The state behind a token, once what ends before it is one value; None where none of this kind may come."""
        steps = self._steps
        while True:
            step = steps[states[-1]].get(kind)
            if step is None or isinstance(step, int):
                return step
            count, name, make = step
            if make is not None:
                first = len(values) - count
                made = make(values[first:])
                del states[first + 1 :], values[first:]
                values.append(made)
                states.append(0)
            then = steps[states[-2]][name]
            assert isinstance(then, int)
            if kind == END and then == self._end:
                return then
            states[-1] = then


def _pattern(lexer: Any) -> re.Pattern[str]:
    """Of all terminals of a lexer."""
    (pattern,) = lexer.scanner._mres
    assert isinstance(pattern, re.Pattern)
    return pattern


def _reduction(rule: Rule, make: Callable[[list[Any]], Any]) -> _Reduction:
    count = len(rule.expansion)
    return count, rule.origin.name, None if count == 1 and isinstance(make, ExpandSingleChild) else make
