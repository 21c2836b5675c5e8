"""Protobuf's text format: a small grammar, and what its words mean where a schema says what is expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, assert_never

import numpy as np
from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

from tc.base.errors import Diagnostic, GraphError, Span, render
from tc.base.frozen import frozen
from tc.graph.graphdef.schema import TYPE_NUMBERS
from tc.graph.protobuf.schema import Field, Held, Kind, Message, Schema


@frozen
class Scalar:
    """A number, a word, or the parts of a string."""

    parts: tuple[Token, ...]


@frozen
class Written:
    """A message as it is written: names of fields with their values."""

    fields: tuple[tuple[Token, tuple[Entry, ...]], ...]

    def read(self, schema: Schema) -> Message:
        """The fields that the schema has; others are skipped."""
        message = Message(schema)
        for name, values in self.fields:
            field = schema.by_name.get(str(name))
            if field is not None:
                message.add(field, *(_held(field, value, name) for value in values))
        return message


Entry: TypeAlias = "Scalar | Written"


class _Builder(Transformer[Token, Written]):
    """Makes messages of what the parser finds."""

    def start(self, children: Sequence[tuple[Token, tuple[Entry, ...]]]) -> Written:
        return Written(tuple(children))

    message = start

    def field(self, children: Sequence[Token | Entry | tuple[Entry, ...]]) -> tuple[Token, tuple[Entry, ...]]:
        name, value = children[0], children[1]
        assert isinstance(name, Token)
        return name, value if isinstance(value, tuple) else (value,)  # type: ignore[return-value]  # values are entries

    def list(self, children: Sequence[Entry | None]) -> tuple[Entry, ...]:
        return tuple(child for child in children if child is not None)

    def scalar(self, children: Sequence[Token]) -> Scalar:
        return Scalar(tuple(children))


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("graphdef.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=_Builder())


def parse(text: str) -> Written:
    """The message that a text holds; GraphError, which says where, for a text outside the grammar."""
    try:
        found = _parser().parse(text)
    except UnexpectedInput as error:
        position = len(text) if error.pos_in_stream is None or error.pos_in_stream < 0 else error.pos_in_stream
        place = Diagnostic("this is not protobuf's text format", Span(position, position + 1))
        raise GraphError(render(place, text)) from None
    assert isinstance(found, Written)
    return found


def _held(field: Field, value: Entry, name: Token) -> Held:
    if isinstance(field.kind, Schema):
        if isinstance(value, Written):
            return value
        raise GraphError(f"line {name.line}: `{name}` is a message, and has `{''.join(value.parts)}`")
    if isinstance(value, Written):
        raise GraphError(f"line {name.line}: `{name}` is {field.kind.value}, and has a message")
    try:
        return _scalar(field.kind, value.parts)
    except (ValueError, OverflowError):
        raise GraphError(f"line {name.line}: `{name}` is {field.kind.value}, and has {' '.join(value.parts)}") from None


def _scalar(kind: Kind, parts: tuple[Token, ...]) -> Held:
    """The value of a kind; ValueError where the text is that of another kind."""
    first = parts[0]
    if (first.type == "STRING") != (kind in (Kind.BYTES, Kind.MEMORY, Kind.TEXT)):
        raise ValueError(first)
    word = "".join(first.split())
    match kind:
        case Kind.BYTES | Kind.MEMORY:
            return b"".join(map(_unescaped, parts))
        case Kind.TEXT:
            return b"".join(map(_unescaped, parts)).decode("utf-8")
        case Kind.BOOLEAN:
            return _BOOLEANS[word] if word in _BOOLEANS else bool(_integer(word, 0, 1))
        case Kind.FLOAT:
            with np.errstate(over="ignore"):  # what has no room in 32 bits is infinite
                return float(np.float32(_real(word, first)))
        case Kind.DOUBLE:
            return _real(word, first)
        case Kind.TYPE:
            return TYPE_NUMBERS[word] if word in TYPE_NUMBERS else _integer(word, 0, 1 << 31)
        case Kind.INTEGER:
            return _integer(word, -(1 << 63), (1 << 63) - 1)
        case Kind.UNSIGNED:
            return _integer(word, 0, (1 << 64) - 1)
        case _:
            assert_never(kind)


_BOOLEANS: Final = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
_WHOLE: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")


def _integer(word: str, least: int, most: int) -> int:
    """A decimal, hexadecimal or octal number."""
    digits = word.removeprefix("-")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    number = int(digits, 8) if octal else int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
    number = -number if word != digits else number
    if not least <= number <= most:
        raise ValueError(word)
    return number


def _real(word: str, token: Token) -> float:
    if _WHOLE.fullmatch(word):
        return float(_integer(word, -(1 << 1024), 1 << 1024))
    return float(word.rstrip("fF") if token.type == "NUMBER" else word)


_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{4})"
    rb"|U(?P<long>[0-9a-fA-F]{8})|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS: Final = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"?": b"?", b"\\": b"\\", b"'": b"'", b'"': b'"',
}  # fmt: skip


def _unescaped(token: str) -> bytes:
    return _ESCAPE.sub(_character, token[1:-1].encode("utf-8"))


def _character(escape: re.Match[bytes]) -> bytes:
    if escape["octal"] is not None:
        return bytes((int(escape["octal"], 8) & 0xFF,))
    if escape["hex"] is not None:
        return bytes((int(escape["hex"], 16),))
    point = escape["short"] or escape["long"]
    if point is not None:
        return chr(int(point, 16)).encode("utf-8")
    if escape["letter"] not in _LETTERS:
        raise ValueError(escape[0])
    return _LETTERS[escape["letter"]]
