"""Copies past the caches write what they are told to and nothing else, wherever it begins and ends."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.codegen.text.numerics import prelude
from tc.runtime.frameworks.numpy_arrays import numpy_address, numpy_dtype
from tc.targets.target import parse_cpu_target
from tests.arrays import Array
from tests.codegen.harness import compile_c
from tests.levels import runs
from tests.turns import one_in

_ENTRY = """
void copy(void *to, const void *from, int64_t count, int64_t size) {
  tc_stream(to, from, count, size);
  tc_stream_end();
}
void fill(void *to, int64_t count, int64_t size) {
  tc_fill(to, count, size);
  tc_stream_end();
}
"""
_TEXT = f"#include <stdint.h>\n{prelude({'tc_stream', 'tc_fill', 'tc_stream_end'})}\n{_ENTRY}"
TARGETS = ("cpu:x86-64", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:armv8-a")
RUNNABLE = [name for name in TARGETS if runs(name)]


@pytest.mark.parametrize("name", RUNNABLE)
def test_bytes_are_copied_from_and_to_any_place(name: str) -> None:
    copy = compile_c(_TEXT, *parse_cpu_target(name).flags).copy
    copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    source = np.arange(1 << 10, dtype=np.uint16).astype(np.uint8)
    target = np.empty(1 << 10, np.uint8)
    for begin in (0, 1, 15, 16, 33, 63):
        to = -numpy_address(target) % 64 + 64 + begin
        for start in (0, 5, 64):
            for count in (-3, 0, 1, 30, 63, 64, 65, 127, 128, 129, 191, 192, 193, 500):
                target[:] = 77
                expected = target.copy()
                if count > 0:
                    expected[to : to + count] = source[start : start + count]
                copy(numpy_address(target) + to, numpy_address(source) + start, count, 1)
                np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_an_element_is_copied_to_those_behind_it(name: str, size: int) -> None:
    fill = compile_c(_TEXT, *parse_cpu_target(name).flags).fill
    fill.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    target = np.empty(1 << 10, np.uint8)
    for begin in (0, 1, 8, 16, 32, 56, 63):
        to = -numpy_address(target) % 64 + 64 + begin
        for count in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65):
            target[:] = 77
            target[to : to + size] = range(1, size + 1)
            expected = target.copy()
            expected[to : to + count * size] = np.tile(np.arange(1, size + 1, dtype=np.uint8), count)
            fill(numpy_address(target) + to, count, size)
            np.testing.assert_array_equal(target, expected)


def test_the_plainest_target_streams_too() -> None:
    copy = compile_c(_TEXT).copy
    copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    source, target = np.arange(33.0), np.zeros(33)
    copy(numpy_address(target), numpy_address(source), 33, 8)
    np.testing.assert_array_equal(target, source)


COPY = "def copy({type}(N,M) X) -> (O) {{ O(i,j) = X(i,j) }}"
STREAMED = tc.CpuOptions(nontemporal_stores=1)


@one_in(3)
@pytest.mark.parametrize("type", ScalarType, ids=str)
def test_elements_of_every_type_are_streamed(type: ScalarType) -> None:
    definition = tc.define(COPY.format(type=type)).copy
    x = np.random.default_rng(0).integers(0, 2, (37, 1031)).astype(numpy_dtype(type))
    kernel = definition.compile(x, options=STREAMED)
    assert "tc_stream(&t_O[" in kernel.source
    np.testing.assert_array_equal(kernel(x), x)


def offset(shape: tuple[int, ...], elements: int) -> Array:
    """An array that begins so many elements after a line of the cache."""
    memory = np.zeros(int(np.prod(shape)) + 64, np.float32)
    start = -numpy_address(memory) % 64 // 4 + elements
    return memory[start : start + int(np.prod(shape))].reshape(shape)


@one_in(3)
@pytest.mark.parametrize("elements", [0, 1, 15])
@pytest.mark.parametrize("shape", [(3, 64), (5, 2049), (64, 4096), (129, 65)])
def test_results_may_begin_anywhere(shape: tuple[int, int], elements: int) -> None:
    definition = tc.define(COPY.format(type="float")).copy
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    out = offset(shape, elements)
    assert definition(x, out=out, options=STREAMED) is out
    np.testing.assert_array_equal(out, x)


def test_rows_with_room_between_them_and_outputs_that_are_inputs() -> None:
    definition = tc.define("def twice(float(N,M) X) -> (O) { O(i,j) = 2 * X(i,j) }").twice
    x = np.random.default_rng(2).standard_normal((70, 300)).astype(np.float32)
    wide = np.full((70, 310), 7, np.float32)
    definition(x, out=wide[:, 5:305], options=STREAMED)
    np.testing.assert_array_equal(wide[:, 5:305], 2 * x)
    assert (wide[:, :5] == 7).all()
    assert (wide[:, 305:] == 7).all()
    own = x.copy()
    definition(own, out=own, options=STREAMED)
    np.testing.assert_array_equal(own, 2 * x)
