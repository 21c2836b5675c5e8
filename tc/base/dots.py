"""Dot products of processors and products of matrices of GPUs, as instructions, and how these round factors."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tc.base.frozen import frozen


class Dot(Enum):
    """What the dot product of two words is of, by levels and extensions of processors that have instructions for it.

    ``BYTES``: four unsigned bytes and four signed ones.  ``SHORTS``: two signed integers of 16 bits each, or bytes that
    are widened.  ``PAIRS``: two bfloat16 numbers each.  Of several for the same factors, the first one is the quickest.
    """

    BYTES = ("avx512vnni", "i8mm")
    SHORTS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
    PAIRS = ("avx512bf16", "bf16")

    @property
    def features(self) -> tuple[str, ...]:
        """Levels and extensions of processors, by name, each of which has the instruction."""
        names: tuple[str, ...] = self.value
        return names


class Products(Enum):
    """How the factors of sums of products of two float32 numbers may be rounded before they are multiplied.

    ``TF32``: to 11 significant bits, as matrix instructions of GPUs take them (PTX: ``tf32``).  ``THREE_TF32``: each is
    the sum of two such numbers, and three of the four products are added up.
    """

    EXACT = "exact"
    TF32 = "tf32"
    THREE_TF32 = "3xtf32"


# Rows of an instruction of four warps.
_GROUP_ROWS: Final = 64


@frozen
class MatrixShape:
    """A matrix instruction of a warp, or of four: C, of m x n elements, gains the product of A (m x k) and B (k x n).

    ``operands``, ``sums``: PTX's names of the types of A and B, and of C; s8 stands for bytes with and without a sign,
    3xtf32 for three instructions of tf32.
    A register of 32 bits holds ``elements`` of an operand, of steps that follow each other.
    """

    m: int
    n: int
    k: int
    operands: str
    sums: str

    @property
    def by_group(self) -> bool:
        """Whether four warps run it together, with operands in shared memory."""
        return self.m == _GROUP_ROWS

    @property
    def elements(self) -> int:
        """Eight rows of four registers have all steps of eight rows, or half of them."""
        return self.k // 8
