"""``Candidates``: many kernels of one definition for the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel
    from tc.targets.options import Options


class Candidates:
    """Kernels of one definition for the same arguments: dependences and schedules are computed once for all of them."""

    def __init__(self, make: Callable[[str | None, Options | None], Kernel]) -> None:
        self._make = make

    def compile(self, options: Options | None = None, *, target: str | None = None) -> Kernel:
        """The kernel with these options."""
        return self._make(target, options)
