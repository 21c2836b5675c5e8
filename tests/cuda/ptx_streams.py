"""PTX instructions of channels and of copies of boxes as statements of C (``ptx_streams.h``)."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cuda.ptx_function import Function


def channel_instruction(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """One that begins with ``mbarrier``; None for what is not known here."""
    match modes:
        case ["init", "shared::cta", "b64"]:
            return f"begin_channel({own.offset(operands[0])}, {own.get(operands[1], 'u32')});"
        case ["arrive", "shared::cta", "b64"] if operands[0] == "_":
            return f"arrive_at({own.offset(operands[1])}, 0);"
        case ["arrive", "expect_tx", "shared::cta", "b64"] if operands[0] == "_":
            return f"arrive_at({own.offset(operands[1])}, {own.get(operands[2], 'u32')});"
        case ["try_wait", "parity", "shared::cta", "b64"]:
            waited = f"try_wait({own.offset(operands[1])}, {own.get(operands[2], 'u32')})"
            return own.set(operands[0], "pred", waited)
    return None


def box_copy(own: Function, modes: Items[str], operands: Items[str]) -> str | None:
    """``cp.async.bulk.tensor``; None for what is not known here."""
    match modes:
        case ["async", "bulk", "tensor", rank, "shared::cluster", "global", "mbarrier::complete_tx::bytes"]:
            map, _, places = operands[1].strip("[] ").partition(",")
            at = [own.get(name, "u32") for name in places.strip(" {}").split(",")]
            if rank != f"{len(at)}d":
                return None
            to, channel = own.offset(operands[0]), own.offset(operands[2])
            given = f"{to}, {own.get(map, 'u64')}, {channel}, {len(at)}, (const int[]){{{', '.join(at)}}}"
            return f"copy_box({given});"
    return None


def registers_moved(modes: Items[str], operands: Items[str]) -> str | None:
    """Registers that a group of warps has change nothing here."""
    match modes:
        case ["inc" | "dec", "sync", "aligned", "u32"] if int(operands[0]) % 8 == 0:
            return ";"
    return None
