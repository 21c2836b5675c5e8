"""What the fault of a kernel's run says: positive numbers are gathers, in the order of a kernel's checks."""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen

# Threads of a block wait at different barriers; an access is outside of its buffer; one to several elements begins
# between multiples of their bytes.
DIVERGED: Final = -2
OUTSIDE: Final = -3
MISALIGNED: Final = -4


@frozen
class Check:
    """A gather that is checked at run time: dimension ``dimension`` of a read of ``tensor`` in ``statement``."""

    statement: str
    tensor: str
    dimension: int
    extent: int
