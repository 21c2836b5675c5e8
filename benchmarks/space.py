"""Which values of which options a search tries: from the types of the options, and a table for numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, get_type_hints

from tc.errors import OptionsError
from tc.options import CpuOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of the values."""

    values: tuple[object, ...]

    def other(self, value: object, random: Random) -> object:
        """A value that is not ``value``."""
        return random.choice([found for found in self.values if found != value])


@dataclass(frozen=True, slots=True)
class ListOf:
    """At most ``most`` of the values, in any order, or None where the target chooses."""

    values: tuple[int, ...]
    most: int

    def other(self, value: object, random: Random) -> object:
        """A list that differs from ``value`` in one place or by its last one; from None, anything."""
        if not isinstance(value, tuple) or not value:
            return tuple(random.choice(self.values) for _ in range(random.randint(1, self.most)))
        place = random.randrange(len(value) + 1)
        if place < len(value):
            return (*value[:place], random.choice([v for v in self.values if v != value[place]]), *value[place + 1 :])
        if len(value) < self.most and random.random() < 0.5:
            return (*value, random.choice(self.values))
        return value[:-1] or None


Values: TypeAlias = OneOf | ListOf
Path: TypeAlias = tuple[str, ...]

# Values of options that are numbers or lists of numbers; their types do not tell which ones make sense.
NUMBERS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        "tile": ListOf((0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024), 4),
        "unroll": OneOf((1, 2, 4, 8, 16, 32, 64, 128, 256)),
        "register_tile": ListOf((1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 28, 32, 48, 64, 96, 128), 3),
        "lane": OneOf((None, 0, 1, 2, 3)),
        "local": OneOf((0, 1 << 10, 1 << 15)),
        "streamed": OneOf((0, 1 << 20, 1 << 23, 1 << 26)),
        "ahead": OneOf((0, 1 << 14, 1 << 17, 1 << 20)),
        "prefetch": OneOf((0, 4, 8, 16, 32)),
        "accumulators": OneOf((0, 64, 128, 256, 384, 512, 1024)),
        "packed": OneOf((0, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 17, 1 << 18)),
    }
)

# These say what a call does or may take, not how.
NOT_SEARCHED: Final = frozenset({"threads", "check_indices"})


def genes(options: type = CpuOptions, prefix: Path = ()) -> Iterator[tuple[Path, Values]]:
    """The options that are searched, by the path of names that leads to each, and their values.

    TypeError, naming it, for an option that has neither a type that tells its values nor an entry in the table.
    """
    hints = get_type_hints(options)
    for field in dataclasses.fields(options):
        kind, path = hints[field.name], (*prefix, field.name)
        if field.name in NOT_SEARCHED:
            continue
        if field.name in NUMBERS:
            yield path, NUMBERS[field.name]
        elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from genes(kind, path)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield path, OneOf(tuple(kind))
        elif kind is bool:
            yield path, OneOf((False, True))
        else:
            raise TypeError(f"the values of {'.'.join(path)} to try are unknown; add them to {__name__}.NUMBERS")


def value_at(options: object, path: Path) -> object:
    """The value of an option."""
    for name in path:
        options = getattr(options, name)
    return options


def with_value(options: CpuOptions, path: Path, value: object) -> CpuOptions:
    """The options with another value of one of them; OptionsError if they do not allow it."""
    return _with_value(options, path, value)


def _with_value(record: Record, path: Path, value: object) -> Record:
    name, *rest = path
    inner = _with_value(getattr(record, name), tuple(rest), value) if rest else value
    return dataclasses.replace(record, **{name: inner})


def neighbour(options: CpuOptions, random: Random) -> CpuOptions:
    """The options with one or two of them changed."""
    choices = dict(genes())
    while True:
        changed = options
        try:
            for path in random.sample(list(choices), random.choice((1, 1, 2))):
                changed = with_value(changed, path, choices[path].other(value_at(changed, path), random))
        except OptionsError:  # not together with the others
            continue
        return changed
