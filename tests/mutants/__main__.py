"""``python -m tests.mutants``: mistakes in the kernels of the whole corpus, and who noticed each."""

from __future__ import annotations

import sys
from collections import Counter

from tests.comprehensions.corpus import CASES
from tests.mutants.judge import Verdict
from tests.mutants.programs import OPTIONS, judged


def main() -> int:
    """0 if the proof and the emulator agree on every mutant."""
    verdicts: Counter[Verdict] = Counter()
    for case in CASES:
        for name, options in OPTIONS.items():
            for mistake in judged(case, options):
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


if __name__ == "__main__":
    sys.exit(main())
