"""Same binary, same inputs: same bits, whatever the number of threads and wherever the arrays lie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.codegen.text.functions import C_LIBRARY, function_name
from tc.codegen.text.numerics import changes_in_lanes
from tc.dispatch.kernel import Kernel
from tc.language.program.functions import FUNCTIONS
from tests.arrays import Array, array
from tests.turns import every, one_in

ROWS = tc.define(
    """
    def softmax(float(N,D) X) -> (greatest, shifted, total, Y) {
        greatest(n) max=! X(n,d)
        shifted(n,d) = exp(X(n,d) - greatest(n))
        total(n) +=! shifted(n,d)
        Y(n,d) = log(shifted(n,d) / total(n))
    }
    """
)
OPTIONS = {
    "default": tc.CpuOptions(),
    "untiled": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=())),
    "unmarked": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=()), vectorize=False),
    "unrolled": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(5,), unroll=8)),
}


@pytest.fixture(autouse=True)
def _restored_threads() -> Iterator[None]:
    yield
    tc.set_threads(None)


def functions(type: ScalarType) -> tc.Comprehension:
    """Every function of one operand that the C library has for lanes, and one that calls some of them."""
    names = [name for name, function in FUNCTIONS.items() if function.arity == 1]
    wanted = [
        name
        for name in names
        if changes_in_lanes({c := function_name(name, type, C_LIBRARY)}) and not c.startswith("tc_")
    ]
    statements = [f"y_{name}(i) = {name}(X(i))" for name in (*wanted, "normcdf")]
    outputs = ", ".join(f"y_{name}" for name in (*wanted, "normcdf"))
    return tc.define(f"def functions({type}(N) X) -> ({outputs}) {{ {'; '.join(statements)} }}").functions


def results(kernel: Kernel, x: Array) -> list[Array]:
    found = kernel(x)
    assert isinstance(found, tuple)
    return [array(one) for one in found]


def check(kernel: Kernel, x: Array) -> None:
    """The results have the same bits for 1 to 5 threads, and for a copy of the operand that lies unaligned."""
    moved = np.zeros(x.size + 3, x.dtype)[3:].reshape(x.shape)
    moved[...] = x
    tc.set_threads(1)
    expected = results(kernel, x)
    for threads in (1, 2, 3, 5):
        tc.set_threads(threads)
        for operand in (x, moved):
            for number, (got, wanted) in enumerate(zip(results(kernel, operand), expected, strict=True)):
                assert got.tobytes() == wanted.tobytes(), f"result {number}, {threads} threads"


@one_in(2)
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("type", every(2, [ScalarType.FLOAT32, ScalarType.FLOAT64]), ids=str)
def test_functions(type: ScalarType, option: str) -> None:
    x = np.random.default_rng(0).uniform(0.01, 1.5, 20_001).astype(str(type))
    check(functions(type).compile(x, options=OPTIONS[option]), x)


@one_in(2)
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("shape", every(2, [(1, 7), (77, 129), (1003, 5)]))
def test_rows(shape: tuple[int, int], option: str) -> None:
    x = np.random.default_rng(0).uniform(-5, 5, shape).astype(np.float32)
    check(ROWS.softmax.compile(x, options=OPTIONS[option]), x)
