"""A search that goes on until it is killed: ``python -m tests.tuner.endless CACHE``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from tc.tuner.budget import Budget
from tests.tuner import trial
from tests.tuner.test_tune import SETTINGS, search


def main(path: str) -> None:
    # Tells the processes of this search from others.
    os.environ["TC_TEST_MARK"] = path
    with trial.crew() as crew:
        search(crew, Path(path), replace(SETTINGS, budget=Budget(trials=1000)))


if __name__ == "__main__":
    main(sys.argv[1])
