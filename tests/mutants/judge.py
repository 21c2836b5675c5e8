"""Who notices a mistake: the proof before the kernel runs, the emulator when it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
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
from tc.runtime.numpy_arrays import numpy_dtype
from tests.mutants.mistakes import Mistake, mistakes_in

# Of threads: forwards, backwards, every other one first; the next launch takes the next one.
_ORDERS: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the proof refuses the mutant, and whether the emulator stops it or computes something else."""

    refused: bool
    wrong: bool


def judge(
    text: str, definition: str, inputs: Mapping[str, object], options: tc.GpuOptions, mistake: Mistake
) -> Verdict:
    """What becomes of a program with a mistake in its kernel: it is compiled whatever the proof says."""
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
    return Verdict(bool(refusals), not is_right(comprehension, kernel, inputs))


def is_right(comprehension: tc.Comprehension, kernel: Kernel, inputs: Mapping[str, object]) -> bool:
    """Whether the kernel runs through and agrees with the oracle, in whatever order the emulator has the threads."""
    return all(_is_right_once(comprehension, kernel, inputs) for _ in range(_ORDERS))


def _is_right_once(comprehension: tc.Comprehension, kernel: Kernel, inputs: Mapping[str, object]) -> bool:
    expected = comprehension.oracle(*inputs.values())
    out = {name: poisoned(result.values, kernel.layout(name).type) for name, result in expected.items()}
    try:
        found = kernel(*inputs.values(), out=out)
    except tc.DeviceError:
        return False
    results = found if isinstance(found, tuple) else (found,)
    pairs = zip(comprehension.program.results, results, strict=True)
    return all(compare(expected[name], np.asarray(values)).ok for name, values in pairs)


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
