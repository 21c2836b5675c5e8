"""``python -m tests.mutants``: mistakes in the kernels of the whole corpus, and who noticed each."""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from tests.comprehensions.corpus import CASES
from tests.mutants.judge import Verdict
from tests.mutants.programs import OPTIONS, Judged, case_named, judged


def main() -> int:
    """0 if the proof and the emulator agree on every mutant."""
    verdicts: Counter[Verdict] = Counter()
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for name, found in processes.map(_all_in, product([case.name for case in CASES], OPTIONS)):
            for mistake in found:
                verdicts[mistake.verdict] += 1
                if mistake.verdict != Verdict(refused=True, wrong=True):
                    print(f"{mistake.name}, {name}: {mistake.verdict}", flush=True)
    both, neither = verdicts[Verdict(refused=True, wrong=True)], verdicts[Verdict(refused=False, wrong=False)]
    proof, emulator = verdicts[Verdict(refused=True, wrong=False)], verdicts[Verdict(refused=False, wrong=True)]
    print(
        f"{verdicts.total()} mutants: {both} noticed by both, {proof} by the proof alone, {emulator} by the emulator "
        f"alone, {neither} by neither"
    )
    return int(proof + emulator + neither > 0)


def _all_in(kernel: tuple[str, str]) -> tuple[str, list[Judged]]:
    """The mistakes in the kernel of a case with some options, both by name; and the name of the options."""
    case, options = kernel
    return options, list(judged(case_named(case), OPTIONS[options]))


if __name__ == "__main__":
    sys.exit(main())
