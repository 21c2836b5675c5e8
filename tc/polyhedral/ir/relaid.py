"""Tensors that lie in another way than in the program, for proofs of what is read: copies, joined dimensions."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class CopiedOperand:
    """The tensor, of which ``copy`` has dimension ``order[n]`` of the tensor as its dimension n.

    Of dimension d it has every ``steps[d]``-th element, from the first one on.  ``readers``: the statements that read
    the copy in its place.
    """

    tensor: str
    copy: str
    order: tuple[int, ...]
    steps: tuple[int, ...]
    readers: tuple[str, ...]

    def shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        """That of the copy, for that of the tensor."""
        return tuple(-(-whole[dimension] // self.steps[dimension]) for dimension in self.order)

    def __str__(self) -> str:
        sampled = any(step > 1 for step in self.steps)
        form = f"of elements in steps of {self.steps}" if sampled else f"with the dimensions in the order {self.order}"
        return f"{self.tensor}: {', '.join(self.readers)} read a copy {form}"


@frozen
class CollapsedTensor:
    """The tensor, of which dimension ``far`` counts rows along dimension ``near``: one dimension counts their elements.

    It takes the place of ``near``.
    """

    tensor: str
    far: int
    near: int

    def __str__(self) -> str:
        return f"{self.tensor}: dimensions {self.far} and {self.near} are one"
