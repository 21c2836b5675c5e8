"""Text to syntax tree."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from tc.errors import ParseError
from tc.grammar.builder import MAXIMUM_DEPTH, Builder, RefusedError, span_of, too_deep
from tc.grammar.complaint import complain
from tc.grammar.syntax import Text

# An open level of an expression holds at most five symbols on the parser's stack (`f ( a , b ,`).
_MAXIMUM_STACK: Final = 5 * MAXIMUM_DEPTH + 50


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("tc.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=Builder(), maybe_placeholders=False)


def parse(text: str) -> Text:
    """The definitions of a text, at least one.

    Raises ``ParseError``, with the place, what was found, what could stand there and often a hint, for a text
    outside the grammar, for numbers that no type holds, and for expressions of more than ``MAXIMUM_DEPTH`` levels.
    """
    interactive = _parser().parse_interactive(text)
    state = interactive.parser_state
    tokens: list[Token] = []
    try:
        for token in interactive.lexer_thread.lex(state):
            interactive.feed_token(token)
            tokens.append(token)
            if len(state.state_stack) > _MAXIMUM_STACK:
                raise RefusedError(too_deep(span_of(token)))
        parsed: Text = interactive.feed_eof(tokens[-1] if tokens else None)
    except UnexpectedInput as error:
        raise ParseError(complain(text, tokens, _position(error, tokens), _accepted(tokens)), text) from None
    except RefusedError as refused:
        raise ParseError(refused.diagnostic, text) from None
    return parsed


def _accepted(tokens: list[Token]) -> frozenset[str]:
    """The terminals that can follow ``tokens``.

    The parser that met the error has already reduced with the wrong token in sight and knows less.
    """
    fresh = _parser().parse_interactive("")
    for token in tokens:
        fresh.feed_token(token)
    return frozenset(fresh.accepts())


def _position(error: UnexpectedInput, tokens: list[Token]) -> int:
    """The offset of what was met; the end of the text is just behind its last token."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return span_of(tokens[-1]).end if tokens else 0
    assert error.pos_in_stream is not None
    return error.pos_in_stream
