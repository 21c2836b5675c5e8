"""Every definition in the original's documentation, tests, examples and library runs, or is refused with a reason.

``originals.txt`` has a line for each: where it stands, the text on one line, and for what is refused the kind of error
and why.  Placeholders of templates (``<sh>``, ``${sh}``) have numbers, comments and prompts are gone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tc
from tc.language.program.program import Expression, Literal, SizeReference
from tc.reference.compare import compare
from tc.reference.evaluate import Result
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.comprehensions.case import Array
from tests.turns import every


@dataclass(frozen=True, slots=True)
class Original:
    """One text; ``error`` and ``reason`` are empty for one that is accepted."""

    place: str
    text: str
    error: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        return f"{Path(self.place).name}-{self.text.split('(', 1)[0].removeprefix('def ')}"


def _read() -> tuple[Original, ...]:
    lines = Path(__file__).with_name("originals.txt").read_text().splitlines()
    return tuple(Original(*line.split("\t")) for line in lines)


ORIGINALS = _read()
ACCEPTED = tuple(original for original in ORIGINALS if not original.error)
# Gradients of convolutions fit where windows have one element only, and ranges up to N * N where nothing is in them.
_SOME_SIZES = ((1, 2, 3, 4, 6, 12), (1, 2), (0, 1))
REFUSED = tuple(original for original in ORIGINALS if original.error)


def test_refused_ones_say_why() -> None:
    assert len(ACCEPTED) >= 230
    assert all(original.reason for original in REFUSED)


@pytest.mark.parametrize("original", REFUSED, ids=lambda original: original.name)
def test_what_is_refused(original: Original) -> None:
    with pytest.raises(tc.TCError) as caught:
        tc.define(original.text)
    assert type(caught.value).__name__ == original.error


@pytest.mark.parametrize("original", every(12, ACCEPTED), ids=lambda original: original.name)
def test_what_is_accepted_fits_some_sizes(original: Original) -> None:
    comprehension = tc.define(original.text).single()
    _fitting_arguments(comprehension)


@pytest.mark.parametrize("original", every(60, ACCEPTED), ids=lambda original: original.name)
def test_what_is_accepted_runs(original: Original) -> None:
    comprehension = tc.define(original.text).single()
    arguments = _fitting_arguments(comprehension, runs=True)
    outputs = _outputs(comprehension, arguments)
    oracle = _oracle(comprehension, arguments)
    found = comprehension(*arguments, out=outputs or None)
    results = found if isinstance(found, tuple) else (found,)
    for name, values in zip(comprehension.program.results, results, strict=True):
        assert compare(oracle[name], np.asarray(values)).ok, name


def _outputs(comprehension: tc.Comprehension, arguments: list[object]) -> dict[str, Array]:
    """Zeros for results that come in."""
    program = comprehension.program
    shapes = comprehension.output_shapes(*arguments)
    return {
        tensor.name: np.zeros(shapes[tensor.name], numpy_dtype(tensor.type))
        for tensor in program.tensors
        if tensor.role.value == "in-out"
    }


def _oracle(comprehension: tc.Comprehension, arguments: list[object]) -> Mapping[str, Result]:
    return comprehension.oracle(*arguments, out=_outputs(comprehension, arguments) or None)


def _fitting_arguments(comprehension: tc.Comprehension, *, runs: bool = False) -> list[object]:
    """Small random sizes, with positive numbers that are small enough to be subscripts; the last error if none fit.

    ``runs``: whether gathers must stay inside, too, which the oracle says.
    """
    failure: tc.TCError | None = None
    for seed in range(200):
        rng = random.Random(seed)
        some = _SOME_SIZES[seed % len(_SOME_SIZES)]
        sizes = {size: rng.choice(some) for size in comprehension.program.sizes}
        arguments = [_argument(comprehension, name, sizes) for name in comprehension.program.arguments]
        try:
            comprehension.specialize(*arguments)
            if runs:
                _oracle(comprehension, arguments)
        except tc.TCError as error:
            failure = error
        else:
            return arguments
    assert failure is not None
    raise failure


def _argument(comprehension: tc.Comprehension, name: str, sizes: dict[str, int]) -> object:
    program = comprehension.program
    if name not in {tensor.name for tensor in program.tensors}:
        return 1
    tensor = program.tensor(name)
    shape = tuple(_extent(extent, sizes) for extent in tensor.shape)
    rng = np.random.default_rng(0)
    if tensor.type.is_floating:
        return rng.uniform(0.5, 1.5, shape).astype(numpy_dtype(tensor.type))
    return np.zeros(shape, numpy_dtype(tensor.type))


def _extent(extent: Expression, sizes: dict[str, int]) -> int:
    if isinstance(extent, SizeReference):
        return sizes[extent.name]
    assert isinstance(extent, Literal)
    return int(extent.value)
