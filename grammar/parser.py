"""Text to syntax tree."""

from __future__ import annotations

from functools import cache
from typing import Final, Protocol

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from tc.base.errors import ParseError
from tc.grammar.steps import END, Steps
from tc.grammar.syntax import Text
from tc.grammar.syntax_builder import MAXIMUM_DEPTH, Builder, RefusedError, span_of, too_deep
from tc.grammar.tables import parser

# An open level of an expression holds at most five symbols on the parser's stack: `f ( a, b ,` has a name, a
# parenthesis, an argument, the list of the further ones and a comma.
_MAXIMUM_STACK: Final = 5 * MAXIMUM_DEPTH + 50


@cache
def _parser() -> Lark:
    return parser(Builder())


@cache
def _steps() -> Steps:
    return Steps(_parser())


def parse(text: str) -> Text:
    """The definitions of a text, at least one.

    Raises ``ParseError``, which says what could stand where and what was found, for a text outside the grammar, for
    a number that no type holds, and for an expression of more than ``MAXIMUM_DEPTH`` levels.
    """
    try:
        found = _steps().parsed(text, _MAXIMUM_STACK)
    except RefusedError:
        found = None
    return _by_lark(text) if found is None else found


def _by_lark(text: str) -> Text:
    """``parse`` of texts that are mostly in error."""
    interactive = _parser().parse_interactive(text)
    tokens: list[Token] = []
    try:
        for token in interactive.iter_parse():
            if len(interactive.parser_state.state_stack) > _MAXIMUM_STACK:
                raise RefusedError(too_deep(span_of(token)))
            tokens.append(token)
        parsed: Text = interactive.feed_token(Token(END, ""))
    except UnexpectedInput as error:
        from tc.grammar.complaint import complain  # its tables of patterns take as long to compile as a text to parse

        at_end = isinstance(error, UnexpectedToken) and error.token.type == END
        position = len(text) if at_end or error.pos_in_stream is None else error.pos_in_stream
        before = [token for token in tokens if span_of(token).start < position]
        raise ParseError(complain(text, before, position, _accepted(before)), text) from None
    except RefusedError as refused:
        raise ParseError(refused.diagnostic, text) from None
    return parsed


class _Steps(Protocol):
    """What Lark's interactive parser does without declaring its types."""

    def accepts(self) -> set[str]: ...


def _accepted(tokens: list[Token]) -> set[str]:
    """The terminals that can follow ``tokens``.

    They are parsed again because the parser that met the error has already reduced with the wrong token in sight,
    after which fewer can follow.
    """
    interactive = _parser().parse_interactive("")
    for token in tokens:
        interactive.feed_token(token)
    steps: _Steps = interactive
    return steps.accepts()
