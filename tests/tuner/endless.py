"""A search that goes on until it is killed: ``python -m tests.tuner.endless CACHE``.

It prints a line for each candidate that was compiled.  The second one comes when the first one's trial is committed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from tc.tuner.trial.budget import Budget
from tests.tuner import trial_support as trial
from tests.tuner.session.searches import SETTINGS, Watched, search


def tell(number: int, packed: bytes) -> bytes:
    print(number, flush=True)
    return packed


def main(path: str) -> None:
    # Tells the processes of this search from others.
    os.environ["TC_TEST_MARK"] = path
    with trial.workers() as workers:
        search(Watched(workers, tell), Path(path), replace(SETTINGS, budget=Budget(trials=1000)))


if __name__ == "__main__":
    main(sys.argv[1])
