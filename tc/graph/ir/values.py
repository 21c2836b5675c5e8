"""``Value``: what flows between nodes: a tensor with a type, a shape and strides."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.sizes import Dimension, Shape, shape_text


@frozen
class Value:
    """A tensor that one node computes, an input or a constant.  ``strides`` in elements; None means C-contiguous."""

    name: str
    type: ScalarType
    shape: Shape
    strides: Shape | None = None

    def __post_init__(self) -> None:
        if self.strides == contiguous(self.shape):
            object.__setattr__(self, "strides", None)

    def __str__(self) -> str:
        return f"{self.type}({shape_text(self.shape)}) {self.name}"

    @property
    def steps(self) -> Shape:
        """The strides, in any case."""
        return contiguous(self.shape) if self.strides is None else self.strides

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after the other, in the order of their subscripts."""
        if self.strides is None:
            return True
        pairs = zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        return all(extent == 1 or stride == own for extent, stride, own in pairs) or 0 in self.shape


def contiguous(shape: Shape) -> Shape:
    """Row-major strides in elements, where no dimension has fewer than one."""
    strides: list[Dimension] = []
    step: Dimension = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * (max(extent, 1) if isinstance(extent, int) else extent)
    return tuple(reversed(strides))
