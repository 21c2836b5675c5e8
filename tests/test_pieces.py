"""Operands are copied to shared memory in pieces of up to 16 bytes, dealt out to all threads of a block."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.fault_report import report_fault
from tc.base.faults import MISALIGNED
from tc.reference.compare import compare
from tests.turns import one_in

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
TILED = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 32, 16)), block=(16, 8), stages=1)


def pieces(source: str) -> list[int]:
    """The bytes of each statement that copies several elements."""
    return [int(bytes) for bytes in re.findall(r"tc_copy_piece<aligned, \w+, (\d+)>\(&t_shared", source)]


def source(m: int, k: int, n: int, options: tc.GpuOptions = TILED, definition: tc.Comprehension = MM) -> str:
    return definition.compile((m, k), (k, n), target="cuda:sm_90", options=options).source


@one_in(2)
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((64, 64, 64), [16, 16]),
        ((100, 68, 36), [16, 16]),  # ragged tiles, whole pieces
        ((64, 70, 64), [8, 16]),  # rows of A begin at multiples of 8 bytes
        ((64, 64, 71), [16]),
        ((64, 63, 63), []),
    ],
)
def test_pieces_are_as_long_as_rows_allow(sizes: tuple[int, int, int], expected: list[int]) -> None:
    pytest.importorskip("cuda.bindings")
    assert pieces(source(*sizes)) == expected


def test_padding_and_tiles_that_end_between_pieces_are_copied_one_by_one() -> None:
    pytest.importorskip("cuda.bindings")
    padded = tc.GpuOptions(TILED.schedule, block=TILED.block, padding=1, stages=1)
    assert pieces(source(64, 64, 64, padded)) == []
    uneven = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 30, 10)), block=(15, 8), stages=1)
    assert pieces(source(64, 64, 64, uneven)) == [8, 8]


def test_pieces_of_other_types() -> None:
    pytest.importorskip("cuda.bindings")
    for type, expected in (("double", [16, 16]), ("half", [16, 16]), ("uint8", [16, 16]), ("int64", [16, 16])):
        definition = tc.define(f"def mm({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(m,n) +=! A(m,k) * B(k,n) }}").mm
        assert pieces(source(64, 64, 64, definition=definition)) == expected, type


@pytest.mark.parametrize(
    ("type", "sizes", "expected"),
    [
        ("half", (64, 68, 66), [8, 4]),
        ("half", (64, 65, 64), [16]),
        ("int8", (64, 64, 68), [16, 4]),
        ("int8", (64, 66, 66), []),  # two bytes are no access of their own
    ],
)
def test_pieces_of_small_types_have_four_bytes_at_least(
    type: str, sizes: tuple[int, int, int], expected: list[int]
) -> None:
    pytest.importorskip("cuda.bindings")
    definition = tc.define(f"def mm({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(m,n) +=! A(m,k) * B(k,n) }}").mm
    assert pieces(source(*sizes, definition=definition)) == expected


@one_in(2)
@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize(("type", "stages"), [(np.float16, 1), (np.float16, 3), (np.int8, 3)])
def test_small_types_may_begin_anywhere(type: type[np.generic], stages: int, shift: int) -> None:
    """Copied in pieces, asynchronously or not, or element by element: numbers keep their values."""
    text, m, k, n = "int8" if type is np.int8 else "half", 33, 68, 36
    mm = tc.define(f"def mm({text}(M,K) A, {text}(K,N) B) -> (C) {{ C(m,n) +=! float(A(m,k)) * float(B(k,n)) }}").mm
    random = np.random.default_rng(shift)

    def moved(rows: int, columns: int) -> np.ndarray[Any, Any]:
        memory = random.integers(-100, 100, rows * columns + shift + 16).astype(type)
        begin = -(memory.ctypes.data // memory.itemsize) % (16 // memory.itemsize) + shift
        return memory[begin : begin + rows * columns].reshape(rows, columns)

    a, b = moved(m, k), moved(k, n)
    found = mm(a, b, target="emulator", options=replace(TILED, stages=stages))
    assert compare(mm.oracle(a, b)["C"], np.asarray(found)).ok


def test_halves_that_are_copied_are_not_converted() -> None:
    pytest.importorskip("cuda.bindings")
    definition = tc.define("def mm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }").mm
    text = source(64, 65, 65, definition=definition)
    assert "= t_A[" in text
    assert "tc_float16_from_float32" not in text


def test_the_compiler_makes_single_accesses_of_them() -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    text = source(256, 256, 256)
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    flags = [b"--gpu-architecture=compute_90", b"-default-device", b"--std=c++20"]
    assert int(nvrtc.nvrtcCompileProgram(program, len(flags), flags)[0]) == 0
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = bytes(size)
    nvrtc.nvrtcGetPTX(program, ptx)
    assert ptx.count(b"st.shared.v4") == 2
    assert len(re.findall(rb"ld\.global(\.nc)?\.v4", ptx)) == 2


@one_in(2)
@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 68, 36), (70, 34, 66)])
def test_tensors_may_begin_anywhere(sizes: tuple[int, int, int], shift: int) -> None:
    m, k, n = sizes
    random = np.random.default_rng(m)

    def moved(rows: int, columns: int) -> np.ndarray[Any, Any]:
        memory = random.standard_normal(rows * columns + shift + 16, np.float32)
        begin = -(memory.ctypes.data // 4) % 4 + shift
        return memory[begin : begin + rows * columns].reshape(rows, columns)

    a, b = moved(m, k), moved(k, n)
    found = MM(a, b, target="emulator", options=TILED)
    assert compare(MM.oracle(a, b)["C"], np.asarray(found)).ok


def test_all_threads_copy() -> None:
    """Rows of 16 elements are 4 pieces, and a block has 128 threads: each of them copies one piece of 32 rows."""
    pytest.importorskip("cuda.bindings")
    copies, _, _ = source(64, 64, 64).partition("__syncthreads();")
    inside = copies.rpartition("// S0_pack1")[2]
    assert pieces(inside) == [16, 16]
    assert "for (" not in inside


def test_accesses_that_are_not_aligned_are_mistakes_of_ours() -> None:
    convention = MM.compile((4, 4), (4, 4), target="emulator").executable.convention
    with pytest.raises(tc.DeviceError, match="mm: an access to several elements is not aligned; the compiler made a"):
        report_fault(convention, MISALIGNED)
