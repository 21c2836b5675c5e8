"""What the generator knows of a text while it writes it: tensors with their extents, iterators, typed terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tc.base.types import ALIASES, ScalarType
from tc.language.draft.typed import Strength, common_type


@dataclass(frozen=True, slots=True)
class Extent:
    """A number, and how the text spells it."""

    value: int
    text: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that may be read.

    ``below``: all its elements are in ``0:below``, so it can be an index.  ``exact``: no rounding went into it.
    """

    name: str
    type: ScalarType
    extents: tuple[Extent, ...]
    below: int | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Iterator:
    """``begin <= name < end``.  ``bound``: an access that stands alone gives this range."""

    name: str
    begin: Extent
    end: Extent
    bound: bool

    @property
    def clause(self) -> str:
        """The range, for a ``where``."""
        return f"{self.name} in {self.begin.text}:{self.end.text}"

    @property
    def length(self) -> int:
        return max(0, self.end.value - self.begin.value)


@dataclass(frozen=True, slots=True)
class Index:
    """An integer expression over iterators with its least and greatest value."""

    text: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Term:
    """An expression that may stand anywhere: atomic or parenthesized.

    ``exact``: every kernel computes the same, so that comparing or truncating it has one outcome.
    """

    text: str
    type: ScalarType
    strength: Strength = Strength.STRONG
    exact: bool = True

    @property
    def is_bool(self) -> bool:
        return self.strength is Strength.STRONG and self.type is ScalarType.BOOL

    @property
    def is_integer(self) -> bool:
        return self.type.is_integer


ZERO = Extent(0, "0")


def reading(tensor: Tensor, subscripts: Sequence[str]) -> Term:
    """One element of a tensor."""
    text = f"{tensor.name}({', '.join(subscripts)})" if subscripts else tensor.name
    return Term(text, tensor.type, exact=tensor.exact)


def spellings(type: ScalarType) -> list[str]:
    """How a text may call a type."""
    return [type.value, *(alias for alias, name in ALIASES.items() if name == type.value)]


def meet(first: Term, *others: Term) -> tuple[ScalarType, Strength]:
    """The type in which terms meet."""
    found = first.type, first.strength
    for term in others:
        found = common_type(found, (term.type, term.strength))
    return found
