"""Random accesses of a tensor: subscripts that stay inside, or a guard that keeps them inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz.model import Extent, Index, Iterator, Tensor
from tests.fuzz.source import Source

_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Access:
    """``text`` reads an element; where ``guard`` is not empty, only where that holds."""

    text: str
    guard: str
    tensors: frozenset[str]


class Accesses:
    """Draws accesses within one statement.

    ``gathers``: tensors whose elements may be subscripts.  ``scalars``: integer scalar arguments and their values.
    """

    def __init__(
        self,
        source: Source,
        iterators: Sequence[Iterator],
        gathers: Sequence[Tensor],
        scalars: Sequence[tuple[str, int]],
    ) -> None:
        self._source = source
        self._iterators = iterators
        self._gathers = gathers
        self._scalars = scalars

    def of(self, tensor: Tensor, depth: int = 0) -> Access | None:
        """A read of the tensor; None if none was found that stays inside."""
        texts: list[str] = []
        guards: list[str] = []
        tensors = {tensor.name}
        for extent in tensor.extents:
            gathered = self._gather(extent, depth)
            if gathered is not None:
                texts.append(gathered.text)
                tensors |= gathered.tensors
                continue
            found = self._subscript(extent)
            if found is None:
                return None
            texts.append(found[0])
            guards.extend(found[1])
        if not tensor.extents:
            text = tensor.name if self._source.chance(0.7) else f"{tensor.name}()"
        else:
            text = f"{tensor.name}({', '.join(texts)})"
        return Access(text, " && ".join(guards), frozenset(tensors))

    def _gather(self, extent: Extent, depth: int) -> Access | None:
        """An element of an index tensor as a subscript."""
        able = [t for t in self._gathers if t.below is not None and t.below <= extent.value]
        if depth > 1 or not able or not self._source.chance(0.3 if depth else 0.4):
            return None
        tensor = self._source.choice(able)
        access = self.of(tensor, depth + 1)
        if access is None or access.guard:
            return None
        slack = extent.value - (tensor.below or 0)
        forms = [access.text] * 4
        if slack > 0:
            forms.append(f"{access.text} + {self._source.randint(1, min(slack, 3))}")
        if (tensor.below or 0) > 1:
            forms.append(f"{access.text} % {tensor.below}")
        return Access(self._source.choice(forms), "", access.tensors)

    def _subscript(self, extent: Extent) -> tuple[str, list[str]] | None:
        """A subscript and its guards."""
        for _ in range(_ATTEMPTS):
            index = self.index(extent)
            if (index.low >= 0 and index.high < extent.value) or self._is_whole(index, extent):
                return index.text, []
            if self._source.chance(0.35):
                guards = [f"{index.text} >= 0"] if index.low < 0 else []
                if index.high >= extent.value:
                    guards.append(f"{index.text} < {extent.text}")
                self._source.shuffle(guards)
                return index.text, guards
        return None

    def _is_whole(self, index: Index, extent: Extent) -> bool:
        return any(i.name == index.text and i.end.value <= extent.value for i in self._iterators)

    def index(self, extent: Extent) -> Index:
        """A random index expression, often one that fits an extent."""
        if not self._iterators or self._source.chance(0.05):
            number = self._source.randrange(max(extent.value, 1))
            return Index(str(number), number, number)
        fitting = [i for i in self._iterators if i.end.value <= extent.value]
        iterator = self._source.choice(fitting if fitting and self._source.chance(0.8) else self._iterators)
        low, high = iterator.begin.value, max(iterator.end.value - 1, iterator.begin.value)
        plain = Index(iterator.name, low, high)
        form = self._source.weighted(_FORMS)
        return form(self, plain, extent) if form is not None else plain

    def other(self) -> Index:
        """Another iterator by itself."""
        iterator = self._source.choice(self._iterators)
        return Index(iterator.name, iterator.begin.value, max(iterator.end.value - 1, iterator.begin.value))

    def shifted(self, index: Index, extent: Extent) -> Index:
        amount = self._source.randint(1, 3)
        if self._source.chance(0.5):
            return Index(f"{index.text} + {amount}", index.low + amount, index.high + amount)
        return Index(f"{index.text} - {amount}", index.low - amount, index.high - amount)

    def added(self, index: Index, extent: Extent) -> Index:
        other = self.other()
        if self._source.chance(0.6):
            return Index(f"{index.text} + {other.text}", index.low + other.low, index.high + other.high)
        return Index(f"{index.text} - {other.text}", index.low - other.high, index.high - other.low)

    def scaled(self, index: Index, extent: Extent) -> Index:
        factor, rest = self._source.randint(2, 3), self._source.randint(0, 2)
        text = f"{factor} * {index.text}" + (f" + {rest}" if rest else "")
        return Index(text, factor * index.low + rest, factor * index.high + rest)

    def divided(self, index: Index, extent: Extent) -> Index:
        divisor = self._source.randint(2, 4)
        return Index(f"{index.text} / {divisor}", index.low // divisor, index.high // divisor)

    def wrapped(self, index: Index, extent: Extent) -> Index:
        divisor = self._source.choice([2, 3, max(extent.value, 1)])
        return Index(f"{index.text} % {divisor}", 0, min(divisor - 1, index.high))

    def reversed(self, index: Index, extent: Extent) -> Index:
        return Index(f"{extent.text} - 1 - {index.text}", extent.value - 1 - index.high, extent.value - 1 - index.low)

    def clamped(self, index: Index, extent: Extent) -> Index:
        if self._source.chance(0.5):
            return Index(f"max({index.text} - 1, 0)", max(index.low - 1, 0), max(index.high - 1, 0))
        last = max(extent.value - 1, 0)
        return Index(f"min({index.text} + 1, {last})", min(index.low + 1, last), min(index.high + 1, last))

    def by_scalar(self, index: Index, extent: Extent) -> Index:
        if not self._scalars:
            return index
        name, value = self._source.choice(self._scalars)
        if self._source.chance(0.5) and value > 0:
            other = self.other()
            return Index(f"{name} * {index.text} + {other.text}", value * index.low + other.low,
                         value * index.high + other.high)  # fmt: skip
        return Index(f"{index.text} + {name}", index.low + value, index.high + value)


_FORMS: list[tuple[float, Callable[[Accesses, Index, Extent], Index] | None]] = [
    (12, None),
    (2, Accesses.shifted),
    (1, Accesses.added),
    (1, Accesses.scaled),
    (1, Accesses.divided),
    (1, Accesses.wrapped),
    (1, Accesses.reversed),
    (0.5, Accesses.clamped),
    (1, Accesses.by_scalar),
]
