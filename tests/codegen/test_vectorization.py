"""The C compiler keeps the promises of loop kinds: it vectorizes the loops that are meant for lanes."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

from tc.codegen.source import c_source
from tc.language.functions import FUNCTIONS
from tc.language.program import Call, Cast, Expression, IteratorReference, Literal, Read, Reduction, Select
from tc.polyhedral.loops import Buffer, LoopKind, LoopProgram, StatementBody
from tc.types import ScalarType
from tests.codegen.build import binary, buffer, instance, loops, read
from tests.codegen.harness import FLAGS

TYPES = (ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32)
HALVES = (ScalarType.FLOAT16, ScalarType.BFLOAT16)

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names instructions of x86-64")


def vectorized(program: LoopProgram, folder: Path) -> bool:
    """Whether gcc runs a loop of the outlined parallel region in lanes of AVX2."""
    source = folder / "kernel.c"
    lines = c_source(program).text.splitlines()
    source.write_text("\n".join(lines), encoding="utf-8")
    flags = [flag for flag in FLAGS if flag != "-march=native"]
    library = folder / "kernel.so"
    command = ["gcc", *flags, "-march=x86-64-v3", "-fopt-info-vec-optimized", str(source), "-o", str(library)]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    first = next(number for number, line in enumerate(lines, start=1) if "tc_region_0_body(" in line)
    last = next(number for number, line in enumerate(lines, start=1) if number > first and line == "}")
    found = re.findall(r"kernel\.c:(\d+):\d+: optimized: loop vectorized", notes)
    return any(first < int(line) < last for line in found)


ROWS, COLUMNS = 64, 1000


def rows(value: Expression, inputs: tuple[Buffer, ...], reduction: Reduction | None) -> LoopProgram:
    """``y(i, j) = value``, or ``y(i) reduction= value`` over j; the loop over j is meant for lanes."""
    subscripts = (IteratorReference("i"),) if reduction else (IteratorReference("i"), IteratorReference("j"))
    target = buffer("y", value.type, *((ROWS, COLUMNS)[: len(subscripts)]), writable=True)
    body = StatementBody("S0", ("i", "j"), "y", subscripts, reduction, value)
    inner = LoopKind.REDUCTION if reduction else LoopKind.VECTOR
    root = loops([("c0", ROWS, LoopKind.PARALLEL), ("c1", COLUMNS, inner)], instance("S0", "c0", "c1"))
    return LoopProgram("rows", (*inputs, target), (), (), (body,), root, checked=True)


def matrix(type: ScalarType) -> tuple[Read, Buffer]:
    return read("x", type, "i", "j"), buffer("x", type, ROWS, COLUMNS)


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("reduction", [Reduction.ADD, Reduction.MINIMUM, Reduction.MAXIMUM])
def test_reductions_run_in_lanes(type: ScalarType, reduction: Reduction, tmp_path: Path) -> None:
    element, x = matrix(type)
    product = binary("*", element, read("v", type, "j"))
    assert vectorized(rows(element, (x,), reduction), tmp_path)
    assert vectorized(rows(product, (x, buffer("v", type, COLUMNS)), reduction), tmp_path)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_halves_are_converted_in_lanes(half: ScalarType, tmp_path: Path) -> None:
    element, x = matrix(half)
    assert vectorized(rows(Cast(element, ScalarType.FLOAT32), (x,), Reduction.ADD), tmp_path)
    assert vectorized(rows(binary("*", element, element), (x,), None), tmp_path)


@pytest.mark.parametrize("function", ["max", "fmin", "sqrt", "rsqrt", "floor", "exp", "log", "sin", "tanh", "erf"])
def test_functions_run_in_lanes(function: str, tmp_path: Path) -> None:
    for type in (ScalarType.FLOAT32, ScalarType.FLOAT64):
        element, x = matrix(type)
        arguments = (element, Literal(0.0, type))[: FUNCTIONS[function].arity]
        assert vectorized(rows(Call(function, arguments, type), (x,), None), tmp_path)


def test_conversions_run_in_lanes(tmp_path: Path) -> None:
    element, x = matrix(ScalarType.FLOAT32)
    for type in (ScalarType.INT32, ScalarType.UINT8, ScalarType.FLOAT64, ScalarType.BFLOAT16):
        assert vectorized(rows(Cast(element, type), (x,), None), tmp_path)
    zero = Literal(0.0, element.type)
    assert vectorized(rows(Select(binary("<", element, zero), zero, element, element.type), (x,), None), tmp_path)


def test_a_statement_that_reduces_in_memory_does_not(tmp_path: Path) -> None:
    """The test can fail: without an accumulator, every partial sum waits for the one before."""
    element, x = matrix(ScalarType.FLOAT32)
    value = binary("*", element, read("y", ScalarType.FLOAT32, "i"))
    assert not vectorized(rows(value, (x,), Reduction.ADD), tmp_path)
