"""Minimum and maximum in the lanes of vectors are what they are of numbers, NaN and signed zeros included."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tc
from tc.codegen.text.numerics import prelude
from tc.runtime.frameworks.numpy_arrays import numpy_address
from tests.codegen.harness import compile_c
from tests.turns import every, one_in

Numbers = np.ndarray[Any, np.dtype[np.float32]]

VALUES = (0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-45, -2.0)
WIDTHS = {"float32": (2, 4, 8, 16), "float64": (2, 4, 8)}
TARGETS = ("cpu", "cpu:x86-64-v3", "cpu:x86-64") if platform.machine() == "x86_64" else ("cpu",)
CTYPES = {"float32": "float", "float64": "double"}


COMPARISONS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}


@pytest.mark.parametrize("function", ["fmin", "fmax", "min", "max"])
@pytest.mark.parametrize("type", WIDTHS)
def test_lanes_give_the_bits_that_numbers_give(function: str, type: str) -> None:
    require_same(type, f"tc_lanes_{function}", f"tc_{function}_{type}({{a}}, {{b}})", "{a}, {b}")


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("type", WIDTHS)
def test_lanes_choose_as_conditions_do(comparison: str, type: str) -> None:
    one = f"{{a}} {COMPARISONS[comparison]} {{b}} ? {{b}} : {{a}}"
    require_same(type, f"tc_choose_{comparison}", one, "{a}, {b}, {b}, {a}")


def require_same(type: str, name: str, one: str, arguments: str) -> None:
    """Asserts that a function of lanes gives the bits of an expression of numbers ``a`` and ``b``."""
    c, widths = CTYPES[type], WIDTHS[type]

    def loaded(width: int) -> str:
        return arguments.format(**{n: f"tc_load_{type}x{width}({n} + i)" for n in "ab"})

    conditions = ("__GNUC__", "__GNUC__", "__AVX__", "__AVX512F__")[-len(widths) :]
    calls = "".join(
        f"#ifdef {condition}\nfor (int i = 0; i < n; i += {width}) "
        f"tc_store_{type}x{width}(lanes[{number}] + i, {name}_{type}x{width}({loaded(width)}));\n#endif\n"
        for number, (width, condition) in enumerate(zip(widths, conditions, strict=True))
    )
    entry = f"""
void run(const {c} *a, const {c} *b, {c} *one, {c} (*lanes)[128], int n) {{
  for (int i = 0; i < n; i++) one[i] = {one.format(a="a[i]", b="b[i]")};
{calls}}}
"""
    helpers = prelude(set(re.findall(r"tc_\w+", one)) | {f"{name}_{type}x2"})
    text = f"#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n{helpers}\n{entry}"
    run = compile_c(text, "-Wno-unused-parameter").run
    run.argtypes = (*[ctypes.c_void_p] * 4, ctypes.c_int)
    a, b = np.resize(np.array(list(product(VALUES, VALUES)), type), (128, 2)).T.copy()
    found = np.zeros(128, type)
    lanes = np.full((len(widths), 128), 77, type)
    run(numpy_address(a), numpy_address(b), numpy_address(found), numpy_address(lanes), 128)
    tested = [row for row in lanes if row[0] != 77]
    assert tested
    for row in tested:
        np.testing.assert_array_equal(row.view(np.uint8), found.view(np.uint8))


def test_register_tiles_are_finished_and_reduced_in_vectors() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-9, 9, shape).astype(np.float32) for shape in ((33, 65), (65, 48)))
    text = "def relu(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) C(m,n) = fmax(C(m,n), 0) }"
    kernel = tc.define(text).relu.compile(a, b, options=tc.CpuOptions(register_tile=(4, 32)))
    assert "= tc_lanes_fmax_float32x" in kernel.source
    assert "t_tile0_C[" not in kernel.source, "the tile goes through memory"
    np.testing.assert_array_equal(kernel(a, b), np.maximum(a @ b, 0))
    text = "def longest(float(M,K) A, float(K,N) B) -> (C) { C(m,n) max=! A(m,k) + B(k,n) }"
    kernel = tc.define(text).longest.compile(a, b, options=tc.CpuOptions(register_tile=(4, 32)))
    assert "= tc_lanes_max_float32x" in kernel.source
    np.testing.assert_array_equal(kernel(a, b), (a[:, :, None] + b).max(1))
    a[3, 7] = np.nan
    assert np.isnan(np.asarray(kernel(a, b))[3]).all()


@one_in(3)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("fabs(A1(l,m)) * A1(1,m)", lambda a: np.abs(a) * a[1]),
        ("fabs(A1(l,m)) + A1(1,1)", lambda a: np.abs(a) + a[1, 1]),
        ("fabs(A1(l,m)) * A1(1,l)", lambda a: np.abs(a) * a[1][:, None]),
        ("A1(1,l) - A1(l,m)", lambda a: a[1][:, None] - a),
        ("A1(l,m) - A1(1,1)", lambda a: a - a[1, 1]),
    ],
)
@pytest.mark.parametrize("unroll", [1, 16])
def test_statements_beside_a_tile_read_rows_and_lanes_that_are_not_theirs(
    value: str, expected: Callable[[Numbers], Numbers], unroll: int
) -> None:
    a, b = np.arange(-30, 34, dtype=np.float32).reshape(8, 8), np.arange(-5, 7, dtype=np.float32).reshape(4, 3)
    text = f"def f(float(M,N) A, float(I,J) B) -> (C) {{ A1(k,m) +=! A(k,m) * B(i,j) C(l,m) = {value} where l in 0:M }}"
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(), unroll=unroll), packed_operands=0)
    kernel = tc.define(text).f.compile(a, b, options=options)
    assert ("tc_float32x8 t_tile0_A1_0_0" in kernel.source) == (value == "fabs(A1(l,m)) * A1(1,m)" and unroll > 1)
    np.testing.assert_array_equal(kernel(a, b), expected(a * b.sum()))


@one_in(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type", every(2, ["float32", "float64"]))
@pytest.mark.parametrize("columns", every(2, [3, 5, 6, 11, 13, 22, 27]))
def test_numbers_that_ragged_rows_share_are_spread_once(type: str, columns: int, target: str) -> None:
    generator = np.random.default_rng(columns)
    a, b = (generator.integers(-9, 9, shape).astype(type) for shape in ((24, 33), (33, columns)))
    text = "def mm(T(M,K) A, T(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }".replace("T(", f"{type}(")
    kernel = tc.define(text).mm.compile(a, b, target=target, options=tc.CpuOptions(register_tile=(3, columns)))
    widths = set(re.findall(rf"tc_{type}x(\d+) t_tile0_C_", kernel.source))
    assert ("tc_spread_" in kernel.source) == (len(widths) > 1)
    np.testing.assert_array_equal(kernel(a, b), a @ b)


def test_whole_vectors_of_a_row_stay_inside_its_array() -> None:
    rows = tc.define(
        """
        def rows(int s) -> (C) {
            A(i) = s where i in 0:4
            B(i) = A(i) * fmax(s, 3)
            C(i) max=! A(i) * B(j)
            D(i) max=! C(i)
            C(i) = C(i) + D(i)
        }
        """
    )
    source = rows.compile(
        5,
        target="cpu:x86-64-v3" if platform.machine() == "x86_64" else "cpu",
        options=tc.CpuOptions(register_tile=(3,)),
    ).source
    sizes = {
        name: int(size) for name, size in re.findall(r"(t_\w+)\[(\d+)\] __attribute__\(\(aligned\(64\)\)\)", source)
    }
    loads = re.findall(r"tc_load_float64x(\d+)\(&(t_\w+)\[(\d+)\]\)", source)
    assert [name for _, name, _ in loads if name in sizes]
    for width, name, first in loads:
        if name in sizes:
            assert int(first) + int(width) <= sizes[name]


@one_in(5)
@pytest.mark.parametrize("unroll", [1, 8, 64])
@pytest.mark.parametrize("operator", ["+=!", "max=!"])
@pytest.mark.parametrize("range", ["0:i+1", "i:N", "i+1:N", "0:i"])
def test_lanes_without_instances_keep_what_they_have(range: str, operator: str, unroll: int) -> None:
    """Of an unrolled triangle, every copy has other lanes: it had changed all of a vector."""
    f = tc.define(f"def f(double(N) x) -> (y) {{ y(i) {operator} x(j) * 2 where i in 0:N, j in {range} }}").f
    x = np.random.default_rng(0).uniform(-1, 1, 8)
    options = tc.CpuOptions(tc.ScheduleOptions(unroll=unroll, scans=False))
    np.testing.assert_allclose(np.asarray(f(x, options=options)), f.reference(x), rtol=1e-12, atol=1e-12)


LEAKY = """
def f(float(M,K) A, float(K,N) B, float(M,N) R{more}) -> (Y) {{
    Y(m,n) +=! A(m,k) * B(k,n)
    Y(m,n) = {value}
}}"""


@pytest.mark.parametrize(
    ("more", "value", "in_vectors"),
    [
        ("", "Y(m,n) < 0 ? 0.01 * Y(m,n) : Y(m,n)", True),
        ("", "R(m,n) <= 0 ? 0.0 : Y(m,n)", True),
        ("", "R(m,n) != R(m,n) ? R(m,n) : Y(m,n)", True),
        ("", "Y(m,n) > 0 && R(m,n) > 0 ? Y(m,n) : 0.0", False),
        # What the condition guards is not read elsewhere.
        (", float(M,N) S", "R(m,n) > 0 ? S(m,n) : Y(m,n)", False),
    ],
)
def test_register_tiles_choose_in_vectors(more: str, value: str, in_vectors: bool) -> None:
    definition = tc.define(LEAKY.format(more=more, value=value)).f
    rng = np.random.default_rng(0)
    shapes = [(64, 48), (48, 64), (64, 64), (64, 64)][: 3 + bool(more)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    arrays[2][3, 5] = np.nan
    source = definition.compile(*arrays, target="cpu:x86-64-v4").source
    assert ("= tc_choose_" in source) == in_vectors
    expected = definition.oracle(*arrays)["Y"]
    found = np.asarray(definition(*arrays))
    nan = np.isnan(expected.values)
    np.testing.assert_array_equal(np.isnan(found), nan)
    assert (np.abs(found - expected.values)[~nan] <= expected.error[~nan]).all()
