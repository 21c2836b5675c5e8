"""``Dot``: the dot products that processors have instructions for."""

from __future__ import annotations

from enum import Enum


class Dot(Enum):
    """What the dot product of two words is of, by the extension of x86 that has instructions for it.

    ``BYTES``: four unsigned bytes and four signed ones.  ``PAIRS``: two bfloat16 numbers each.
    """

    BYTES = "avx512vnni"
    PAIRS = "avx512bf16"
