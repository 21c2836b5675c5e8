"""Frozen dataclasses as JSON and back."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import json
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast, get_args, get_origin

from tc.base.counted import counted

if TYPE_CHECKING:
    from pathlib import Path

Json: TypeAlias = dict[str, object]
Record = TypeVar("Record")


def to_json(value: object) -> object:
    """Dataclasses and mappings as objects, tuples as lists, members of enumerations by value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} has no form in JSON")


def from_json(record: type[Record], data: object) -> Record:
    """The inverse of ``to_json`` for a dataclass, whose fields may be missing where they have a default.

    Fields are numbers, strings, booleans, enumerations, dataclasses, ``tuple[X, ...]``, ``tuple[X, Y]``,
    ``dict[str, X]``, ``X | None``, or ``object`` for what is taken as it is.  ValueError, naming the place, for
    anything else.
    """
    try:
        return cast("Record", _reading(cast("Hashable", record))(data))
    except _MisfitError as error:
        raise ValueError(f"{record.__name__}{error.place} {error.reason}") from None


def load_record(record: type[Record], path: Path) -> Record:
    """The dataclass in a file of JSON; ValueError, naming the file and the place, if it holds something else."""
    try:
        return from_json(record, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def save_record(record: object, path: Path) -> None:
    """Writes a dataclass as JSON, into a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_json(record), indent=1) + "\n", encoding="utf-8")


class _MisfitError(Exception):
    """Data that is not of the type that is read; ``place`` is where, within what is read."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason


_Reading: TypeAlias = Callable[[object], object]


@functools.cache
def _reading(kind: object) -> _Reading:
    """What reads values of a type; made once, since thousands of values are read when kernels are loaded."""
    if kind is object:
        return lambda data: data
    if isinstance(kind, types.UnionType):
        (inner,) = (option for option in get_args(kind) if option is not types.NoneType)
        return _optional(_reading(inner))
    origin = get_origin(kind)
    if origin is tuple:
        inners = get_args(kind)
        return _list_of(_reading(inners[0])) if inners[-1] is Ellipsis else _tuple_of([*map(_reading, inners)])
    if origin is dict:
        return _dict_of(_reading(get_args(kind)[1]))
    if not isinstance(kind, type):
        raise TypeError(f"a field of type {kind} cannot be read from JSON")
    if dataclasses.is_dataclass(kind):
        return functools.partial(_dataclass, kind)
    if issubclass(kind, Enum):
        return _member_of(kind)
    return _float if kind is float else _plain(kind)


def _optional(inner: _Reading) -> _Reading:
    return lambda data: None if data is None else inner(data)


def _list_of(inner: _Reading) -> _Reading:
    def read(data: object) -> object:
        items = _expect(list, data)
        try:
            return tuple([inner(item) for item in items])
        except _MisfitError as error:
            raise _placed(error, enumerate(items), inner) from None

    return read


def _tuple_of(inners: list[_Reading]) -> _Reading:
    def read(data: object) -> object:
        items = _expect(list, data)
        if len(inners) != len(items):
            raise _MisfitError("", f"must hold {counted(len(inners), 'value')}, got {data!r}")
        found = []
        for number, (inner, item) in enumerate(zip(inners, items, strict=True)):
            try:
                found.append(inner(item))
            except _MisfitError as error:
                raise _MisfitError(f"[{number}]{error.place}", error.reason) from None
        return tuple(found)

    return read


def _dict_of(inner: _Reading) -> _Reading:
    def read(data: object) -> object:
        found = {}
        for key, item in _expect(dict, data).items():
            try:
                found[key] = inner(item)
            except _MisfitError as error:
                raise _MisfitError(f".{key}{error.place}", error.reason) from None
        return found

    return read


def _placed(error: _MisfitError, items: Iterable[tuple[int, object]], inner: _Reading) -> _MisfitError:
    """The error with the number of the first item that does not fit."""
    for number, item in items:
        try:
            inner(item)
        except _MisfitError as found:
            return _MisfitError(f"[{number}]{found.place}", found.reason)
    return error


@functools.cache
def _fields(kind: type) -> tuple[dict[str, _Reading], frozenset[str]]:
    """What reads each field, and the fields that must be there."""
    hints = field_types(kind)
    needed = frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    return {field.name: _reading(hints[field.name]) for field in dataclasses.fields(kind)}, needed


def _dataclass(kind: type, data: object) -> object:
    readings, needed = _fields(kind)
    given, found = _expect(dict, data), {}
    for name, item in given.items():
        reading = readings.get(name)
        if reading is None:
            unknown = sorted(given.keys() - readings.keys())
            raise _MisfitError("", f"has no {', '.join(unknown)}; known: {', '.join(readings)}")
        try:
            found[name] = reading(item)
        except _MisfitError as error:
            raise _MisfitError(f".{name}{error.place}", error.reason) from None
    if len(found) < len(readings) and (missing := sorted(needed - found.keys())):
        raise _MisfitError("", f"lacks {', '.join(missing)}")
    return kind(**found)


def _member_of(kind: type[Enum]) -> _Reading:
    members = {member.value: member for member in kind}

    def read(data: object) -> object:
        try:
            return members[data]
        except (KeyError, TypeError):
            raise _MisfitError("", f"must be one of {', '.join(map(str, members))}, got {data!r}") from None

    return read


def _float(data: object) -> object:
    return float(data) if type(data) is int else _expect(float, data)


def _plain(kind: type) -> _Reading:
    return lambda data: data if type(data) is kind else _expect(kind, data)


@functools.cache
def field_types(kind: type) -> dict[str, object]:
    """The types of a dataclass's fields, whose annotations mean what its module says."""
    return {field.name: _type(str(field.type), kind.__module__) for field in dataclasses.fields(kind)}


@functools.cache
def _type(annotation: str, module: str) -> object:
    """What an annotation of a module means.  (``typing.get_type_hints`` takes twice the time, and reading records is
    a part of the start of a process that only calls cached kernels.)
    """
    known = vars(sys.modules[module])
    if annotation.isidentifier():
        return known[annotation] if annotation in known else getattr(builtins, annotation)
    return eval(annotation, known)


def _expect(kind: type[Record], data: object) -> Record:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise _MisfitError("", f"must be a {kind.__name__}, got {data!r}")
    return data
