"""``python -m tests.fuzz``: many random programs, with progress, reproducers and a closing line."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import replace

from tests.fuzz.describe import describe
from tests.fuzz.execute import HUNG, Outcome, Verdict
from tests.fuzz.generate import generate
from tests.fuzz.matrix_programs import generate_matrix_program
from tests.fuzz.recipe import Recipe
from tests.fuzz.shrink import shrink
from tests.fuzz.workers import elsewhere, run
from tests.sanitizers import Sanitizer, missing

MOST_AMBIGUOUS = 0.01
# A program with more elements counts as if it had so many, or a few large ones would decide.
_COUNTED = 1000
_PROGRESS_SECONDS = 10.0
# Programs run as users run them or watched, so many in a row, because another sanitizer needs another process.
_TURNS = (Sanitizer.NONE, Sanitizer.ADDRESS, Sanitizer.NONE, Sanitizer.THREAD)
_BLOCK = 250


def main() -> int:
    """0 if every program agreed and few elements were ambiguous."""
    # What an earlier run compiled is not what is tested.
    os.environ["TC_CACHE_MODE"] = "off"
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="random programs against the oracle")
    parser.add_argument("--programs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the whole run (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program (default: 60)")
    names = [sanitizer.value for sanitizer in Sanitizer]
    parser.add_argument("--sanitizer", choices=names, help="what watches all programs (default: by turns)")
    parser.add_argument("--target", help="of all programs (default: at random)")
    parser.add_argument("--matrices", action="store_true", help="products of halves and bytes, on the emulator")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run one program, show and shrink it")
    parser.add_argument("--refused", action="store_true", help="show what was refused, and why")
    options = parser.parse_args()
    sanitizers = _sanitizers(None if options.sanitizer is None else Sanitizer(options.sanitizer))
    if options.only is not None:
        return _single(_recipe(options, options.only, sanitizers), options.limit)
    return _many(options, sanitizers)


def _recipe(options: argparse.Namespace, number: int, sanitizers: tuple[Sanitizer, ...]) -> Recipe:
    if options.matrices:
        return generate_matrix_program(options.seed, number, options.target)
    recipe = generate(options.seed, number, options.target)
    sanitizer = sanitizers[number // _BLOCK % len(sanitizers)]
    if recipe.target == "emulator" and sanitizer is Sanitizer.THREAD:
        # It has one thread of its own, whose coroutines ThreadSanitizer does not know.
        recipe = generate(options.seed, number, "cpu")
    return replace(recipe, sanitizer=sanitizer)


def _sanitizers(chosen: Sanitizer | None) -> tuple[Sanitizer, ...]:
    """What blocks of programs run under, by turns; what this machine lacks is left out, unless it was asked for."""
    if chosen is not None:
        if (why := missing(chosen)) is not None:
            sys.exit(f"error: no sanitizer {chosen.value!r}: {why}")
        return (chosen,)
    for sanitizer in _TURNS:
        if (why := missing(sanitizer)) is not None:
            print(f"without sanitizer {sanitizer.value!r}: {why}")
    return tuple(sanitizer for sanitizer in _TURNS if missing(sanitizer) is None)


def _single(recipe: Recipe, limit: float) -> int:
    with elsewhere(limit) as execute:
        outcome = execute(recipe)
    print(f"{outcome.verdict.value}: {describe(recipe, outcome)}")
    if outcome.verdict is Verdict.FAILED:
        print(f"\nshrunk:\n{_shrunk(recipe, outcome, limit)}")
    return int(outcome.verdict is Verdict.FAILED)


def _many(options: argparse.Namespace, sanitizers: tuple[Sanitizer, ...]) -> int:
    begun = shown = time.monotonic()
    tally = _Tally(options.seed)
    numbers = range(options.first, options.first + options.programs)
    recipes = (_recipe(options, number, sanitizers) for number in numbers)
    for recipe, outcome in run(recipes, options.jobs, options.limit):
        tally.add(outcome)
        if outcome.verdict is Verdict.FAILED:
            print(f"\nFAILED {_shrunk(recipe, outcome, options.limit)}\n", flush=True)
        if outcome.verdict is Verdict.REFUSED and options.refused:
            print(f"\nREFUSED {describe(recipe, outcome)}\n", flush=True)
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
        self._counted = 0
        self._ambiguous = 0.0

    def add(self, outcome: Outcome) -> None:
        self._verdicts[outcome.verdict] += 1
        counted = min(outcome.elements, _COUNTED)
        self._elements += outcome.elements
        self._counted += counted
        self._ambiguous += outcome.share * counted

    @property
    def share(self) -> float:
        """Of ambiguous elements."""
        return self._ambiguous / max(self._counted, 1)

    @property
    def ok(self) -> bool:
        return not self._verdicts[Verdict.FAILED] and self.share < MOST_AMBIGUOUS

    def __str__(self) -> str:
        counts = self._verdicts
        return (
            f"{counts.total()} programs of seed {self._seed}: {counts[Verdict.AGREED]} agreed, "
            f"{counts[Verdict.FAULTED]} reported an index as they must, {counts[Verdict.REFUSED]} refused, "
            f"{counts[Verdict.FAILED]} failed; {self._elements} elements, {100 * self.share:.3f} % ambiguous"
        )


def _shrunk(recipe: Recipe, outcome: Outcome, limit: float) -> str:
    """The failure, made smaller unless every step would take as long as a program may."""
    if outcome.kind == HUNG:
        return describe(recipe, outcome)
    with elsewhere(limit) as execute:
        small = shrink(recipe, lambda candidate: execute(candidate).kind == outcome.kind)
        return describe(small, outcome if small == recipe else execute(small))


if __name__ == "__main__":
    sys.exit(main())
