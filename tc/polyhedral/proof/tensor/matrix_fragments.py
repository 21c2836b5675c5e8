"""Which lane of a warp holds which element of a matrix instruction: the figures of the PTX ISA, as relations.

(*Parallel Thread Execution ISA*, "Matrix Fragments for mma.m16n8k8", "mma.m16n8k16 with floating point type",
"mma.m16n8k32".)  With the group of a lane ``lane / 4`` and its place in the group ``lane % 4``, an accumulator of row i
and column j is in the group ``i % 8``; two neighbours in a row are in the registers of one lane.  Operands have one
number of 32 bits, two halves or four bytes in each register.
"""

from __future__ import annotations

from typing import Final

from tc.base.dots import MatrixShape
from tc.base.frozen import frozen
from tc.polyhedral.ir.loops import SharedMatrix


@frozen
class Fragments:
    """Of one shape: ``{ [row, column] -> [lane, register] }`` of sums.

    And ``{ [...] -> [lane, register, element] }`` of factors: ``left`` of row and step, ``right`` of step and column.
    """

    sums: str
    left: str
    right: str


_SUMS: Final = "{ [i, j] -> [4 * (i mod 8) + floor(j/2), 2 * floor(i/8) + (j mod 2)] : 0 <= i < 16 and 0 <= j < 8 }"
_M16N8K16: Final = Fragments(
    sums=_SUMS,
    left=(
        "{ [i, k] -> [4 * (i mod 8) + floor((k mod 8)/2), floor(i/8) + 2 * floor(k/8), k mod 2] : "
        "0 <= i < 16 and 0 <= k < 16 }"
    ),
    right="{ [k, j] -> [4 * j + floor((k mod 8)/2), floor(k/8), k mod 2] : 0 <= k < 16 and 0 <= j < 8 }",
)


_M16N8K32: Final = Fragments(
    sums=_SUMS,
    left=(
        "{ [i, k] -> [4 * (i mod 8) + floor((k mod 16)/4), floor(i/8) + 2 * floor(k/16), k mod 4] : "
        "0 <= i < 16 and 0 <= k < 32 }"
    ),
    right="{ [k, j] -> [4 * j + floor((k mod 16)/4), floor(k/16), k mod 4] : 0 <= k < 32 and 0 <= j < 8 }",
)


# Of 32 bits for each element.
_M16N8K8: Final = Fragments(
    sums=_SUMS,
    left="{ [i, k] -> [4 * (i mod 8) + (k mod 4), floor(i/8) + 2 * floor(k/4), 0] : 0 <= i < 16 and 0 <= k < 8 }",
    right="{ [k, j] -> [4 * j + (k mod 4), floor(k/4), 0] : 0 <= k < 8 and 0 <= j < 8 }",
)


@frozen
class GroupFragments:
    """Of an instruction of four warps: ``sums``, ``{ [row, column] -> [lane of the group, register] }``.

    And ``{ [...] -> [byte] }`` of factors in shared memory, from the first element on and without the swizzle: ``left``
    of row and step, ``right`` of step and column.
    """

    sums: str
    left: str
    right: str


def group_fragments_of(shape: MatrixShape, left: SharedMatrix, right: SharedMatrix) -> GroupFragments | None:
    """Those of a shape, with factors that lie so; None if it is unknown.

    (PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of ``wgmma.mma_async.m64nNk16``; "Canonical
    Layouts": K-major and MN-major, with the swizzle of 128 bytes.)
    """
    known = (shape.m, shape.k, shape.sums) == (64, 16, "f32") and shape.operands in ("f16", "bf16")
    if not known or shape.n % 8 or not 8 <= shape.n <= 256:
        return None
    return GroupFragments(
        sums=(
            "{ [i, j] -> [32 * floor(i/16) + 4 * (i mod 8) + floor((j mod 8)/2), "
            "4 * floor(j/8) + 2 * floor((i mod 16)/8) + (j mod 2)] : "
            f"0 <= i < 64 and 0 <= j < {shape.n} }}"
        ),
        left=f"{{ [i, k] -> [{_place(left, 'i')}] : 0 <= i < 64 and 0 <= k < 16 }}",
        right=f"{{ [k, j] -> [{_place(right, 'j')}] : 0 <= k < 16 and 0 <= j < {shape.n} }}",
    )


def _place(matrix: SharedMatrix, row: str) -> str:
    """Of an element of a row and a step k, in bytes of two for each."""
    if matrix.turned:
        panel = f"{matrix.leading} * floor({row}/64) + 2 * ({row} mod 64)"
        return f"{panel} + {matrix.stride} * floor(k/8) + 128 * (k mod 8)"
    return f"{matrix.stride} * floor({row}/8) + 128 * ({row} mod 8) + 2 * k"


def fragments_of(shape: MatrixShape) -> Fragments | None:
    """Those of a shape; None where they are not known here."""
    if (shape.m, shape.n, shape.k, shape.sums) == (16, 8, 16, "f32") and shape.operands in ("f16", "bf16"):
        return _M16N8K16
    if (shape.m, shape.n, shape.k, shape.sums) == (16, 8, 8, "f32") and shape.operands in ("tf32", "3xtf32"):
        return _M16N8K8
    return _M16N8K32 if shape == MatrixShape(16, 8, 32, "s8", "s32") else None
