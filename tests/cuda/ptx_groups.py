"""PTX instructions of groups of four warps as statements of C (``ptx_groups.h``)."""

from __future__ import annotations

import re
from collections.abc import Sequence as Items
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.cuda.ptx_function import Function

WIDE: Final = {"f16": "half_to_f32", "bf16": "bfloat_to_f32"}


def group_instruction(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """One that begins with ``wgmma``; None for what is not known here."""
    match modes:
        case ["fence", "sync", "aligned"]:
            return "fence_registers();"
        case ["commit_group", "sync", "aligned"]:
            return "close_products();"
        case ["wait_group", "sync", "aligned"]:
            return f"wait_for_products({operands[0]});"
        case ["mma_async", "sync", "aligned", shape, "f32", left, right] if left == right and left in WIDE:
            found = re.fullmatch(r"m64n(\d+)k16", shape)
            sums, *matrices, scale = operands[:4]
            registers = [own.address(name) for name in sums.strip("{}").split(",")]
            # Sums are added to, and factors keep their sign.
            if found is None or operands[4:6] != ["1", "1"] or len(registers) != int(found[1]) // 2:
                return None
            turned = ", ".join(operands[6:])
            left, right = (own.get(name, "u64") for name in matrices)
            return (
                f'if (!{own.get(scale, "pred")}) fail("sums that are not added to", 0); '
                f"float *const registers[] = {{{', '.join(registers)}}}; "
                f"begin_product(registers, {found[1]}, {left}, {right}, (const int[]){{{turned}}}, {WIDE[modes[-1]]});"
            )
    return None


def fence(modes: Items[str]) -> str | None:
    """What orders what a thread wrote before what others do by themselves."""
    return "fence_proxy();" if list(modes) == ["proxy", "async", "shared::cta"] else None
