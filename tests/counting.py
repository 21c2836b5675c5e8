"""How much Python does, counted and not timed: the same on a quiet machine and on a busy one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, of Python's and of C's, while ``work`` runs in this thread."""
    counts: Counter[str] = Counter()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _argument: counts.update((event,)))
    try:
        work()
    finally:
        sys.setprofile(before)
    return counts["call"] + counts["c_call"]
