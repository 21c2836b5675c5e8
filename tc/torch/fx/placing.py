"""Where the elements of a result lie in memory, which callers see by its strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import fx

from tc.base.frozen import frozen
from tc.torch.fx.types import hinted


@frozen
class Placing:
    """``order``: the dimensions from the outermost to the innermost in memory.

    ``strides``: of a result with gaps, or with elements that share their memory; None of a dense one.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        """The shape of what is computed: of the elements of a dimension that share their memory, the first."""
        if self.strides is None:
            return self.shape
        return tuple(extent if stride else 1 for extent, stride in zip(self.shape, self.strides, strict=True))


def placing_of(node: fx.Node) -> Placing:
    """As in PyTorch: of a node whose sizes are open, a dense one in the same order."""
    found = node.meta.get("val")
    if not isinstance(found, torch.Tensor):
        return Placing((), ())
    shape, strides = (tuple(map(hinted, own)) for own in (found.shape, found.stride()))
    order = tuple(sorted(range(len(strides)), key=lambda axis: (-strides[axis], axis)))
    is_open = any(isinstance(one, torch.SymInt) for one in (*found.shape, *found.stride()))
    return Placing(shape, order, None if is_open or _is_dense(shape, strides, order) else strides)


def _is_dense(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    step = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != step:
            return math.prod(shape) == 0
        step *= shape[axis]
    return True


def spreading(placing: Placing) -> Callable[[torch.Tensor], torch.Tensor]:
    """Makes a tensor with these strides of what was computed, whose dimensions are in their own order."""
    assert placing.strides is not None
    shape, kept, strides = placing.shape, placing.kept, placing.strides
    reach = 1 + sum(stride * (extent - 1) for stride, extent in zip(strides, kept, strict=True))
    places = torch.arange(reach).as_strided(kept, strides).reshape(-1) if _overlaps(kept, strides) else None

    def spread(computed: torch.Tensor) -> torch.Tensor:
        memory = computed.new_empty(reach)
        if places is None:
            memory.as_strided(kept, strides).copy_(computed)
        else:
            memory[places] = computed.reshape(-1)
        return memory.as_strided(shape, strides)

    return spread


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share their memory, as those of windows do."""
    reach = 0
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
    return False
