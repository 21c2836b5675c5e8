"""Messages of protobuf: their fields with numbers, names and kinds, as ``.proto`` files have them."""

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
    MEMORY = "bytes that are not copied"
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


Held: TypeAlias = "int | float | bool | bytes | memoryview | str | Unread"


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
