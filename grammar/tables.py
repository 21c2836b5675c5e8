"""The tables of the parser, which are kept beside the grammar: they are read in 4 ms, and made of the grammar in 80."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

import lark
from lark import Lark, Token, Transformer
from lark.grammar import Rule
from lark.lexer import TerminalDef

from tc.grammar.lexer import OnePatternLexer
from tc.grammar.syntax import Text

GRAMMAR: Final = Path(__file__).with_name("tc.lark")
TABLES: Final = Path(__file__).with_name("tc.json")
_PLUGINS: Final = {"ContextualLexer": OnePatternLexer}


def parser(transformer: Transformer[Token, Text] | None) -> Lark:
    """The parser of the language, from its tables where they belong to this grammar and this version of Lark."""
    grammar = GRAMMAR.read_bytes()
    kept = json.loads(TABLES.read_bytes(), object_pairs_hook=_numbered)
    if kept["made_for"] != made_for(grammar):
        return built(transformer)
    kept["data"]["options"] |= {"transformer": transformer, "_plugins": _PLUGINS}
    return Lark.load(kept)


def built(transformer: Transformer[Token, Text] | None) -> Lark:
    """The parser of the language, made of the grammar."""
    text = GRAMMAR.read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        transformer=transformer,
        maybe_placeholders=False,
        _plugins=_PLUGINS,
    )


def tables() -> str:
    """What ``TABLES`` should hold.  The order in which Lark numbers states differs from process to process."""
    data, memo = built(None).memo_serialize([TerminalDef, Rule])
    data["options"]["_plugins"] = {}
    made = {"made_for": made_for(GRAMMAR.read_bytes()), "data": data, "memo": memo}
    return json.dumps(made, separators=(",", ":")) + "\n"


def made_for(grammar: bytes) -> str:
    """What tables belong to."""
    return f"lark {lark.__version__}, grammar {hashlib.sha256(grammar).hexdigest()}"


def _numbered(pairs: list[tuple[str, object]]) -> dict[str | int, object]:
    """An object of JSON whose keys are numbers again where they were."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs}
