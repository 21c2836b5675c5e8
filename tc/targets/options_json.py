"""Options as JSON and back; what means nothing is refused with the name of the option and what to write."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar, cast, get_args, get_origin

from tc.base.errors import OptionsError, nearest
from tc.base.json_records import field_types
from tc.targets.renamed import RENAMED

Kind = TypeVar("Kind")

# Longest part of a faulty text that an error message quotes.
_SHOWN: Final = 80


class Written:
    """Options that travel as text."""

    __slots__ = ()

    def __new__(cls, *_values: object, **named: object) -> Self:
        """OptionsError for a name that an option had once."""
        for name in named:
            if name in RENAMED.get(cls.__name__, ()):
                raise OptionsError(f"{cls.__name__} has no option {name!r}; {_hint(name, cls)}")
        return super().__new__(cls)

    if not TYPE_CHECKING:  # for which the class would have every attribute

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            now = RENAMED.get(kind, {}).get(name)
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}" + (f"; it is called {now} now" if now else "")
            )

    def to_json(self) -> str:
        """The options as canonical JSON: equal options have equal texts."""
        return json.dumps(to_json(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of ``to_json``; what the text leaves out keeps its default.

        OptionsError, naming the option and what to write, for an unknown one, a wrong type or value, and for what is
        no JSON.
        """
        return from_json(parse(text), cls)


def to_json(options: object) -> dict[str, Any]:
    """The options as plain JSON values."""
    assert dataclasses.is_dataclass(options)
    return {field.name: _plain(getattr(options, field.name)) for field in dataclasses.fields(options)}


def from_json(data: object, kind: type[Kind]) -> Kind:
    """The inverse of ``to_json``; names that are missing keep their defaults.  OptionsError for anything else."""
    values, hints = _known(data, kind), field_types(cast("Hashable", kind))
    return kind(**{name: _value(name, value, hints[name]) for name, value in values.items()})


def value_to_json(value: object) -> object:
    """The value of one option as a plain JSON value."""
    return _plain(value)


def option_value(name: str, data: object, kind: type) -> object:
    """The inverse of ``value_to_json`` for an option of this class, or of one inside it; of another name, text and
    numbers as they are.  OptionsError for a value that it cannot have.
    """
    for field, hint in field_types(kind).items():
        if field == name:
            return data if data is None else _value(name, data, hint)
        if isinstance(hint, type) and issubclass(hint, Written) and name in _names(hint):
            return option_value(name, data, hint)
    return tuple(data) if isinstance(data, list) else data


def parse(text: str) -> object:
    """What a text in JSON says; OptionsError for what is none, and for names that stand in an object twice."""
    if not isinstance(text, str):
        raise OptionsError(f"options must be text in JSON, got {type(text).__name__}")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise OptionsError(f'options must be JSON such as {{"threads": 1}}, got {shown!r}: {error}') from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise OptionsError(f"{name} stands in the options twice; write it once")
        found[name] = value
    return found


def _plain(value: object) -> object:
    match value:
        case Written():
            return to_json(value)
        case Enum():
            return value.value
        case tuple():
            return list(value)
        case _:
            return value


def _value(name: str, value: object, hint: object) -> object:
    """The value of a field; numbers and truth values are checked by whoever makes the options."""
    if isinstance(hint, type) and issubclass(hint, Written):
        return from_json(value, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member(name, value, hint)
    if value is not None and any(get_origin(inner) is tuple for inner in get_args(hint)):
        if not isinstance(value, list):
            raise OptionsError(f"{name} must be a list of integers or null, got {value!r}")
        return tuple(value)
    return value


def _member(name: str, value: object, choices: type[Enum]) -> Enum:
    known = {cast("str", choice.value): choice for choice in choices}
    if isinstance(value, str) and value in known:
        return known[value]
    guess = nearest(value, known) if isinstance(value, str) else None
    hint = f"; did you mean {guess!r}?" if guess else ""
    raise OptionsError(f"{name} must be one of {', '.join(known)}, got {value!r}{hint}")


def _names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _known(data: object, kind: type) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise OptionsError(f"{kind.__name__} must be a JSON object, got {data!r}")
    names, now = _names(kind), RENAMED.get(kind.__name__, {})
    found: dict[str, Any] = {}
    for given, value in data.items():
        name = now.get(given, given)
        if name not in names:
            raise OptionsError(f"{kind.__name__} has no option {given!r}; {_hint(str(given), kind)}")
        if name in found:
            raise OptionsError(f"{name} stands in the options twice, once by its old name; write it once")
        found[name] = value
    return found


def _hint(name: str, kind: type) -> str:
    """Where an option belongs that this class has not, or which name is nearest."""
    for field, hint in field_types(kind).items():
        if isinstance(hint, type) and issubclass(hint, Written) and name in _names(hint):
            return f'it belongs to {field}: write {{"{field}": {{"{name}": ...}}}}'
    if (now := RENAMED.get(kind.__name__, {}).get(name)) is not None:
        return f"it is called {now} now"
    for other in Written.__subclasses__():
        if dataclasses.is_dataclass(other) and name in _names(other):
            return f"tc.{other.__name__} has one"
        if (now := RENAMED.get(other.__name__, {}).get(name)) is not None:
            return f"tc.{other.__name__} has one, which is called {now} now"
    guess = nearest(name, _names(kind))
    return f"did you mean {guess!r}?" if guess else f"known: {', '.join(_names(kind))}"
