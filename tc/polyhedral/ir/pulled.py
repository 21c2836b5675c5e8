"""``PulledStatement``: a reduction whose instances are counted by the elements that they add to, for its proof."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.language.program.program import Expression


@frozen
class PulledStatement:
    """The statement called ``name``; ``iterators``: those that it had, in terms of those that it has now."""

    name: str
    iterators: Mapping[str, Expression]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.iterators.items())
        return f"{self.name}: {values}"
