"""Offsets that statements of an unrolled register tile share, computed once.

A tile of 24 rows reads 24 elements at constant distances from one offset.  The compiler finds that out, too, but for
a convolution it takes a sixth of its time, and readers of the text do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import IndexExpression


class SharedOffsets:
    """What the statements in the body of one loop add to their constants; ``numbers`` tell the names apart."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._names: dict[IndexExpression, str] = {}

    def name(self, form: LinearForm) -> str | None:
        """The variable with everything of a form but its constant; None where that is no sum."""
        if len(form.factors) < 2:
            return None
        moving = LinearForm(0, form.factors).expression()
        if moving not in self._names:
            self._names[moving] = f"offset{next(self._numbers)}"
        return self._names[moving]

    def computed(self) -> Iterator[tuple[str, IndexExpression]]:
        """The variables so far, and what each is computed from."""
        return ((name, moving) for moving, name in self._names.items())
