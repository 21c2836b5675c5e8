"""What the fault of a kernel's run says: positive numbers are gathers, in the order of a kernel's checks."""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen

# Threads of a block wait at different barriers; an access is outside of its buffer; one to several elements begins
# between multiples of their bytes.
DIVERGED: Final = -2
OUTSIDE: Final = -3
MISALIGNED: Final = -4

# In place of a dimension, for a bound of a range.
BOUND: Final = -1
# And for indices that are declared distinct.
TWICE: Final = -2
# In place of an extent that depends on open sizes.
UNKNOWN: Final = -1


@frozen
class Check:
    """What is checked at run time: the index into dimension ``dimension`` of ``tensor`` in ``statement``.

    With the dimension ``BOUND`` it is a bound of a range, which ``tensor`` gives; it may be ``extent``, too.
    With the dimension ``TWICE``, the indices in ``tensor`` are declared distinct.
    """

    statement: str
    tensor: str
    dimension: int
    extent: int
