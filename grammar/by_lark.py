"""Parses by Lark itself, which knows what could stand where a text leaves the grammar."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from tc.base.errors import ParseError
from tc.grammar.complaint import complain
from tc.grammar.steps import END
from tc.grammar.syntax import Text
from tc.grammar.syntax_builder import Builder, RefusedError, span_of, too_deep
from tc.grammar.tables import parser


@cache
def _parser() -> Lark:
    return parser(Builder())


def parsed_by_lark(text: str, most: int) -> Text:
    """``parse`` of a text, which is mostly in error.  ``most``: states on the stack."""
    interactive = _parser().parse_interactive(text)
    tokens: list[Token] = []
    try:
        for token in interactive.iter_parse():
            if len(interactive.parser_state.state_stack) > most:
                raise RefusedError(too_deep(span_of(token)))
            tokens.append(token)
        parsed: Text = interactive.feed_token(Token(END, ""))
    except UnexpectedInput as error:
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
