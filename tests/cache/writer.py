"""A process that writes into a cache: ``python -m tests.cache.writer CACHE NUMBER COUNT``."""

from __future__ import annotations

import itertools
import sys

from tc.cache.content.store import Store
from tests.cache.samples import kernel, measurement, native, text, trial, variant


def main(where: str, number: int, count: int) -> None:
    """Adds ``count`` variants of kernels that no process with another ``number`` has; without end for a count of 0.

    Prints the number of each kernel when all that belongs to it is committed.
    """
    store = Store.open(where)
    for step in range(count) if count else itertools.count():
        one = 1000 * number + step
        store.add_variant(kernel(one), variant(one, size=2000))
        store.add_measurement(measurement(variant(one, size=2000)))
        store.add_trials(trial(n, one) for n in range(3))
        store.add_text(text(one))
        # All processes write this one.
        store.add_native(native(step))
        print(one, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
