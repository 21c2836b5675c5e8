"""``Dot``: the dot products that processors have instructions for."""

from __future__ import annotations

from enum import Enum


class Dot(Enum):
    """What the dot product of two words is of, by the extensions of x86 and of aarch64 that have instructions for it.

    ``BYTES``: four unsigned bytes and four signed ones.  ``PAIRS``: two bfloat16 numbers each.
    """

    BYTES = ("avx512vnni", "i8mm")
    PAIRS = ("avx512bf16", "bf16")

    @property
    def extensions(self) -> tuple[str, ...]:
        """Those of processors, by name, each of which has the instruction."""
        return self.value
