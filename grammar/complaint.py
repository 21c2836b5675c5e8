"""What to say where a text leaves the grammar: what could stand there, what was found, and an obvious remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from lark import Token

from tc.base.errors import Diagnostic, Span
from tc.grammar.slip_hints import Place, remedy, unclosed_body
from tc.grammar.syntax_builder import span_of


def complain(text: str, tokens: Sequence[Token], position: int, accepted: Set[str]) -> Diagnostic:
    """The complaint about what stands at ``position`` behind ``tokens``, where only ``accepted`` may follow.

    ``position`` is the length of the text where the text is incomplete.
    """
    match = _FOUND.match(text, position)
    found = match.group() if match is not None else ""
    place = Place(text, tokens, position, found, accepted)
    if place.follows("def") and "UPDATE" in accepted and _WORD.fullmatch(found):
        # The parser read `def` as the target of one more statement and stopped behind it.
        return Diagnostic("expected a statement or `}`, found `def`", span_of(tokens[-1]), unclosed_body(place))
    # The end is shown just behind the last token, not on an empty last line.
    start = position if found or not tokens else span_of(tokens[-1]).end
    message = f"expected {_alternatives(accepted)}, found {_shown(found)}"
    return Diagnostic(message, Span(start, start + max(1, len(found))), remedy(place))


_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
# A number, well formed or not; a word; an operator; or any other single character.
_FOUND: Final = re.compile(
    r"\.?[0-9][0-9.]*[eE][+-][0-9][A-Za-z0-9_.]*|\.?[0-9][A-Za-z0-9_.]*|[A-Za-z0-9_]+"
    r"|->|[-+*/%]=!?|[=!<>]=|&&|\|\||[\s\S]"
)
_LONGEST_SHOWN: Final = 40


def _shown(found: str) -> str:
    if not found:
        return "the end of the text"
    if not found.isprintable():
        return f"the character U+{ord(found):04X}"
    return f"`{found}`" if len(found) <= _LONGEST_SHOWN else f"`{found[:_LONGEST_SHOWN]}...`"


# Terminals of the grammar that together have a name, in the order in which a message lists them: a group is
# named where its first set is accepted whole, and with it the second set is said.
_EXPRESSION: Final = frozenset({"NAME", "INTEGER", "FLOAT", "LPAR", "MINUS", "NOT"})
_OPERATOR: Final = frozenset({"OR", "AND", "EQUALITY", "RELATION", "PLUS", "MINUS", "MULTIPLICATION", "QMARK"})
_ASSIGNMENT: Final = frozenset({"SET", "UPDATE"})
_GROUPS: Final[tuple[tuple[frozenset[str], frozenset[str], str], ...]] = (
    (_EXPRESSION, _EXPRESSION, "an expression"),
    (_OPERATOR, _OPERATOR | {"DOT", "LPAR"}, "an operator"),
    (_ASSIGNMENT, _ASSIGNMENT, "an assignment (`=`, `+=`, `*=`, `min=`, `max=`)"),
    (frozenset({"NAME", "RBRACE"}), frozenset({"NAME", "LPAR", "SEMICOLON"}), "a statement"),
    (frozenset({"NAME", "INTEGER"}), frozenset({"NAME", "INTEGER"}), "a size (a name or an integer)"),
    (frozenset({"NAME", "RPAR"}), frozenset({"NAME"}), "a parameter"),
    (frozenset({"NAME"}), frozenset({"NAME"}), "a name"),
    (frozenset({"INTEGER"}), frozenset({"INTEGER"}), "the number of a dimension"),
)
_WORDS: Final = {
    "SET": "`=`", "LPAR": "`(`", "COMMA": "`,`", "COLON": "`:`", "RPAR": "`)`", "ARROW": "`->`", "IN": "`in`",
    "EXISTS": "`exists`", "DISTINCT": "`distinct`", "WHERE": "`where`",
    "LBRACE": "`{`", "RBRACE": "`}`", "DEF": "`def`",
    "$END": "the end of the text",
}  # fmt: skip


def _alternatives(accepted: Set[str]) -> str:
    rest = set(accepted)
    words: list[str] = []
    for needed, said, phrase in _GROUPS:
        if rest >= needed:
            rest -= said
            words.append(phrase)
    words.extend(word for terminal, word in _WORDS.items() if terminal in rest)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
