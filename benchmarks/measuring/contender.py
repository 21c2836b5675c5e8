"""``Contender``: who is measured."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class Contender(Enum):
    """Ours, as users call it; into outputs that exist already; with options that a search has found; and the peers."""

    OURS = "ours"
    PREALLOCATED = "ours, out="
    TUNED = "ours, tuned"
    TORCH = "torch"
    COMPILE = "compile"
    NUMPY = "numpy"
    TRITON = "triton"
    JAX = "jax"

    @property
    def is_ours(self) -> bool:
        return self not in PEERS

    @property
    def title(self) -> str:
        """What people call it."""
        return _TITLES.get(self, self.value)


PEERS: Final = (Contender.TORCH, Contender.COMPILE, Contender.NUMPY, Contender.TRITON, Contender.JAX)
# They run candidates before their first result and keep the quickest: nobody else may use the device meanwhile.
TIME_THEMSELVES: Final = frozenset({Contender.COMPILE, Contender.TRITON})
_TITLES: Final[Mapping[Contender, str]] = MappingProxyType(
    {
        Contender.TORCH: "PyTorch",
        Contender.COMPILE: "torch.compile",
        Contender.NUMPY: "NumPy",
        Contender.TRITON: "Triton",
        Contender.JAX: "JAX",
    }
)
