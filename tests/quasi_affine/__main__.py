"""``python -m tests.quasi_affine --programs 2000``: random quasi-affine programs on oracle, CPU and emulator."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator

from tests.quasi_affine.cases import Case, random_case
from tests.quasi_affine.judge import describe, judge, results

# So many statements make one kernel: compiling is what takes time.
BATCH = 6
TARGETS = ("reference", "cpu", "emulator")


def faults(programs: int, seed: int, *, progress: bool = False) -> Iterator[str]:
    """What is wrong with so many programs; nothing, if all is well."""
    rng = random.Random(seed)
    waiting: list[Case] = []
    refused = 0
    started = time.monotonic()
    for number in range(programs):
        verdict = judge(random_case(rng))
        refused += not verdict.accepted
        if verdict.fault is not None:
            yield f"{verdict.fault}\n    {describe(verdict.case)}"
        elif verdict.accepted:
            waiting.append(verdict.case)
        if len(waiting) == BATCH or (waiting and number == programs - 1):
            for target in TARGETS:
                for case, fault in results(waiting, target):
                    yield f"{fault}\n    {describe(case)}"
            waiting = []
        if progress and (number + 1) % 100 == 0:
            seconds = time.monotonic() - started
            print(f"{number + 1} programs, {refused} refused, {seconds:.0f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.quasi_affine", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count = 0
    for fault in faults(options.programs, options.seed, progress=True):
        count += 1
        print(fault, flush=True)
    print(f"{options.programs} programs, {count} faults")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
