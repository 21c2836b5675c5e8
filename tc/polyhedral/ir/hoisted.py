"""``Hoisted``: a part of a statement's value that is computed once for all instances that share it, for its proof."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Hoisted:
    """``statement``: whose value it was a part of; ``made``: the statement that computes it, into ``tensor``."""

    statement: str
    made: str
    tensor: str

    def __str__(self) -> str:
        return f"{self.statement}: {self.tensor} is computed once, by {self.made}"
