"""Numbers rounded to integers, or floats of eight bits, around a zero point."""

from __future__ import annotations

from tc.base.types import ScalarType


def quantized(value: str, zero: str, type: ScalarType, *, saturate: bool = True) -> tuple[str, str]:
    """What a float32 is as a number of ``type``, with the clause that it needs: rounded, half to even, plus ``zero``.

    ``zero``: an expression, or nothing.  What is out of range is the least or the greatest number; floats of eight bits
    may overflow instead, where they do not ``saturate``.  The clause names a part, and goes behind ``where``.
    """
    if type.is_floating:
        shifted = f"{value} + float32({zero})" if zero else value
        bound = repr(type.largest)
        return f"{type}(min(max(v, -{bound}), {bound}))" if saturate else f"{type}(v)", f"v = {shifted}"
    # Bounds are integers, so that what is cut first is rounded to the same, and no infinity comes to be rounded.
    least, greatest = (f"({bound} - float32({zero}))" if zero else str(bound) for bound in (type.minimum, type.maximum))
    # `remainder(v, 1)` would do the same, at many times the cost.
    rounded = "int32(abs(r - v) == 0.5 ? 2 * round(v / 2) : r)"
    whole = f"{rounded} + int32({zero})" if zero else rounded
    return f"{type}({whole})", f"v = min(max({value}, {least}), {greatest}), r = round(v)"
