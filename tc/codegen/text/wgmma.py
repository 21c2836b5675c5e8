"""The functions of CUDA C++ around ``wgmma``, whose instructions name each of up to 128 registers.

(*Parallel Thread Execution ISA*, "Asynchronous Warpgroup Level Matrix Instructions".)
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

# Columns of the instructions that there are functions for.
COLUMNS: Final = (64, 128, 256)
# PTX's names of the types of halves.
HALVES: Final = ("f16", "bf16")
_FACTORS: Final = "uint64_t left, uint64_t right"
_WIDTH: Final = 110
_COMMENT: Final = """\
// Adds the products of 64 rows and {n} columns to the sums of four warps (PTX ISA: wgmma).  Each lane has sums of two
// rows eight apart, upper and lower, in pairs of neighbours.  They change until the products have ended.  Steps lie
// along the rows of a factor in memory, or count these, if it is turned.
"""


def function(n: int, type: str) -> str:
    """The name of the one for so many columns."""
    return f"tc_multiply_{n}_columns_{type}"


def functions() -> Iterator[tuple[str, str]]:
    """The name and the text of each."""
    return ((function(n, type), _text(n, type)) for n in COLUMNS for type in HALVES)


def _text(n: int, type: str) -> str:
    count = n // 2
    registers = wrap(", ".join(f"%{number}" for number in range(count)), _WIDTH)
    sums = (f'"+f"({half}[{place}])' for pair in range(0, n // 4, 2) for half, place in _of_pair(pair))
    lines = [
        "template <int left_turned, int right_turned>",
        f"static __forceinline__ void {function(n, type)}(float *upper, float *lower, {_FACTORS}) {{",
        '  asm volatile("{\\n.reg .pred add;\\nsetp.ne.b32 add, 1, 0;\\n"',
        f'               "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{type}.{type} {{"',
        *(f'               "{line} "' for line in registers),
        f'               "}}, %{count}, %{count + 1}, add, 1, 1, %{count + 2}, %{count + 3};\\n}}"',
        *(f"               {line}" for line in wrap(": " + ", ".join(sums), _WIDTH, break_on_hyphens=False)),
        '               : "l"(left), "l"(right), "n"(left_turned), "n"(right_turned));',
        "}",
    ]
    return _COMMENT.format(n=n) + "\n".join(lines)


def _of_pair(pair: int) -> Iterator[tuple[str, int]]:
    """The registers of two neighbouring columns, in the order of the instruction."""
    return ((half, place) for half in ("upper", "lower") for place in (pair, pair + 1))
