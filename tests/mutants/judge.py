"""Who notices a mistake: the proof before the kernel runs, the emulator when it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final
from unittest.mock import patch

import numpy as np

import tc
from tc.base.proof import Proof
from tc.dispatch.kernel import Kernel
from tc.language.program.specialization import Specialization
from tc.polyhedral import pipeline, schedules
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.splits import Split
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.schedule.split import Dealing, split_reductions
from tc.reference.compare import compare
from tc.reference.evaluate import Result
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.mutants.mistakes import Mistake, Step, mistakes_in

# Three orders of threads: forwards, backwards, every other one first; and two of what shared memory holds before.
_LAUNCHES: Final = 6
_PROOFS: Final = (
    *((pipeline, name) for name in ("prove", "prove_statements", "prove_surplus")),
    *((schedules, name) for name in ("prove_split", "prove_scans", "prove_shares")),
)


@dataclass(frozen=True, slots=True)
class Given:
    """What a call is given: its arguments, and what the results that it reads first hold before it."""

    inputs: Mapping[str, object]
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the proof refuses the mutant, and whether the emulator stops it or computes something else.

    ``seconds``: of this process, in proofs.
    """

    refused: bool
    wrong: bool
    seconds: float = field(default=0.0, compare=False)


def judge(
    text: str,
    definition: str,
    given: Given,
    options: tc.GpuOptions,
    mistake: Mistake,
    without: Kernel | None = None,
    others: Iterable[Given] = (),
) -> Verdict:
    """What becomes of a program with a mistake in its kernel: it is compiled whatever the proof says.

    ``without``: the kernel without the mistake, for results that the oracle leaves open.  ``others``: more to give
    it if all is right with the first; a minimum, say, seldom comes from the one lane that is left out.
    """
    refusals: list[tc.VerificationError] = []
    seconds: list[float] = []

    def noted(prove: Callable[..., object]) -> Callable[..., object]:
        def proven(*arguments: object, **named: object) -> object:
            begun = time.thread_time()
            try:
                return prove(*arguments, **named)
            except tc.VerificationError as refusal:
                refusals.append(refusal)
                return Proof(0, 0, 0, 0)
            finally:
                seconds.append(time.thread_time() - begun)

        return proven

    with mistake.made(), ExitStack() as noting:
        for module, name in _PROOFS:
            noting.enter_context(patch.object(module, name, noted(getattr(module, name))))
        # The mistake stays in the kernel in which it is made, also if isl leaves something out then.
        noting.enter_context(patch.object(pipeline, "infeasible_buffers", return_value=None))
        comprehension = tc.define(text)[definition]
        kernel = comprehension.compile(*given.inputs.values(), target="emulator", options=options)
    products = options.numerics.products
    wrong = any(not is_right(comprehension, kernel, drawn, without, products) for drawn in chain((given,), others))
    return Verdict(bool(refusals), wrong, sum(seconds))


def is_right(
    comprehension: tc.Comprehension,
    kernel: Kernel,
    given: Given,
    same_as: Kernel | None = None,
    products: tc.Products = tc.Products.EXACT,
) -> bool:
    """Whether the kernel runs through and agrees with the oracle, in whatever order the emulator has the threads.

    ``same_as``: another kernel, the bits of whose results they must be.
    """
    expected = comprehension.oracle(*given.inputs.values(), out=given.outputs or None, products=products)
    bits = None if same_as is None else _results(same_as, given, expected)
    for _ in range(_LAUNCHES):
        found = _results(kernel, given, expected)
        if found is None or not all(compare(expected[name], values).ok for name, values in found.items()):
            return False
        if bits is not None and any(values.tobytes() != bits[name].tobytes() for name, values in found.items()):
            return False
    return True


def _results(kernel: Kernel, given: Given, expected: Mapping[str, Result]) -> Mapping[str, np.ndarray] | None:
    """What the kernel computes, by name, where nothing but what it reads has been right before; None if it stops."""
    out = {
        name: given.outputs[name].copy() if name in given.outputs else poisoned(result.values, kernel.layout(name).type)
        for name, result in expected.items()
    }
    try:
        found = kernel(*given.inputs.values(), out=out)
    except (tc.DeviceError, tc.ArgumentError):  # the latter for an index that is not yet written
        return None
    results = found if isinstance(found, tuple) else (found,)
    return {name: np.asarray(values) for name, values in zip(expected, results, strict=True)}


def poisoned(values: np.ndarray, type: tc.ScalarType) -> np.ndarray:
    """An array like ``values`` in which nothing is right yet, whatever its memory held before."""
    if type is tc.ScalarType.BOOL:
        return ~values.astype(bool)
    size = values.size * type.itemsize
    return np.frombuffer(b"\xff" * size, numpy_dtype(type)).reshape(values.shape).copy()


def mistakes(text: str, definition: str, given: Given, options: tc.GpuOptions) -> tuple[Mistake, ...]:
    """All mistakes that can be made in the kernel of a program."""
    found: list[Mistake] = []
    made: list[tuple[Step, tuple[Split, ...]]] = []

    def split(
        specialization: Specialization, parts: int, among: frozenset[str], dealing: Dealing
    ) -> tuple[Specialization, tuple[Split, ...]]:
        changed, splits = split_reductions(specialization, parts, among, dealing)
        made.append((Step(parts, dealing), splits))
        return changed, splits

    def looked_at(tree: ScheduleTree, scop: Scop, **how: bool) -> tuple[ScheduleTree, Scop]:
        tree, scop = place_barriers(tree, scop, **how)
        found.extend(mistakes_in(scop, _lasting(made)))
        return tree, scop

    with (
        patch("tc.polyhedral.grid_passes.place_barriers", looked_at),
        patch("tc.polyhedral.schedules.split_reductions", split),
    ):
        tc.define(text)[definition].compile(*given.inputs.values(), target="emulator", options=options)
    return tuple(found)


def _lasting(made: Sequence[tuple[Step, tuple[Split, ...]]]) -> Iterator[Step]:
    """The steps after which a total may go through too few partial results.

    Lanes go through all of theirs, however few the step before has left to go through.
    """
    for (step, splits), after in zip_longest(made, made[1:]):
        redone = set[str]()
        if after is not None and after[0].dealing is Dealing.LANES:
            redone = {split.statement for split in after[1]}
        if any(split.total not in redone for split in splits):
            yield step
