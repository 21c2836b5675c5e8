"""Runs a recipe: the kernel against the oracle, and the memory around the arrays against what it was."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from enum import Enum
from types import TracebackType
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import tc
from tc.language.program.program import Role
from tc.reference.bounded import Array
from tc.reference.compare import compare
from tc.targets.options import Options
from tests.emulation import TARGET as EMULATED
from tests.emulation import emulated
from tests.fuzz.arrays import Placed, fill, is_tensor, make, place, to_numpy, to_torch
from tests.fuzz.recipe import Content, Layout, Recipe, ScalarArgument, TensorArgument
from tests.sanitizers import Sanitizer

_CALLS_FOR_RACES: Final = 10
_SECONDS_FOR_RACES: Final = 1.0
_SUBNORMAL: Final = 2.0**-1060


class Verdict(Enum):
    AGREED = "agreed"
    REFUSED = "refused"
    FAULTED = "faulted"
    FAILED = "failed"


LOST: Final = "lost"
HUNG: Final = "hung"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``FAULTED``: kernel and oracle both reported an index outside its tensor.

    ``kind``: of a failure, the name of the exception, LOST where the process died, HUNG where it went on for
    ever; ``detail`` says more.
    """

    verdict: Verdict
    detail: str = ""
    kind: str = ""
    elements: int = 0
    ambiguous: int = 0

    @property
    def share(self) -> float:
        """Of ambiguous elements."""
        return self.ambiguous / max(self.elements, 1)


class DisagreementError(Exception):
    """A kernel did something else than its definition says.  ``kind`` tells failures apart."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Caught:
    """Keeps the exception of a ``with`` block, whatever it is."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return isinstance(error, Exception)


def execute(recipe: Recipe) -> Outcome:
    """The outcome of a recipe; only ``KeyboardInterrupt`` and the like are raised."""
    # Tensors are small here; every other program is compiled as if they did not fit the caches.
    large = patch("tc.polyhedral.prefetch.register_tiles._LARGE_BYTES", 0) if recipe.number % 2 else nullcontext()
    with _Caught() as caught, large:
        return _execute(recipe)
    error = caught.error
    if isinstance(error, DisagreementError):
        return Outcome(Verdict.FAILED, str(error), error.kind)
    return Outcome(Verdict.FAILED, "".join(traceback.format_exception(error)), type(error).__name__)


def _execute(recipe: Recipe) -> Outcome:
    rng = np.random.default_rng([recipe.seed, recipe.number])
    arguments = [
        argument if isinstance(argument, ScalarArgument) else make(rng, argument, recipe.shape(argument))
        for _, argument in recipe.arguments
    ]
    plain = [a.value if isinstance(a, ScalarArgument) else a.view for a in arguments]
    try:
        comprehension = tc.define(recipe.text)[recipe.name]
        shapes = comprehension.output_shapes(*plain)
    except (tc.SemanticError, tc.ArgumentError) as error:
        return Outcome(Verdict.REFUSED, str(error))
    _require_canonical(comprehension)
    outputs = _outputs(recipe, comprehension, shapes, rng) | _shared(recipe, comprehension, shapes, arguments)
    before = {name: placed.view.copy() for name, placed in outputs.items()}
    call = _Call(recipe, comprehension, arguments, before, outputs)
    try:
        expected = comprehension.oracle(*plain, out=before or None)
    except tc.ArgumentError as error:
        return call.require_fault(error)
    try:
        actual = call.run()
    except tc.ArgumentError as error:
        if recipe.shared:
            return Outcome(Verdict.REFUSED, str(error))
        raise
    except tc.CompileError as error:
        if "OpenCL C has no" in str(error):
            return Outcome(Verdict.REFUSED, str(error))
        raise
    _require_untouched()
    elements = ambiguous = 0
    for name in comprehension.program.results:
        comparison = compare(expected[name], actual[name])
        if not comparison.ok:
            raise DisagreementError("values", f"{name}: {comparison}")
        elements += actual[name].size
        ambiguous += int(expected[name].ambiguous.sum())
    if recipe.sanitizer is Sanitizer.THREAD:
        # Short calls are mostly over before another thread has begun; the mistake may show in a later one.
        end = time.monotonic() + _SECONDS_FOR_RACES
        for _ in range(_CALLS_FOR_RACES):
            if time.monotonic() < end:
                call.run()
    again = call.run(threads=1)
    for name in actual if recipe.options.numerics.deterministic else ():
        if actual[name].tobytes() != again[name].tobytes():
            raise DisagreementError("bits", f"{name} has other bits in a second call")
    return Outcome(Verdict.AGREED, elements=elements, ambiguous=ambiguous)


def _require_untouched() -> None:
    """The thread computes as before: the x87 unit has all its registers, and subnormals are kept."""
    if not (np.longdouble(3.0) * 2 == 6 and np.float64(_SUBNORMAL) * 2 == 2.0**-1059):
        raise DisagreementError("state", "the kernel left the floating-point units changed")


def _require_canonical(comprehension: tc.Comprehension) -> None:
    """A program prints as a text that means the same."""
    text = str(comprehension)
    if tc.define(text)[comprehension.name].program != comprehension.program:
        raise DisagreementError("canonical", f"this prints as something else:\n{text}")


def _outputs(
    recipe: Recipe, comprehension: tc.Comprehension, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator
) -> dict[str, Placed]:
    """The arrays that go through ``out=``."""
    layouts = dict(recipe.outputs)
    found: dict[str, Placed] = {}
    for name in comprehension.program.results:
        tensor = comprehension.program.tensor(name)
        if tensor.role is Role.IN_OUT or name in layouts:
            values = fill(rng, tensor.type, shapes[name], Content.ORDINARY)
            found[name] = place(rng, values, layouts.get(name, Layout.CONTIGUOUS))
    return found


def _shared(
    recipe: Recipe,
    comprehension: tc.Comprehension,
    shapes: Mapping[str, tuple[int, ...]],
    arguments: list[Placed | ScalarArgument],
) -> dict[str, Placed]:
    """The arguments whose memory results are to use, where they fit."""
    placed = dict(zip((name for name, _ in recipe.arguments), arguments, strict=True))
    found: dict[str, Placed] = {}
    for result, name in recipe.shared:
        argument = placed.get(name)
        if isinstance(argument, Placed) and result in shapes:
            type = comprehension.program.tensor(result).type
            if (argument.view.shape, argument.view.dtype.name) == (shapes[result], type.value):
                found[result] = argument
    return found


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that can be repeated: ``before`` holds what the outputs are at its beginning."""

    recipe: Recipe
    comprehension: tc.Comprehension
    arguments: list[Placed | ScalarArgument]
    before: Mapping[str, Array]
    outputs: Mapping[str, Placed]

    def run(self, threads: int | None = None) -> dict[str, Array]:
        """The results by name; DisagreementError if an argument or the memory around an output changed."""
        as_torch = any(isinstance(a, TensorArgument) and a.torch for _, a in self.recipe.arguments)
        passed = [
            a.value if isinstance(a, ScalarArgument) else to_torch(a.view) if as_torch else a.view
            for a in self.arguments
        ]
        shared = {name for _, name in self.recipe.shared}
        inputs = {
            name: (a.base, a.base.tobytes())
            for (name, _), a in zip(self.recipe.arguments, self.arguments, strict=True)
            if isinstance(a, Placed) and name not in shared
        }
        surroundings: dict[str, bytes] = {}
        for name, placed in self.outputs.items():
            placed.view[...] = self.before[name]
            surroundings[name] = placed.base.tobytes()
        out = {
            name: to_torch(placed.view) if as_torch and min(placed.view.strides, default=0) >= 0 else placed.view
            for name, placed in self.outputs.items()
        }
        with _threads(threads), emulated() if self.recipe.target == EMULATED else nullcontext():
            results = self._results(passed, out)
        values = results if isinstance(results, tuple) else (results,)
        named = dict(zip(self.comprehension.program.results, values, strict=True))
        if as_torch and any(not is_tensor(v) for n, v in named.items() if n not in out):
            raise DisagreementError("framework", "tensors of PyTorch came in, and something else came out")
        actual = {name: to_numpy(value).copy() for name, value in named.items()}
        for name, (base, content) in inputs.items():
            if base.tobytes() != content:
                raise DisagreementError("argument", f"the call changed its argument {name}")
        for name, placed in self.outputs.items():
            placed.view[...] = self.before[name]
            if placed.base.tobytes() != surroundings[name]:
                raise DisagreementError("outside", f"the call wrote outside of {name}")
        return actual

    def _results(self, passed: list[Any], out: Mapping[str, Any]) -> Any:
        """What a call with the recipe's options returns, but without sizes for loops that the program does not have."""
        options = self.recipe.options
        while True:
            try:
                self._open(passed, options)
                return self.comprehension(*passed, out=out or None, target=self.recipe.target, options=options)
            except tc.OptionsError:
                shorter = _shorter(options)
                if shorter is None:
                    raise
                options = shorter

    def _open(self, passed: list[Any], options: Options) -> None:
        """Makes the kernel that serves the call with symbolic sizes, if there is to be one and it can be."""
        if not self.recipe.opened:
            return
        most = dict(self.recipe.opened)
        specs: list[Any] = []
        for (_, argument), array in zip(self.recipe.arguments, passed, strict=True):
            if isinstance(argument, ScalarArgument) or not most.keys() & set(argument.extents):
                specs.append(array)
                continue
            view = to_numpy(array)
            strides = tuple(step // view.itemsize for step in view.strides)
            contiguous = view.flags.c_contiguous
            names = zip(argument.extents, view.shape, strict=True)
            shape = tuple(tc.dynamic(most[name]) if name in most else extent for name, extent in names)
            specs.append(tc.ArraySpec(shape, argument.type, None if contiguous else strides))
        with suppress(tc.ArgumentError, tc.RangeError):
            self.comprehension.compile(*specs, target=self.recipe.target, options=options)

    def require_fault(self, expected: tc.ArgumentError) -> Outcome:
        """The kernel must refuse an index as the oracle did; one that does not check may do anything."""
        checked = replace(self.recipe, options=replace(self.recipe.options, check_indices=True))
        try:
            replace(self, recipe=checked).run()
        except tc.ArgumentError as error:
            return Outcome(Verdict.FAULTED, str(error))
        raise DisagreementError("fault", f"the kernel ran, but the oracle says: {expected}")


def _shorter(options: Options) -> Options | None:
    """The options without one of their sizes; None where there are none."""
    if isinstance(options, tc.GpuOptions):
        if (options.split_k_blocks or 1) > 1:
            return replace(options, split_k_blocks=None)
        if options.split_k_threads:
            return replace(options, split_k_threads=options.split_k_threads[:-1])
        if options.block is not None:
            return replace(options, block=options.block[:-1] or None)
        if options.grid is not None:
            return replace(options, grid=options.grid[:-1] or None)
    elif options.register_tile and not options.schedule.tile:
        return replace(options, register_tile=options.register_tile[1:], vector_axis=None)
    if options.schedule.tile:
        return replace(options, schedule=replace(options.schedule, tile=options.schedule.tile[:-1]))
    if options.schedule.scatter_parts is not None:
        return replace(options, schedule=replace(options.schedule, scatter_parts=None))
    if options.schedule.unroll > 1:
        return replace(options, schedule=replace(options.schedule, unroll=options.schedule.unroll // 2))
    return None


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """At most so many threads per call; None leaves their number as it is."""
    before = tc.get_threads()
    if count is not None:
        tc.set_threads(count)
    try:
        yield
    finally:
        tc.set_threads(before)
