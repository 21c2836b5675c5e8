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

    No search changes it, and a kernel with one is never taken for a kernel with another one.
    """

    deterministic: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.deterministic, bool):
            raise OptionsError(f"deterministic must be True or False, got {self.deterministic!r}")
