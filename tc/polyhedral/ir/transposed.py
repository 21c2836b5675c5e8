"""``TransposedOperand``: an operand that is copied in another order of its dimensions, for the proof of its values."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class TransposedOperand:
    """The tensor, of which ``copy`` has dimension ``order[n]`` of the tensor as its dimension n.

    ``readers``: the statements that read the copy in its place.
    """

    tensor: str
    copy: str
    order: tuple[int, ...]
    readers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tensor}: {', '.join(self.readers)} read a copy with the dimensions in the order {self.order}"
