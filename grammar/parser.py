"""Text to syntax tree."""

from __future__ import annotations

from functools import cache
from typing import Final

from tc.grammar.step_tables import kept_steps
from tc.grammar.steps import Steps
from tc.grammar.syntax import Text
from tc.grammar.syntax_builder import MAXIMUM_DEPTH, Builder, RefusedError

# An open level of an expression holds at most five symbols on the parser's stack: `f ( a, b ,` has a name, a
# parenthesis, an argument, the list of the further ones and a comma.
MAXIMUM_STACK: Final = 5 * MAXIMUM_DEPTH + 50


@cache
def _steps() -> Steps:
    tables = kept_steps()
    if tables is None:
        from tc.grammar.tables import built, steps_of

        tables = steps_of(built(None))
    return Steps(tables, Builder())


def parse(text: str) -> Text:
    """The definitions of a text, at least one.

    Raises ``ParseError``, which says what could stand where and what was found, for a text outside the grammar, for
    a number that no type holds, and for an expression of more than ``MAXIMUM_DEPTH`` levels.
    """
    try:
        found = _steps().parsed(text, MAXIMUM_STACK)
    except RefusedError:
        found = None
    if found is None:
        from tc.grammar.by_lark import parsed_by_lark

        found = parsed_by_lark(text, MAXIMUM_STACK)
    return found
