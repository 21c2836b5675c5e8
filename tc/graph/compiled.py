"""``CompiledModel``: a model that is compiled for shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tc.base.frozen import frozen
from tc.targets.target import Target

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel
    from tc.graph.memory.plan import MemoryPlan


@frozen
class CompiledModel:
    """What a model runs for shapes.  ``kernels``: in order, by the first value that each computes."""

    target: Target
    plan: MemoryPlan
    kernels: Mapping[str, Kernel]

    @property
    def sources(self) -> dict[str, str]:
        """The source of each kernel, in C, CUDA C++ or OpenCL C."""
        return {name: kernel.source for name, kernel in self.kernels.items()}
