"""The messages of a GraphDef: their fields with numbers, names and kinds, as TensorFlow's ``.proto`` files have them.

What this package does not need is left out, and is skipped where it is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from tc.base.frozen import frozen


class Kind(Enum):
    """What a field holds."""

    INTEGER = "a whole number"
    UNSIGNED = "a whole number that is not negative"
    BOOLEAN = "true or false"
    FLOAT = "a number of 32 bits"
    DOUBLE = "a number of 64 bits"
    BYTES = "bytes"
    TEXT = "a text"
    TYPE = "the name of a type"


@frozen
class Field:
    """``kind`` of what it holds, or the schema of the message that it is."""

    number: int
    name: str
    kind: Kind | Schema
    repeated: bool = False


class Schema:
    """A message: its fields by name and by number.  ``one``: it has one field at a time, the last that is given."""

    def __init__(self, name: str, *fields: Field, one: bool = False) -> None:
        self.name: Final = name
        self.by_name: Final[Mapping[str, Field]] = MappingProxyType({field.name: field for field in fields})
        self.by_number: Final[Mapping[int, Field]] = MappingProxyType({field.number: field for field in fields})
        self.one: Final = one


class Unread(Protocol):
    """A message in its format, which is read when it is needed."""

    def read(self, schema: Schema) -> Message:
        """The fields of the message; GraphError where they are not those of the schema."""


Held: TypeAlias = "int | float | bool | bytes | str | Unread"


class Message:
    """The fields of a message that were given, by name; messages inside it are read when they are asked for."""

    def __init__(self, schema: Schema) -> None:
        self.schema: Final = schema
        self._values: Final[dict[str, list[Any]]] = {}

    def add(self, field: Field, *values: Held) -> None:
        """Further values of a field."""
        if not values:
            return
        if self.schema.one:
            self._values.clear()
        self._values.setdefault(field.name, []).extend(values)

    def given(self) -> str:
        """The name of the field that was given last; nothing where none was."""
        return next(reversed(self._values), "")

    def all(self, name: str) -> list[Any]:
        """The values of a field in order."""
        return self._values.get(name, [])

    def last(self, name: str, default: Any) -> Any:
        """The value of a field: the last one that was given."""
        return self._values[name][-1] if self._values.get(name) else default

    def messages(self, name: str) -> list[Message]:
        """The messages of a field in order."""
        kind = self.schema.by_name[name].kind
        assert isinstance(kind, Schema)
        return [unread.read(kind) for unread in self.all(name)]

    def message(self, name: str) -> Message:
        """The message of a field; an empty one where none was given."""
        found = self.messages(name)
        kind = self.schema.by_name[name].kind
        assert isinstance(kind, Schema)
        return found[-1] if found else Message(kind)


DIMENSION: Final = Schema("Dim", Field(1, "size", Kind.INTEGER), Field(2, "name", Kind.TEXT))
SHAPE: Final = Schema(
    "TensorShapeProto", Field(2, "dim", DIMENSION, repeated=True), Field(3, "unknown_rank", Kind.BOOLEAN)
)
TENSOR: Final = Schema(
    "TensorProto",
    Field(1, "dtype", Kind.TYPE),
    Field(2, "tensor_shape", SHAPE),
    Field(4, "tensor_content", Kind.BYTES),
    Field(5, "float_val", Kind.FLOAT, repeated=True),
    Field(6, "double_val", Kind.DOUBLE, repeated=True),
    Field(7, "int_val", Kind.INTEGER, repeated=True),
    Field(8, "string_val", Kind.BYTES, repeated=True),
    Field(10, "int64_val", Kind.INTEGER, repeated=True),
    Field(11, "bool_val", Kind.BOOLEAN, repeated=True),
    Field(13, "half_val", Kind.INTEGER, repeated=True),
    Field(16, "uint32_val", Kind.UNSIGNED, repeated=True),
    Field(17, "uint64_val", Kind.UNSIGNED, repeated=True),
    Field(18, "float8_val", Kind.BYTES),
)
_SCALARS: Final = (
    (2, "s", Kind.BYTES),
    (3, "i", Kind.INTEGER),
    (4, "f", Kind.FLOAT),
    (5, "b", Kind.BOOLEAN),
    (6, "type", Kind.TYPE),
    (7, "shape", SHAPE),
    (8, "tensor", TENSOR),
)
# A function with attributes of its own, which nothing here looks into.
_FUNCTION: Final = Schema("NameAttrList", Field(1, "name", Kind.TEXT))
LIST: Final = Schema(
    "ListValue",
    *(Field(number, name, kind, repeated=True) for number, name, kind in _SCALARS),
    Field(9, "func", _FUNCTION, repeated=True),
)
ATTRIBUTE: Final = Schema(
    "AttrValue",
    Field(1, "list", LIST),
    *(Field(number, name, kind) for number, name, kind in _SCALARS),
    Field(9, "placeholder", Kind.TEXT),
    Field(10, "func", _FUNCTION),
    one=True,
)
ENTRY: Final = Schema("AttrEntry", Field(1, "key", Kind.TEXT), Field(2, "value", ATTRIBUTE))
NODE: Final = Schema(
    "NodeDef",
    Field(1, "name", Kind.TEXT),
    Field(2, "op", Kind.TEXT),
    Field(3, "input", Kind.TEXT, repeated=True),
    Field(4, "device", Kind.TEXT),
    Field(5, "attr", ENTRY, repeated=True),
)
VERSIONS: Final = Schema("VersionDef", Field(1, "producer", Kind.INTEGER), Field(2, "min_consumer", Kind.INTEGER))
GRAPH: Final = Schema("GraphDef", Field(1, "node", NODE, repeated=True), Field(4, "versions", VERSIONS))

# Names of ``DataType`` by number; a number above 100 is that of a reference to a variable of the type 100 below.
TYPE_NAMES: Final = MappingProxyType(
    dict(
        enumerate(
            (
                "DT_INVALID", "DT_FLOAT", "DT_DOUBLE", "DT_INT32", "DT_UINT8", "DT_INT16", "DT_INT8", "DT_STRING",
                "DT_COMPLEX64", "DT_INT64", "DT_BOOL", "DT_QINT8", "DT_QUINT8", "DT_QINT32", "DT_BFLOAT16",
                "DT_QINT16", "DT_QUINT16", "DT_UINT16", "DT_COMPLEX128", "DT_HALF", "DT_RESOURCE", "DT_VARIANT",
                "DT_UINT32", "DT_UINT64", "DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN",
            )
        )
    )
)  # fmt: skip
REFERENCE: Final = 100
TYPE_NUMBERS: Final = MappingProxyType(
    {name: number for number, name in TYPE_NAMES.items()}
    | {f"{name}_REF": number + REFERENCE for number, name in TYPE_NAMES.items()}
)
