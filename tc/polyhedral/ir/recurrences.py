"""``LinearRecurrence``: what became of a linear recurrence in parts, for the proof that it is the same."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.language.program.program import Expression


@frozen
class LinearRecurrence:
    """A statement ``h(t+1) = a(t) h(t) + b(t)`` in a block, of which parts of the steps are computed side by side.

    ``step``: the iterator of its block; ``value``: what it is in terms of the iterators ``part`` and ``inner``.
    ``factors``: what the steps of each part multiply a state by; ``offsets``: what they make of 0; ``carries``: the
    states at the beginnings of parts; ``states``: those of every step.  ``statements``: the names of those that stand
    for it, in order: of factors and offsets, the first values and the steps; of the carries, the first one and the
    others; of the states, the first ones and the steps; and what stores these.
    """

    statement: str
    step: str
    value: Expression
    part: str
    inner: str
    factors: str
    offsets: str
    carries: str
    states: str
    statements: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.statement} is a linear recurrence along {self.step}, in parts that go on from {self.carries}"
