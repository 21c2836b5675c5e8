"""Who notices a mistake: the proof before the kernel runs, the emulator when it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Final
from unittest.mock import patch

import numpy as np

import tc
from tc.kernel import Kernel
from tc.polyhedral import pipeline
from tc.polyhedral.place_barriers import place_barriers
from tc.polyhedral.scop import Scop
from tc.polyhedral.tree import ScheduleTree
from tc.proof import Proof
from tc.reference.compare import compare
from tc.reference.evaluate import Result
from tc.runtime.numpy_arrays import numpy_dtype
from tests.mutants.mistakes import Mistake, mistakes_in

# Three orders of threads: forwards, backwards, every other one first; and two of what shared memory holds before.
_LAUNCHES: Final = 6


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the proof refuses the mutant, and whether the emulator stops it or computes something else."""

    refused: bool
    wrong: bool


def judge(
    text: str,
    definition: str,
    inputs: Mapping[str, object],
    options: tc.GpuOptions,
    mistake: Mistake,
    without: Kernel | None = None,
    others: Iterable[Mapping[str, object]] = (),
) -> Verdict:
    """What becomes of a program with a mistake in its kernel: it is compiled whatever the proof says.

    ``without``: the kernel without the mistake, for results that the oracle leaves open.  ``others``: further inputs
    if all is right with the first ones; a minimum, say, seldom comes from the one lane that is left out.
    """
    refusals: list[tc.VerificationError] = []

    def noted(prove: Callable[..., object]) -> Callable[..., object]:
        def proven(*arguments: object) -> object:
            try:
                return prove(*arguments)
            except tc.VerificationError as refusal:
                refusals.append(refusal)
                return Proof(0, 0, 0, 0)

        return proven

    with mistake.made(), ExitStack() as noting:
        for name in ("prove", "prove_statements", "prove_split"):
            noting.enter_context(patch.object(pipeline, name, noted(getattr(pipeline, name))))
        comprehension = tc.define(text)[definition]
        kernel = comprehension.compile(*inputs.values(), target="emulator", options=options)
    wrong = any(not is_right(comprehension, kernel, drawn, without) for drawn in chain((inputs,), others))
    return Verdict(bool(refusals), wrong)


def is_right(
    comprehension: tc.Comprehension, kernel: Kernel, inputs: Mapping[str, object], same_as: Kernel | None = None
) -> bool:
    """Whether the kernel runs through and agrees with the oracle, in whatever order the emulator has the threads.

    ``same_as``: another kernel, the bits of whose results they must be.
    """
    expected = comprehension.oracle(*inputs.values())
    bits = None if same_as is None else _results(same_as, inputs, expected)
    for _ in range(_LAUNCHES):
        found = _results(kernel, inputs, expected)
        if found is None or not all(compare(expected[name], values).ok for name, values in found.items()):
            return False
        if bits is not None and any(values.tobytes() != bits[name].tobytes() for name, values in found.items()):
            return False
    return True


def _results(
    kernel: Kernel, inputs: Mapping[str, object], expected: Mapping[str, Result]
) -> Mapping[str, np.ndarray] | None:
    """What the kernel computes, by name, where nothing has been right before; None if it stops."""
    out = {name: poisoned(result.values, kernel.layout(name).type) for name, result in expected.items()}
    try:
        found = kernel(*inputs.values(), out=out)
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


def mistakes(text: str, definition: str, inputs: Mapping[str, object], options: tc.GpuOptions) -> tuple[Mistake, ...]:
    """All mistakes that can be made in the kernel of a program."""
    found: list[Mistake] = []

    def looked_at(tree: ScheduleTree, scop: Scop) -> tuple[ScheduleTree, Scop]:
        tree, scop = place_barriers(tree, scop)
        split = any(temporary.name.rpartition("_parts")[1] for temporary in scop.temporaries)
        found.extend(mistakes_in(scop, split=split))
        return tree, scop

    with patch("tc.polyhedral.passes.place_barriers", looked_at):
        tc.define(text)[definition].compile(*inputs.values(), target="emulator", options=options)
    return tuple(found)
