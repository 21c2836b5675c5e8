"""What to say where a text leaves the grammar: what could stand there, what was found, and an obvious remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from lark import Token

from tc.errors import Diagnostic, Span, line_and_column
from tc.grammar.builder import span_of

_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_NUMBER: Final = re.compile(r"(?=\.?[0-9])(?:[0-9.]+[eE][+-]?[0-9]+|[A-Za-z0-9_.])+")
_SYMBOL: Final = re.compile(r"->|[-+*/%]=!?|[=!<>]=|&&|\|\||\.\.|//|[!-~]")
_NAME: Final = re.compile(r"[0-9]*[A-Za-z_][A-Za-z0-9_]*")

_STARTS_EXPRESSION: Final = frozenset({"NAME", "INTEGER", "FLOAT", "LPAR", "MINUS", "NOT"})
_OPERATORS: Final = frozenset(
    {"OR", "AND", "EQUALITY", "RELATION", "PLUS", "MINUS", "MULTIPLICATION", "QMARK", "DOT", "LPAR"}
)
_WORDS: Final = {
    "SET": "`=`", "IN": "`in`", "WHERE": "`where`", "DEF": "`def`", "ARROW": "`->`", "LPAR": "`(`", "COMMA": "`,`",
    "COLON": "`:`", "RPAR": "`)`", "LBRACE": "`{`", "RBRACE": "`}`", "$END": "the end of the text",
}  # fmt: skip


def complain(text: str, tokens: Sequence[Token], position: int, accepted: Set[str]) -> Diagnostic:
    """The complaint about what stands at ``position``, after ``tokens``, where only ``accepted`` can stand."""
    found, span = _found(text, position)
    return Diagnostic(f"expected {_alternatives(accepted)}, found {found}", span, None)


def _found(text: str, position: int) -> tuple[str, Span]:
    if position >= len(text):
        return "the end of the text", Span(position, position + 1)
    for pattern in (_NUMBER, _WORD, _SYMBOL):
        match = pattern.match(text, position)
        if match is not None:
            return f"`{match.group()}`", Span(*match.span())
    character = text[position]
    shown = f"`{character}`" if character.isprintable() else f"the character U+{ord(character):04X}"
    return shown, Span(position, position + 1)


def _alternatives(accepted: Set[str]) -> str:
    words: list[str] = []
    rest = set(accepted)
    if rest >= _STARTS_EXPRESSION:
        words.append("an expression")
        rest -= _STARTS_EXPRESSION
    words.extend(_WORDS.get(name, name) for name in sorted(rest))
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
