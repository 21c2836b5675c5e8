"""The corpus on OpenCL, where there is a device; PoCL makes one of every processor."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.opencl.opencl import compile_opencl, opencl_device
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import OPTIONS, check
from tests.opencl import missing
from tests.turns import every_row, one_in

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

# OpenCL has no Bessel functions.
LACKING = {"functions"}
# PoCL takes seconds for a kernel of tiles.
SOME = [case for number, case in enumerate(CASES) if number % 34 == 0 and case.name not in LACKING]


@one_in(2)
@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_some_of_the_corpus_agrees_with_the_oracle(case: Case) -> None:
    options = tuple(OPTIONS.values())
    check(case, case.large_ragged_sizes, options[CASES.index(case) % len(options)], "opencl")


# PoCL 3.0 was wrong on these: threads that hand each other something behind restricted pointers, and what a thread
# keeps in loops around barriers that ask whether they have a first iteration.
ONCE_WRONG = (
    ("softmax_reusing_a_name_that_comes_in", "nothing promoted"),
    ("three_perceptrons", "runs of points, few blocks"),
    ("block_diagonal_permuted", "runs of points, few blocks"),
    ("softmax_reusing_a_name", "runs of points, few blocks"),
    ("causal_attention", "several points"),
)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("case", [case for case in CASES if case.name not in LACKING], ids=lambda case: case.name)
def test_all_combinations_agree(case: Case, options: str) -> None:
    check(case, case.large_ragged_sizes, OPTIONS[options], "opencl")


@pytest.mark.parametrize(("name", "options"), every_row(3, ONCE_WRONG))
def test_what_was_wrong_once_is_right(name: str, options: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    check(case, case.large_ragged_sizes, OPTIONS[options], "opencl")


def test_arrays_are_used_where_they_are() -> None:
    shift = tc.define("def shift(float(M,N) X, float a, int32 b, bool c) -> (Y) { Y(n,m) = a * X(m,n) + b + float(c) }")
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for view in (x, x[::-1], x[:, ::-1], x[::2], np.broadcast_to(x[:1], (5, 7)), np.asfortranarray(x)):
        found = np.asarray(shift(view, 2.0, 3, True, target="opencl"))
        np.testing.assert_array_equal(found, 2 * view.T + 4)
    out = np.zeros((14, 10))
    shift(x, 1.0, 0, False, out=out[::-2, ::2], target="opencl")
    np.testing.assert_array_equal(out[::-2, ::2], x.T)
    assert not out[::2].any()
    assert not out[:, 1::2].any()


def test_no_elements_at_all() -> None:
    sums = tc.define("def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }")
    np.testing.assert_array_equal(np.asarray(sums(np.ones((3, 0), np.float32), target="opencl")), np.zeros(3))
    assert np.asarray(sums(np.ones((0, 3), np.float32), target="opencl")).shape == (0,)


def test_an_index_out_of_range_is_reported() -> None:
    pick = tc.define("def pick(float(N) X, int32(K) I) -> (O) { O(k) = X(I(k)) }").pick
    with pytest.raises(tc.ArgumentError, match="index"):
        pick(np.ones(8, np.float32), np.array([0, 8], np.int32), target="opencl")


def test_remainders_are_those_of_the_device() -> None:
    f = tc.define("def f(float(N) x, float(N) y) -> (z) { z(i) = fmod(x(i), y(i)) + x(i) % y(i) }").single()
    x, y = np.linspace(-9, 9, 41).astype(np.float32), np.linspace(0.5, 3, 41).astype(np.float32)
    np.testing.assert_array_equal(f(x, y, target="opencl"), 2 * np.fmod(x, y))


def test_what_the_compiler_refuses_is_shown() -> None:
    with pytest.raises(tc.CompileError) as info:
        compile_opencl("no code")
    refused, kept, options, *log = str(info.value).splitlines()
    assert re.match(r"the OpenCL compiler of '.*' refused the generated source$", refused)
    assert kept.endswith("kernel.cl")
    assert options.startswith("options: -cl-std=CL1.2")
    assert log


def test_what_the_device_has_no_room_for_is_said_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    device, tiles = opencl_device(), tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 8)), block=(8, 8))
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    for small, complaint in (
        (replace(device, threads=32), "a block of tc_kernel_0 has 64 threads, '.+' allows 32; say how many with "),
        (replace(device, shared=256), r"a block of tc_kernel_0 needs \d+ bytes of shared memory, '.+' has 256; use "),
    ):
        monkeypatch.setattr("tc.compiler.opencl_device", lambda small=small: small)
        with pytest.raises(tc.OptionsError, match=complaint):
            mm.compile((32, 32), (32, 32), target="opencl", options=tiles)


def test_the_device_is_named() -> None:
    assert tc.targets()["opencl"] == f"available: {opencl_device().name}"


def test_functions_and_conversions_use_no_word_of_the_language() -> None:
    """``half`` is a type there."""
    f = tc.define("def f(half(N) x, float(N) z) -> (y, w) { y(i) = x(i) * 3  w(i) = sinpi(z(i)) + cospi(z(i)) }").f
    z = np.linspace(-2, 2, 37, dtype=np.float32)
    x = z.astype(np.float16)
    results = f(x, z, target="opencl")
    assert isinstance(results, tuple)
    for mine, theirs in zip(f.oracle(x, z).values(), results, strict=True):
        assert compare(mine, theirs).ok


def test_functions_that_opencl_lacks_are_named() -> None:
    definition = tc.define("def f(float(N) x) -> (y) { y(i) = j0(x(i)) + y1(x(i)) }").f
    with pytest.raises(tc.CompileError, match=r"^f: OpenCL C has no j0 and no y1; choose another target$"):
        definition.compile((7,), target="opencl")
