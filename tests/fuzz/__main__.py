"""``python -m tests.fuzz``: many random programs, with progress, reproducers and a closing line."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.describe import describe
from tests.fuzz.execute import LOST, Outcome, Verdict, execute
from tests.fuzz.generate import generate
from tests.fuzz.shrink import shrink
from tests.fuzz.workers import run

MOST_AMBIGUOUS = 0.01
_PROGRESS_SECONDS = 10.0


def main() -> int:
    """0 if every program agreed and few elements were ambiguous."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="random programs against the oracle")
    parser.add_argument("--programs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the whole run (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program (default: 60)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run one program here, show and shrink it")
    parser.add_argument("--refused", action="store_true", help="show what was refused, and why")
    options = parser.parse_args()
    if options.only is not None:
        return _single(options.seed, options.only)
    return _many(options)


def _single(seed: int, number: int) -> int:
    recipe = generate(seed, number)
    outcome = execute(recipe)
    print(f"{outcome.verdict.value}: {describe(recipe, outcome)}")
    if outcome.verdict is Verdict.FAILED:
        print(f"\nshrunk:\n{_shrunk(seed, number, outcome)}")
    return int(outcome.verdict is Verdict.FAILED)


def _many(options: argparse.Namespace) -> int:
    begun = shown = time.monotonic()
    tally = _Tally(options.seed)
    numbers = range(options.first, options.first + options.programs)
    for number, outcome in run(options.seed, numbers, options.jobs, options.limit):
        tally.add(outcome)
        if outcome.verdict is Verdict.FAILED:
            print(f"\nFAILED {_shrunk(options.seed, number, outcome)}\n", flush=True)
        if outcome.verdict is Verdict.REFUSED and options.refused:
            print(f"\nREFUSED {describe(generate(options.seed, number), outcome)}\n", flush=True)
        if time.monotonic() - shown > _PROGRESS_SECONDS:
            shown = time.monotonic()
            print(f"{shown - begun:5.0f} s  {tally}", flush=True)
    print(f"{tally}; {time.monotonic() - begun:.0f} s")
    return int(not tally.ok)


class _Tally:
    """What became of the programs so far."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._verdicts: Counter[Verdict] = Counter()
        self._elements = 0
        self._shares = 0.0

    def add(self, outcome: Outcome) -> None:
        self._verdicts[outcome.verdict] += 1
        self._elements += outcome.elements
        self._shares += outcome.share

    @property
    def share(self) -> float:
        """Of ambiguous elements in a program, on average: a large program counts as much as a small one."""
        return self._shares / max(self._verdicts[Verdict.AGREED], 1)

    @property
    def ok(self) -> bool:
        return not self._verdicts[Verdict.FAILED] and self.share < MOST_AMBIGUOUS

    def __str__(self) -> str:
        counts = self._verdicts
        return (
            f"{counts.total()} programs of seed {self._seed}: {counts[Verdict.AGREED]} agreed, "
            f"{counts[Verdict.FAULTED]} reported an index as they must, {counts[Verdict.REFUSED]} refused, "
            f"{counts[Verdict.FAILED]} failed; {self._elements} elements, "
            f"{100 * self.share:.3f} % of a program's ambiguous"
        )


def _shrunk(seed: int, number: int, outcome: Outcome) -> str:
    """The failure, made smaller unless it takes its process with it."""
    recipe = generate(seed, number)
    if outcome.kind != LOST:
        recipe = shrink(recipe, lambda candidate: execute(candidate).kind == outcome.kind)
        outcome = execute(recipe)
    return describe(recipe, outcome)


if __name__ == "__main__":
    sys.exit(main())
