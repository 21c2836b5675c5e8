"""``Report``: what runs where of a model that was compiled."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

from tc.base.errors import GraphError
from tc.torch.options import Fallback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tc.torch.compiled import Compiled


class Part:
    """A graph that PyTorch captured: the forward, the backward, or what runs without gradients."""

    def __init__(self, kind: str, nodes: int) -> None:
        self.kind: Final = kind
        self.nodes: Final = nodes
        self.compiled: Final[list[Compiled]] = []
        self.left: Final[dict[str, str]] = {}
        self.counts: Final[Counter[str]] = Counter()
        self.failures: Final[list[str]] = []

    def count_left(self, operators: Sequence[str]) -> None:
        """Operators that are left to PyTorch, one entry for each call."""
        self.counts.update(operators)

    def require(self, fallback: Fallback) -> None:
        """GraphError where operators are left that may not be."""
        forbidden = [name for name in self.counts if fallback is Fallback.NEVER and not _is_allowed(name)]
        if forbidden:
            every = "; ".join(f"{name} {self.left[name]}" for name in forbidden)
            raise GraphError(f"fallback='never': {every}")

    def fails(self, why: str, fallback: Fallback) -> bool:
        """Notes that a part could not be compiled; whether PyTorch runs it then."""
        self.failures.append(why)
        if fallback is Fallback.NEVER:
            return False
        warnings.warn(f"tc: PyTorch runs a part of the {self.kind}: {why}", stacklevel=2)
        return True

    def __str__(self) -> str:
        kernels = sum(len(one.kernels) for own in self.compiled for one in own.executions)
        lines = [f"{self.kind}: {self.nodes} nodes, {len(self.compiled)} parts of ours, {kernels} kernels"]
        lines += [f"  left to PyTorch: {name} ({count}): {self.left[name]}" for name, count in self.counts.items()]
        lines += [f"  run by PyTorch: {why}" for why in self.failures]
        return "\n".join(lines)


# Random numbers are PyTorch's: its generators decide what they are.  So are the tensors that have their shapes.
_RANDOM: Final = ("rand", "bernoulli", "dropout", "multinomial", "normal", "exponential", "getitem", "empty")


def _is_allowed(name: str) -> bool:
    return any(part in name for part in _RANDOM)


class Report:
    """The parts in the order in which PyTorch captured them."""

    def __init__(self) -> None:
        self.parts: Final[list[Part]] = []

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))
