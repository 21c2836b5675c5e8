"""Protobuf's binary format: a message is a sequence of fields, each of which says how long it is.

Nothing is allocated that is only announced: every length is compared with the bytes that there are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.protobuf.schema import Field, Held, Kind, Message, Schema

# How the bytes of a field end: a varint with its last byte, others after 8, 4, or so many bytes as they begin with.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_WIRE_TYPES: Final = {
    Kind.INTEGER: VARINT,
    Kind.UNSIGNED: VARINT,
    Kind.BOOLEAN: VARINT,
    Kind.TYPE: VARINT,
    Kind.FLOAT: FIXED32,
    Kind.DOUBLE: FIXED64,
}
Raw: TypeAlias = "int | memoryview"


@frozen
class Encoded:
    """A message as bytes."""

    data: memoryview

    def read(self, schema: Schema) -> Message:
        """The fields that the schema has; others are skipped."""
        message = Message(schema)
        for number, wire_type, raw in fields(self.data):
            field = schema.by_number.get(number)
            if field is not None:
                message.add(field, *_values(field, wire_type, raw))
        return message


def fields(data: memoryview) -> Iterator[tuple[int, int, Raw]]:
    """Number, wire type and contents of every field; GraphError where the bytes are not those of a message."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise GraphError(f"a field has the number {number}, which no message has")
        raw: Raw
        if wire_type == VARINT:
            raw, position = _varint(data, position)
        else:
            length, position = _length(data, position, wire_type)
            if length > len(data) - position:
                raise GraphError(f"field {number} announces {length} bytes, and {len(data) - position} are left")
            raw, position = data[position : position + length], position + length
        yield number, wire_type, raw


def _length(data: memoryview, position: int, wire_type: int) -> tuple[int, int]:
    if wire_type == LENGTH:
        return _varint(data, position)
    if wire_type in (FIXED64, FIXED32):
        return (8 if wire_type == FIXED64 else 4), position
    raise GraphError(f"a field has the wire type {wire_type}, which GraphDefs do not use")


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """A number of 64 bits, seven of them in each byte, the lowest first; and where it ends."""
    value = 0
    for place, byte in enumerate(data[position : position + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + place + 1
    raise GraphError("the bytes end within a number, or a number is too long")


def _values(field: Field, wire_type: int, raw: Raw) -> list[Held]:
    """What a field holds; nothing where it is encoded as the schema does not have it."""
    kind = field.kind
    if isinstance(kind, Schema):
        return [Encoded(raw)] if isinstance(raw, memoryview) and wire_type == LENGTH else []
    own = _WIRE_TYPES.get(kind, LENGTH)
    if wire_type == own:
        return [_value(kind, raw, field)]
    if own != LENGTH and wire_type == LENGTH and isinstance(raw, memoryview) and field.repeated:
        return _packed(field, kind, raw)
    return []


def _value(kind: Kind, raw: Raw, field: Field) -> Held:
    if isinstance(raw, int):
        if kind is Kind.BOOLEAN:
            return raw != 0
        return raw - (1 << 64) if raw >> 63 and kind is not Kind.UNSIGNED else raw
    match kind:
        case Kind.FLOAT | Kind.DOUBLE:
            (number,) = struct.unpack("<f" if kind is Kind.FLOAT else "<d", raw)
            return float(number)
        case Kind.TEXT:
            try:
                return str(raw, "utf-8")
            except UnicodeDecodeError:
                raise GraphError(f"`{field.name}` is no text in UTF-8") from None
        case Kind.MEMORY:
            return raw
        case _:
            return bytes(raw)


def _packed(field: Field, kind: Kind, raw: memoryview) -> list[Held]:
    """Numbers, one after the other."""
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        code, size = ("f", 4) if kind is Kind.FLOAT else ("d", 8)
        if len(raw) % size:
            raise GraphError(f"`{field.name}` has {len(raw)} bytes, which are not those of numbers of {size} bytes")
        return list(struct.unpack(f"<{len(raw) // size}{code}", raw))
    found: list[Held] = []
    position = 0
    while position < len(raw):
        number, position = _varint(raw, position)
        found.append(_value(kind, number, field))
    return found
