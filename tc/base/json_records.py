"""Frozen dataclasses as JSON and back."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import json
import sys
import types
from collections.abc import Mapping
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
    return cast("Record", _read(record, data, record.__name__))


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


def _read(kind: object, data: object, place: str) -> object:
    if kind is object:
        return data
    if isinstance(kind, types.UnionType):
        (inner,) = (option for option in get_args(kind) if option is not types.NoneType)
        return None if data is None else _read(inner, data, place)
    origin = get_origin(kind)
    if origin is tuple:
        items = _expect(list, data, place)
        inners = get_args(kind)
        if inners[-1] is Ellipsis:
            inners = inners[:1] * len(items)
        if len(inners) != len(items):
            raise ValueError(f"{place} must hold {counted(len(inners), 'value')}, got {data!r}")
        return tuple(
            _read(inner, item, f"{place}[{n}]") for n, (inner, item) in enumerate(zip(inners, items, strict=True))
        )
    if origin is dict:
        (_, inner) = get_args(kind)
        return {key: _read(inner, item, f"{place}.{key}") for key, item in _expect(dict, data, place).items()}
    if not isinstance(kind, type):
        raise TypeError(f"{place}: a field of type {kind} cannot be read from JSON")
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, _expect(dict, data, place), place)
    if issubclass(kind, Enum):
        return _member(kind, data, place)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return _expect(kind, data, place)


def _dataclass(kind: type, data: dict[str, object], place: str) -> object:
    hints = field_types(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(data.keys() - fields.keys()):
        raise ValueError(f"{place} has no {', '.join(unknown)}; known: {', '.join(fields)}")
    needed = {
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    if missing := sorted(needed - data.keys()):
        raise ValueError(f"{place} lacks {', '.join(missing)}")
    return kind(**{name: _read(hints[name], item, f"{place}.{name}") for name, item in data.items()})


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


def _member(kind: type[Enum], data: object, place: str) -> Enum:
    for member in kind:
        if member.value == data:
            return member
    raise ValueError(f"{place} must be one of {', '.join(str(m.value) for m in kind)}, got {data!r}")


def _expect(kind: type[Record], data: object, place: str) -> Record:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{place} must be a {kind.__name__}, got {data!r}")
    return data
