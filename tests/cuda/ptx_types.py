"""The types of PTX, as C has them."""

from __future__ import annotations

import re
from typing import Final

FLOATS: Final = ("f32", "f64")
# Registers have no signs, and halves are bits.
C_TYPES: Final = {
    "pred": "uint8_t",
    **{f"{sort}{bits}": f"uint{bits}_t" for sort in "bus" for bits in (8, 16, 32, 64)},
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
}
BYTES: Final = {name: 1 if name == "pred" else int(re.sub(r"\D", "", name)) // 8 for name in C_TYPES}
