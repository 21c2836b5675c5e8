"""Kernels for aarch64, run by an emulator: the C is for any machine, and uses the vector registers that it finds."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

import tc
from tc.base.environment import Environment
from tc.reference.compare import compare
from tc.runtime.host.c_compiler import find_compiler, kernel_flags
from tc.targets.target import parse_cpu_target
from tests import emulation
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.fuzz.describe import describe
from tests.fuzz.execute import Verdict, execute
from tests.fuzz.generate import generate

NAMES = (
    "tmm", "tbmm", "grouped_convolution", "moments", "max_pool", "nearest_code", "one_lookup_table", "fcrelu",
    "group_norm_one_definition", "softmax", "functions", "integer_arithmetic", "sum_of_float16", "attention",
)  # fmt: skip
SEED, PROGRAMS = 64, 12
TEXT = """
def axpby(float a, float(N) X, int8 b) -> (Y) { Y(i) = a * X(i) + b }
def pick(float(M,N) X, int(K) I) -> (O) { O(k,j) = X(I(k), j) }
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
"""
DEFINITIONS = tc.define(TEXT)


@pytest.fixture(autouse=True)
def emulator() -> Iterator[None]:
    if (why := emulation.missing()) is not None:
        pytest.skip(why)
    with emulation.emulated():
        yield


@pytest.mark.parametrize("case", [case for case in CASES if case.name in NAMES], ids=lambda case: case.name)
def test_comprehensions_agree_with_the_oracle(case: Case) -> None:
    definitions = tc.define(case.text)
    comprehension = definitions.single() if case.definition is None else definitions[case.definition]
    for sizes in case.ragged_sizes[:2]:
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        inputs, outputs = case.make_inputs(rng, sizes), case.make_outputs(rng, sizes)
        oracle = comprehension.oracle(*inputs.values(), out=outputs or None)
        results = comprehension(*inputs.values(), out=outputs or None, target=emulation.TARGET)
        values = results if isinstance(results, tuple) else (results,)
        for name, value in zip(comprehension.program.results, values, strict=True):
            comparison = compare(oracle[name], np.asarray(value))
            assert comparison.ok, f"{name}: {comparison}"


def test_all_names_are_in_the_corpus() -> None:
    assert set(NAMES) <= {case.name for case in CASES}


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_programs_agree_with_the_oracle(number: int) -> None:
    recipe = generate(SEED, number, emulation.TARGET)
    outcome = execute(recipe)
    assert outcome.verdict is not Verdict.FAILED, describe(recipe, outcome)


def test_scalars_and_reversed_neighbours_in_memory() -> None:
    memory = np.arange(16, dtype=np.float32)
    x, y = memory[8::-1], memory[15:8:-1]
    expected = 0.5 * x[:7] - 3
    assert DEFINITIONS.axpby(0.5, x[:7], -3, out=y, target=emulation.TARGET) is y
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(memory[:9], np.arange(9))


def test_faults_come_back() -> None:
    x, indices = np.ones((7, 3), np.float32), np.array([0, 7], np.int32)
    with pytest.raises(tc.ArgumentError, match="an index into dimension 0 of X is outside of 0:7 "):
        DEFINITIONS.pick(x, indices, target=emulation.TARGET)


def test_calls_with_several_threads() -> None:
    before = tc.get_threads()
    tc.set_threads(3)
    try:
        a, b = np.ones((129, 65), np.float32), np.ones((65, 129), np.float32)
        np.testing.assert_array_equal(DEFINITIONS.mm(a, b, target=emulation.TARGET), a @ b)
    finally:
        tc.set_threads(before)


def test_multiply_adds_run_in_lanes() -> None:
    kernel = DEFINITIONS.mm.compile((129, 65), (65, 64), target=emulation.TARGET)
    assert re.search(r"\bfmla\tv\d+\.4s", assembly(kernel.source, emulation.TARGET))


def assembly(source: str, target: str) -> str:
    flags = kernel_flags(parse_cpu_target(target), find_compiler(Environment(compiler=emulation.COMPILER)))
    command = (emulation.COMPILER, *flags, "-S", "-o", "-", "-x", "c", "-")
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("steps", [37, 64])
@pytest.mark.parametrize(
    ("left", "right", "instruction"),
    [
        ("int8", "int8", r"usdot v\d+\.4s"),
        ("uint8", "int8", r"usdot v\d+\.4s"),
        ("uint8", "uint8", r"usdot v\d+\.4s"),
        ("bfloat16", "bfloat16", r"bfdot v\d+\.4s"),
    ],
)
def test_words_are_multiplied_where_there_are_instructions(left: str, right: str, instruction: str, steps: int) -> None:
    target = "cpu:armv8.2-a+bf16+i8mm"
    wide = "float" if left == "bfloat16" else "int32"
    text = f"def f({left}(M,K) A, {right}(K,N) B) -> (C) {{ C(m,n) +=! {wide}(A(m,k)) * {wide}(B(k,n)) }}"
    f, random = tc.define(text).single(), np.random.default_rng(0)
    if left == "bfloat16":
        import ml_dtypes

        a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((17, steps), (steps, 21)))
    else:
        a, b = (
            random.integers(np.iinfo(type).min, np.iinfo(type).max, shape, type, endpoint=True)
            for type, shape in ((left, (17, steps)), (right, (steps, 21)))
        )
    assert re.search(instruction, assembly(f.compile(a, b, target=target).source, target))
    assert compare(f.oracle(a, b)["C"], np.asarray(f(a, b, target=target))).ok
