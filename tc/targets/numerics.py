"""``Numerics``: which liberties a kernel may take with the bits of its results."""

from __future__ import annotations

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.targets.options_json import Written


@frozen
class Numerics(Written):
    """What the results of a kernel may depend on; by default on nothing but the arguments.

    ``deterministic``: every call gives the same bits.  False lets GPUs add and multiply the terms of scatters by atomic
    updates, in whatever order threads come.  Errors stay within the oracle's bounds, but for subnormal ``float32``
    numbers, which NVIDIA's GPUs add up as zeros there.  Other kernels gain nothing by it.

    ``reassociate``: linear recurrences ``h(t+1) = a(t) h(t) + b(t)`` of ``float32`` with few rows and many steps may be
    computed in parts, which do not wait for each other (*Blocks* in ``docs/language.md``).  Parts are carried in
    float64, and the bits are the same in every call; but where the product of many ``a`` leaves the range of float64,
    the result may be NaN.

    No search changes it, and a kernel with one is never taken for a kernel with another one.
    """

    deterministic: bool = True
    reassociate: bool = False

    def __post_init__(self) -> None:
        for name in ("deterministic", "reassociate"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise OptionsError(f"{name} must be True or False, got {value!r}")
