"""Gradients of random programs: directional derivatives beside differences of the oracle, which share no rule.

Arguments are smooth random numbers, so that differences meet no kink by accident.  Where programs jump, overflow or
vary too fast for differences of any step, nothing is said.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import signal
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tc
from tc.base.errors import TooLargeError
from tc.base.types import ScalarType
from tc.language.program.program import Role
from tests.fuzz.arrays import dtype_of, make
from tests.fuzz.generate import generate
from tests.fuzz.recipe import Recipe, ScalarArgument
from tests.gradient.differences import widened

Array = npt.NDArray[Any]
# Seconds of a program.
_LIMIT: Final = 60
_STEPS: Final = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
# Two neighbouring steps whose differences agree so far are taken for the derivative.
_SETTLED: Final = 1e-5
_TOLERANCE: Final = 1e-3
# What rounding does to a difference at the middle step, for results of size 1.
_ROUNDED: Final = 1e-16 / 1e-5


@dataclass(frozen=True)
class Found:
    """``kind``: agreed, refused, undecided, or wrong."""

    kind: str
    message: str = ""


def check(recipe: Recipe) -> Found:
    """Derives the gradient of a program, and compares it."""
    try:
        f = tc.define(widened(recipe.text))[recipe.name]
    except tc.SemanticError:
        return Found("refused", "no program in double")
    try:
        gradient, forward, pair = f.gradient(), f.jvp(), f.with_gradient()
    except tc.GradientError as error:
        return Found("refused", str(error))
    for derivative in (gradient, forward, pair.forward, pair.backward):
        again = tc.define(str(derivative)).single().program
        if again != derivative.program:
            return Found("wrong", f"prints as something else:\n{derivative}")
    try:
        call = _Call(recipe, f)
        values = call.results(0.0)
    except (tc.ArgumentError, tc.RangeError) as error:
        return Found("refused", str(error))
    if not all(np.isfinite(value).all() for value in values.values()):
        return Found("undecided", "infinite")
    weights = {
        name: call.rng.standard_normal(value.shape).astype(dtype_of(call.types[name])) for name, value in values.items()
    }
    differences = [call.difference(weights, step) for step in _STEPS]
    size = sum(float(np.abs(weights[name].astype(np.float64) * value).sum()) for name, value in values.items())
    # Where great values hide small changes, they say nothing.
    if size * _ROUNDED > 1e-6:
        return Found("undecided", "results are too great")
    pairs = itertools.pairwise(differences)
    settled = [b for a, b in pairs if np.isfinite([a, b]).all() and abs(a - b) <= _SETTLED * max(abs(a), abs(b), 1e-3)]
    slopes = {"gradient": call.slope(gradient, weights), "jvp": call.change(forward, weights)}
    # The oracle rounds results alone, and finds other ties among those that a forward keeps.
    kept = (pair.backward.program.tensor(name).type for name in pair.kept)
    if not any(type.is_floating and type is not ScalarType.FLOAT64 for type in kept):
        slopes["pair"] = call.slope_through(pair, weights)
    if not settled:
        return Found("undecided", "differences do not settle")
    if not np.isfinite(list(slopes.values())).all():
        return Found("undecided", "an infinite derivative")
    for what, slope in slopes.items():
        if not any(abs(slope - own) <= _TOLERANCE * max(abs(own), 1e-2) for own in settled):
            return Found("wrong", f"{what}: {slope}, differences {differences}")
    return Found("agreed")


class _Call:
    """A definition with smooth arguments, and a direction in which they change."""

    def __init__(self, recipe: Recipe, f: tc.Comprehension) -> None:
        self.f = f
        self.rng = np.random.default_rng((recipe.seed, recipe.number))
        self.types = {tensor.name: tensor.type for tensor in f.program.tensors}
        self.arguments: dict[str, Any] = {}
        self.directions: dict[str, Array] = {}
        for name, argument in recipe.arguments:
            if isinstance(argument, ScalarArgument):
                self.arguments[name] = argument.value
            elif self.types[name].is_floating:
                self.arguments[name] = self.rng.standard_normal(recipe.shape(argument))
                self.directions[name] = self.rng.standard_normal(recipe.shape(argument))
            else:
                self.arguments[name] = make(self.rng, argument, recipe.shape(argument)).view
        self.outputs: dict[str, Array] = {}
        incoming = [t for t in f.program.tensors if t.role is Role.IN_OUT]
        if incoming:
            shapes = f.output_shapes(*self.arguments.values())
            for tensor in incoming:
                drawn = self.rng.standard_normal(shapes[tensor.name])
                is_wide = tensor.type.is_floating
                self.outputs[tensor.name] = drawn if is_wide else drawn.astype(dtype_of(tensor.type))

    def results(self, distance: float) -> dict[str, Array]:
        """The floating results at a distance in the direction."""
        moved = {
            name: value + distance * self.directions[name] if name in self.directions else value
            for name, value in self.arguments.items()
        }
        found = self.f.reference(*moved.values(), out=dict(self.outputs) or None)
        values = found if isinstance(found, tuple) else (found,)
        pairs = zip(self.f.program.results, values, strict=True)
        return {name: value for name, value in pairs if self.types[name].is_floating}

    def difference(self, weights: dict[str, Array], step: float) -> float:
        ahead, behind = self.results(step), self.results(-step)
        return sum(_product(weight, ahead[name] - behind[name]) for name, weight in weights.items()) / (2 * step)

    def slope(self, gradient: tc.Comprehension, weights: dict[str, Array]) -> float:
        """By the gradient."""
        found = gradient.reference(*self.arguments.values(), *self.outputs.values(), *weights.values())
        parts = found if isinstance(found, tuple) else (found,)
        return sum(map(_product, self.directions.values(), parts))

    def slope_through(self, pair: tc.Pair, weights: dict[str, Array]) -> float:
        """By the gradient that is given what the forward keeps."""
        forward, backward, kept = pair
        given, out = list(self.arguments.values()), dict(self.outputs)
        if any(tensor.in_out for tensor in forward.interface.tensors):
            found = forward.reference(*given, out=out)
        else:
            found = forward.reference(*given, *out.values())
        results = found if isinstance(found, tuple) else (found,)
        values = dict(zip(forward.interface.results, results, strict=True))
        shared = (values[name].astype(dtype_of(backward.program.tensor(name).type)) for name in kept)
        parts = backward.reference(*given, *out.values(), *shared, *weights.values())
        return sum(map(_product, self.directions.values(), parts if isinstance(parts, tuple) else (parts,)))

    def change(self, forward: tc.Comprehension, weights: dict[str, Array]) -> float:
        """By the directional derivative."""
        found = forward.reference(*self.arguments.values(), *self.outputs.values(), *self.directions.values())
        parts = found if isinstance(found, tuple) else (found,)
        return sum(map(_product, weights.values(), parts))


def _product(left: Array, right: Array) -> float:
    """Of arrays that hold nothing, whatever their shapes: conditions that no iteration meets say nothing of extents."""
    return 0.0 if left.size == right.size == 0 else float((left.astype(np.float64) * right).sum())


class _TooLate(BaseException):
    """So that nothing else catches it."""


def _stop(_signal: int, _frame: object) -> None:
    raise _TooLate


def found_of(seed: int, number: int) -> Found:
    """What comes of one program; a crash is a wrong one."""
    recipe = generate(seed, number, "cpu")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGALRM, _stop)
        signal.alarm(_LIMIT)
        try:
            found = check(recipe)
        except TooLargeError:
            found = Found("undecided", "the oracle would need too much memory")
        except _TooLate:
            found = Found("undecided", f"the oracle takes longer than {_LIMIT} s")
        except tc.RangeError as error:
            # Extents are inferred from subscripts without their conditions, and may be too great for these sizes.
            found = Found("refused", str(error))
        except (tc.TCError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            found = Found("wrong", traceback.format_exc(limit=-3))
        finally:
            signal.alarm(0)
    if found.kind != "wrong":
        return found
    return Found("wrong", f"program {number} of seed {seed}:\n{recipe.text}\n{found.message}")


def main() -> int:
    """0 if no gradient was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.gradients", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the whole run (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    numbers = range(options.first, options.first + options.programs)
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=500) as pool:
        for found in pool.imap_unordered(functools.partial(found_of, options.seed), numbers, chunksize=10):
            kinds[found.kind] += 1
            if found.kind == "wrong":
                print(f"WRONG {found.message}", flush=True)
    print(
        f"{options.programs} gradients of seed {options.seed}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    )
    return int(kinds["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
