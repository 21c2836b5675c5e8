"""The C compiler keeps the promises of loop kinds: it vectorizes the loops that are meant for lanes."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tc
from benchmarks.problems.cases import LAYER_NORM
from tc.base.environment import environment
from tc.base.types import ScalarType
from tc.codegen.printer.source import c_source
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import Call, Cast, Expression, IteratorReference, Literal, Read, Reduction, Select
from tc.polyhedral.ir.loops import Buffer, LoopKind, LoopProgram, StatementBody
from tc.runtime.host.c_compiler import find_compiler, kernel_flags
from tc.targets.target import parse_cpu_target
from tests.codegen.build import binary, buffer, instance, loops, read
from tests.codegen.harness import FLAGS, VECTOR_BYTES
from tests.translated import translated
from tests.turns import every, one_in

TYPES = (ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32)
HALVES = (ScalarType.FLOAT16, ScalarType.BFLOAT16)

GLIBC = platform.libc_ver()
pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="names instructions of x86-64"),
    pytest.mark.skipif(
        GLIBC[0] != "glibc" or tuple(map(int, GLIBC[1].split("."))) < (2, 35), reason="needs glibc 2.35"
    ),
]


def vectorized(program: LoopProgram, folder: Path) -> bool:
    """Whether gcc runs a loop of the outlined parallel region in lanes of AVX2."""
    source = folder / "kernel.c"
    lines = c_source(program, VECTOR_BYTES).text.splitlines()
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


@one_in(2)
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


def call(function: str, element: Expression) -> Call:
    """The function of an element and as many zeros as it needs."""
    zero = Literal(0.0, element.type)
    return Call(function, (element, zero, zero)[: FUNCTIONS[function].arity], element.type)


# Without lane versions in the C library: those that the compiler knows, and those of numerics.h that call none.
PLAIN = ("max", "fmin", "sqrt", "rsqrt", "floor", "fdim", "norm3d", "rhypot")
LIBRARY = ("log10", "sin", "tan", "pow", "exp10", "cosh")
WRITTEN_HERE = ("exp", "expm1", "fmod", "log", "log1p", "tanh", "erf")


@one_in(3)
@pytest.mark.parametrize("function", [*PLAIN, *LIBRARY, *WRITTEN_HERE])
def test_functions_run_in_lanes(function: str, tmp_path: Path) -> None:
    for type in (ScalarType.FLOAT32, ScalarType.FLOAT64):
        element, x = matrix(type)
        assert vectorized(rows(call(function, element), (x,), None), tmp_path)


@pytest.mark.parametrize("function", ["exp", "log"])
def test_functions_run_in_lanes_inside_conditions(function: str, tmp_path: Path) -> None:
    for type in (ScalarType.FLOAT32, ScalarType.FLOAT64):
        element, x = matrix(type)
        zero = Literal(0.0, type)
        chosen = Select(binary(">", element, zero), call(function, element), zero, type)
        assert vectorized(rows(chosen, (x,), None), tmp_path)


@pytest.mark.parametrize("reduction", [None, Reduction.ADD])
def test_loops_that_read_one_element_on_a_condition_run_in_lanes(reduction: Reduction | None, tmp_path: Path) -> None:
    """PReLU: the weight of a row, or of all, is loaded before the loop over lanes."""
    for type in (ScalarType.FLOAT32, ScalarType.FLOAT16):
        element, x = matrix(type)
        for weight, w in (
            (read("w", type, "i"), buffer("w", type, ROWS)),
            (read("w", type), buffer("w", type)),
            (read("w", type, "j"), buffer("w", type, COLUMNS, strides=(0,))),
        ):
            chosen = Select(binary(">", element, Literal(0.0, type)), element, binary("*", weight, element), type)
            value = chosen if reduction is None else Cast(chosen, ScalarType.FLOAT32)
            assert vectorized(rows(value, (x, w), reduction), tmp_path)


def called(program: LoopProgram, folder: Path) -> set[str]:
    """The functions that the library of a vectorized kernel calls, as the linker knows them."""
    assert vectorized(program, folder)
    listing = subprocess.run(["nm", "-D", folder / "kernel.so"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" U (\w+)", listing))


def test_lanes_call_the_vector_math_of_the_c_library(tmp_path: Path) -> None:
    """Whole vectors of AVX2, and scalars in the tail."""
    for type, lanes, scalar in (
        (ScalarType.FLOAT32, "_ZGVdN8v_log2f", "log2f"),
        (ScalarType.FLOAT64, "_ZGVdN4v_log2", "log2"),
    ):
        element, x = matrix(type)
        names = called(rows(call("log2", element), (x,), None), tmp_path)
        assert lanes in names
        assert names <= {lanes, lanes.replace("dN8", "bN4"), lanes.replace("dN4", "bN2"), scalar}


@pytest.mark.parametrize("function", [*PLAIN, *WRITTEN_HERE])
def test_lanes_of_float32_call_nothing(function: str, tmp_path: Path) -> None:
    element, x = matrix(ScalarType.FLOAT32)
    assert not called(rows(call(function, element), (x,), None), tmp_path)


def test_extremes_of_extremes_run_in_lanes(tmp_path: Path) -> None:
    """As in windows and clipping: comparisons in a row are not left as branches."""
    for type in TYPES:
        element, x = matrix(type)
        greatest: Expression = element
        for name in "uvw":
            greatest = Call("max", (greatest, read(name, type, "j")), type)
        clipped = Call("min", (Call("max", (element, Literal(0, type)), type), Literal(6, type)), type)
        assert vectorized(rows(greatest, (x, *(buffer(name, type, COLUMNS) for name in "uvw")), None), tmp_path)
        assert vectorized(rows(clipped, (x,), None), tmp_path)


def test_guarded_divisions_run_in_lanes(tmp_path: Path) -> None:
    for type in (ScalarType.INT32, ScalarType.UINT32, ScalarType.INT8, ScalarType.UINT16):
        element, x = matrix(type)
        divisor = (x, buffer("v", type, COLUMNS))
        for operator in "/%":
            assert vectorized(rows(binary(operator, element, read("v", type, "j")), divisor, None), tmp_path)


def test_conversions_run_in_lanes(tmp_path: Path) -> None:
    element, x = matrix(ScalarType.FLOAT32)
    for type in (ScalarType.INT32, ScalarType.UINT8, ScalarType.INT64, ScalarType.FLOAT64, ScalarType.BFLOAT16):
        assert vectorized(rows(Cast(element, type), (x,), None), tmp_path)
    wide, y = matrix(ScalarType.FLOAT64)
    for type in (ScalarType.INT64, ScalarType.UINT64):
        assert vectorized(rows(Cast(wide, type), (y,), None), tmp_path)
    zero = Literal(0.0, element.type)
    assert vectorized(rows(Select(binary("<", element, zero), zero, element, element.type), (x,), None), tmp_path)


def test_a_statement_that_reduces_in_memory_does_not(tmp_path: Path) -> None:
    """The test can fail: without an accumulator, every partial sum waits for the one before."""
    element, x = matrix(ScalarType.FLOAT32)
    value = binary("*", element, read("y", ScalarType.FLOAT32, "i"))
    assert not vectorized(rows(value, (x,), Reduction.ADD), tmp_path)


@one_in(2)
@pytest.mark.parametrize("value", ["X(j,j) < X(i,j)", "X(j,j) + X(i,j)", "int(X(j,j) + X(i,j))"])
@pytest.mark.parametrize("columns", every(2, [2, 3, 4, 5]))
def test_interleaved_columns_are_stored(value: str, columns: int) -> None:
    # GCC 12 left the call of a routine out that stores three columns in turns.
    columnwise = tc.define(f"def columnwise(float(N,M) X) -> (A) {{ A(i,j) = {value} }}")
    for rows in (21, 32, 64):
        x = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(np.float32)
        diagonal = x[range(columns), range(columns)]
        expected = diagonal < x if "<" in value else diagonal + x
        np.testing.assert_array_equal(np.asarray(columnwise(x)), expected)


def lines_in_lanes(text: str, folder: Path) -> set[int]:
    """Where gcc makes lanes of a loop of a kernel for AVX-512."""
    source = folder / "kernel.c"
    source.write_text(text, encoding="utf-8")
    compiler = find_compiler(environment())
    if "gcc" not in subprocess.run([*compiler.command, "-v"], capture_output=True, text=True, check=True).stderr:
        pytest.skip("asks gcc what it vectorized")
    own = kernel_flags(parse_cpu_target("cpu:x86-64-v4"), compiler)
    flags = [*own, "-c", "-o", str(folder / "kernel.o"), "-fopt-info-vec-optimized"]
    notes = subprocess.run([*compiler.command, *flags, str(source)], capture_output=True, text=True, check=True).stderr
    return {int(line) for line in re.findall(r"kernel\.c:(\d+):", notes)}


def line_of(text: str, content: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if line.strip() == content)


def test_what_an_earlier_loop_has_read_is_read_in_lanes_again(tmp_path: Path) -> None:
    gradient = tc.define(LAYER_NORM.text).single().with_gradient().backward
    rows = 4096
    shapes = (rows, 1024), (1024,), (1024,), (rows,), (rows,), (rows, 1024)
    options = tc.CpuOptions(threads=1)
    text = translated(gradient, *shapes, target="cpu:x86-64-v4", options=options).source.text
    line = line_of(text, "// S6")
    assert lines_in_lanes(text, tmp_path) & {line - 1, line, line + 1}


def test_what_one_iteration_keeps_to_itself_keeps_no_lanes_away(tmp_path: Path) -> None:
    """A pointer to one element did."""
    chain = tc.define("def f(float(M,N) X, float(M) s) -> (O) { t(m,n) = X(m,n) / s(m)  O(m,n) = t(m,n) * t(m,n) }")
    text = translated(chain.single(), (70, 256), (70,), target="cpu:x86-64-v4").source.text
    assert re.search(r"float t_local\d_t\[1\];", text), text
    assert lines_in_lanes(text, tmp_path) & {line_of(text, "// S0") + 1, line_of(text, "// S1") + 1}
