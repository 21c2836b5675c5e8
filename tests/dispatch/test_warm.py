"""Calls that were made before take a short way, and only those: what it does must not differ from the thorough way."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import tc
import tc.dispatch.warm
from tc.dispatch.warm import call_key
from tests.arrays import array, whole
from tests.programs import run
from tests.short_way import only_the_short_way

DEFINITIONS = tc.define(
    """
    def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }
    def moments(float(M,N) X) -> (least, total) {
        total(i) +=! X(i,j)
        least(i) min=! X(i,j)
    }
    def pick(float(M,N) X, int32(K) I) -> (Y) { Y(k,j) = X(I(k),j) }
    def add(float(N) X) -> (y) { y(i) += X(i) }
    """
)
AFFINE, MOMENTS, PICK, ADD = (DEFINITIONS[name] for name in DEFINITIONS)
block = whole(7, 129)
tensor = torch.from_numpy(whole(7, 129))


def several(results: object) -> tuple[np.ndarray, ...]:
    assert isinstance(results, tuple)
    return tuple(map(array, results))


def expected(x: Any) -> np.ndarray:
    values: np.ndarray = 2 * np.asarray(x) + np.arange(x.shape[1], dtype=np.float32)
    return values


# --- keys -------------------------------------------------------------------------------------------------------------

ALIKE: list[tuple[Callable[[], object], Callable[[], object]]] = [
    (lambda: np.ones((3, 5)), lambda: np.zeros((3, 5))),
    (lambda: np.ones((5, 3)).T, lambda: np.ones((3, 5), order="F")),
    (lambda: torch.ones(3, 5), lambda: torch.zeros(3, 5)),
    (lambda: torch.ones(0, 5), lambda: torch.zeros(0, 5)),
    (lambda: np.ones(()), lambda: np.array(3.0)),
]
DIFFERENT: list[object] = [
    block,
    block.astype("f8"),
    block.astype(">f4"),
    block.astype("i4"),
    block.T,
    block[::-1],
    block[:, ::-1],
    block[:, ::2],
    block[:3],
    block.ravel(),
    block.reshape(7, 129, 1),
    np.broadcast_to(block[0], (7, 129)),
    tensor,
    tensor.double(),
    tensor.int(),
    tensor.bfloat16(),
    tensor.half(),
    tensor.to(torch.int16),
    tensor.T,
    tensor[:, ::2],
    tensor.ravel(),
    torch.ones((), dtype=torch.float32),
]


@pytest.mark.parametrize(("left", "right"), ALIKE, ids=map(str, range(len(ALIKE))))
def test_arrays_that_are_alike_have_one_key(left: Callable[[], object], right: Callable[[], object]) -> None:
    key = call_key((left(),), left())
    assert key is not None
    assert key == call_key((right(),), right()) == call_key((right(),), (right(),))


def test_keys_tell_calls_apart() -> None:
    calls: list[tuple[tuple[object, ...], object]] = [((array,), None) for array in DIFFERENT]
    x, y = np.ones(5), np.ones(5)
    calls += [((x, y), None), ((x,), y), ((x,), x), ((x, y), x), ((x, y), y), ((x,), (None,)), ((x,), (y, None))]
    calls += [((x,), (None, y)), ((), None), ((), (None,)), ((), (None, None)), ((), (x, y)), ((x, y), (None,))]
    keys = [call_key(*call) for call in calls]
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_an_output_that_is_several_arguments_is_the_first_one() -> None:
    x, y = np.ones(5), np.ones(5)
    assert call_key((x, x), x) == call_key((x, y), x) != call_key((y, x), x)
    # Another view of the same memory is no argument.
    assert call_key((x,), x[::-1]) == call_key((x,), y[::-1])
    assert call_key((np.ones((3, 3)),), None) != call_key((np.ones((3, 3)).T,), None)


class Subclass(torch.Tensor):
    """What a subclass does is unknown."""


UNUSUAL: list[Callable[[], object]] = [
    lambda: 1.0,
    lambda: [1.0],
    lambda: "text",
    lambda: np.float32(1),
    lambda: np.ones((3, 3)).view(np.matrix),
    lambda: np.zeros(17, "u1")[1:].view("f4"),
    lambda: tensor.as_subclass(Subclass),
    lambda: torch.ones(3, device="meta"),
    lambda: torch.eye(3).to_sparse(),
    lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    lambda: torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1, count=2),
]


@pytest.mark.parametrize("make", UNUSUAL, ids=map(str, range(len(UNUSUAL))))
def test_unusual_arguments_have_no_key(make: Callable[[], object]) -> None:
    assert call_key((block, make()), None) is None
    assert call_key((), make()) is None
    assert call_key((block,), (make(),)) is None
    # No error is left behind.
    assert call_key((block,), None) is not None


def test_very_many_arrays_or_dimensions_have_no_key() -> None:
    assert call_key((np.ones(1),) * 64, None) is not None
    assert call_key((np.ones(1),) * 65, None) is None
    assert call_key((np.ones(1),) * 60, (None,) * 4) is not None
    assert call_key((np.ones(1),) * 60, (None,) * 5) is None
    assert call_key((np.ones((1,) * 30),) * 8, None) is not None
    assert call_key((np.ones((1,) * 30),) * 9, None) is None


def test_a_tensor_whose_memory_was_freed_has_no_key() -> None:
    freed = torch.ones(5)
    freed.untyped_storage().resize_(0)
    assert call_key((freed,), None) is None


def test_outputs_must_be_writable() -> None:
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert call_key((frozen,), None) is not None
    assert call_key((), frozen) is None


def test_a_tensor_inside_of_a_function_transform_has_no_key() -> None:
    def inside(item: torch.Tensor) -> torch.Tensor:
        keys.append(call_key((item,), None))
        return item

    keys: list[bytes | None] = []
    torch.func.vmap(inside)(torch.ones(3, 2))
    torch.func.grad(lambda item: inside(item).sum())(torch.ones(3))
    assert keys == [None, None]


# --- calls ------------------------------------------------------------------------------------------------------------


def test_repeated_calls_take_the_short_way() -> None:
    for view in (block, block.T, block[::-1, ::2], tensor, tensor.T):
        out = torch.zeros(*view.shape) if isinstance(view, torch.Tensor) else np.zeros(view.shape, np.float32)
        first = AFFINE(view), AFFINE(view, out=out), AFFINE(view, out=(out,)), AFFINE(view, out=(None,))
        with only_the_short_way():
            for _ in range(3):
                fresh = AFFINE(view)
                assert type(fresh) is type(view)
                assert fresh is not out
                np.testing.assert_array_equal(array(fresh), expected(view))
                array(out)[...] = 0
                assert AFFINE(view, out=out) is out
                np.testing.assert_array_equal(array(out), expected(view))
                assert AFFINE(view, out=(out,)) is out
                np.testing.assert_array_equal(array(AFFINE(view, out=(None,))), expected(view))
        assert first[1] is out


@pytest.mark.parametrize("own", [{"options": tc.CpuOptions(threads=1)}, {"target": "cpu"}], ids=["options", "target"])
def test_calls_with_options_or_a_target_take_it_too(own: dict[str, Any]) -> None:
    twice = tc.define("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }").single()
    numbers = np.arange(5, dtype=np.float32)
    twice(numbers, **own)
    with only_the_short_way():
        np.testing.assert_array_equal(np.asarray(twice(numbers, **own)), 2 * numbers)
    with only_the_short_way(), pytest.raises(AssertionError):
        twice(numbers, options=tc.CpuOptions(threads=2))  # another kernel


@pytest.mark.parametrize("own", [{"options": {"threads": 1}}, {"options": [1]}, {"target": ["cpu"]}], ids=str)
def test_what_are_no_options_is_said(own: dict[str, Any]) -> None:
    with pytest.raises(tc.OptionsError, match=r"options must be tc.CpuOptions|target must be a name"):
        AFFINE(block, **own)


def test_kernels_take_it_too() -> None:
    kernel = MOMENTS.compile((7, 129))
    kernel(block)
    out = np.zeros(7, np.float32), torch.zeros(7)
    kernel(block, out=out)
    with only_the_short_way():
        fresh = several(kernel(block))
        assert kernel(block, out=out) == out
    np.testing.assert_array_equal(fresh[0], block.min(1))
    np.testing.assert_array_equal(fresh[1], block.sum(1))
    np.testing.assert_array_equal(out[0], block.min(1))
    np.testing.assert_array_equal(out[1], block.sum(1))
    with pytest.raises(tc.ArgumentError, match="is compiled for"):
        kernel(block.T)


def test_some_outputs_may_be_brought() -> None:
    total = np.zeros(7, np.float32)
    MOMENTS(block, out=(None, total))
    with only_the_short_way():
        results = several(MOMENTS(block, out=(None, total)))
    assert results[1] is total
    np.testing.assert_array_equal(total, block.sum(1))
    np.testing.assert_array_equal(results[0], block.min(1))


def test_an_output_that_is_read_before_it_is_written() -> None:
    x, y = whole(129), np.zeros(129, np.float32)
    ADD(x, out=y)
    with only_the_short_way():
        assert ADD(x, out=y) is y
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(tc.ArgumentError, match="pass its first value through out="):
        ADD(x)


def test_an_output_that_is_the_input() -> None:
    for kind in (np.asarray, torch.from_numpy):
        x = kind(whole(129, 5))
        apart = kind(np.zeros((129, 5), np.float32))
        values = expected(x)
        AFFINE(x, out=apart)
        AFFINE(x, out=x)
        with only_the_short_way():
            AFFINE(x, out=x)
            AFFINE(apart, out=apart)
        np.testing.assert_array_equal(x, expected(values))
        np.testing.assert_array_equal(apart, expected(values))


def test_outputs_that_overlap_are_looked_at_every_time() -> None:
    memory = np.zeros(4 * 129, np.float32)

    def part(begin: int, step: int = 1) -> np.ndarray:
        return memory[begin : begin + 129 * step : step].reshape(1, 129)

    memory[:129] = whole(129)
    AFFINE(part(0), out=part(129))
    for begin in (1, 64, 128):
        with pytest.raises(tc.ArgumentError, match="the output Y overlaps the input X"):
            AFFINE(part(0), out=part(begin))
    with only_the_short_way():
        AFFINE(part(0), out=part(129))
        AFFINE(part(129), out=part(0))
    # Interleaved, with no element in common: allowed, though the ranges of their bytes overlap.
    for _ in range(2):
        AFFINE(part(0, 2), out=part(1, 2))
    pair = np.zeros(2 * 7, np.float32)
    MOMENTS(block, out=(pair[:7], pair[7:]))
    with pytest.raises(tc.ArgumentError, match="the outputs least and total share memory"):
        MOMENTS(block, out=(pair[:7], pair[6:13]))
    with only_the_short_way():
        MOMENTS(block, out=(pair[7:], pair[:7]))
    np.testing.assert_array_equal(pair[:7], block.sum(1))


def test_outputs_with_strides_of_their_own() -> None:
    wide = np.zeros((129, 20), np.float32)
    AFFINE(block, out=wide[:, 7:14].T)
    wide[...] = 0
    with only_the_short_way():
        AFFINE(block, out=wide[:, 7:14].T)
    np.testing.assert_array_equal(wide[:, 7:14].T, expected(block))
    assert not wide[:, :7].any()
    assert not wide[:, 14:].any()
    for _ in range(2):
        with pytest.raises(tc.ArgumentError, match="several of its elements share one place"):
            AFFINE(block[:3, :3], out=as_strided(np.zeros(9, np.float32), (3, 3), (8, 4)))


def test_empty_arrays() -> None:
    for kind in (np.asarray, torch.from_numpy):
        x, y = kind(whole(0, 5)), kind(whole(0, 5))
        AFFINE(x, out=y)
        with only_the_short_way():
            assert AFFINE(x, out=y) is y


def test_faults_are_reported_and_nothing_is_returned() -> None:
    good, bad, out = np.array([0, 6], np.int32), np.array([0, 7], np.int32), np.zeros((2, 129), np.float32)
    PICK(block, good)
    PICK(block, good, out=out)
    with only_the_short_way():
        for _ in range(3):
            with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of X is outside of 0:7"):
                PICK(block, bad)
            with pytest.raises(tc.ArgumentError, match="the results are undefined"):
                PICK(block, bad, out=out)
            np.testing.assert_array_equal(array(PICK(block, good)), block[good])


def test_memory_that_is_not_there_is_reported() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tc.Kernel, "_allocator", lambda *_: lambda: np.zeros(3).view(np.matrix))
        definition = tc.define("def three(float(N) X) -> (Y) { Y(i) = 3 * X(i) }").three
        kernel = definition.compile((5,))
        plan = kernel.plan(definition._bind((np.ones(5, np.float32),), None))
    assert plan is not None
    calls = tc.dispatch.warm.WarmCalls()
    calls.remember((np.ones(5, np.float32),), None, plan)
    with pytest.raises(SystemError, match="a fresh array has no memory that can be written"):
        calls.call((np.ones(5, np.float32),), None)


def test_autograd_learns_of_writes() -> None:
    weight, other = torch.ones(7, 129, requires_grad=True), torch.zeros(7, 129)
    AFFINE(tensor, out=other)
    total = (weight * other).sum()
    with only_the_short_way():
        AFFINE(tensor, out=other)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(total, weight)


def test_threads_are_asked_for_in_every_call() -> None:
    seen: list[int] = []

    def one() -> int:
        seen.append(1)
        return 1

    count = tc.define("def count(float(N) X) -> (Y) { Y(i) = X(i) }").count
    x = whole(129)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tc.dispatch.kernel.get_threads", one)
        count(x)
        before = len(seen)
        with only_the_short_way():
            count(x)
            count(x)
    assert len(seen) == before + 2


def test_references_are_kept_in_balance() -> None:
    good, bad, out = np.array([0, 6], np.int32), np.array([0, 7], np.int32), np.zeros((2, 129), np.float32)
    tensors = torch.from_numpy(block), torch.from_numpy(good), torch.from_numpy(out)

    def work() -> None:
        PICK(block, good)
        PICK(block, good, out=out)
        PICK(block, good, out=(None,))
        PICK(*tensors[:2])
        PICK(*tensors[:2], out=tensors[2])
        assert call_key((block, 1.0), None) is None
        assert call_key((torch.eye(3).to_sparse(),), None) is None
        with pytest.raises(tc.ArgumentError):
            PICK(block, bad)
        with pytest.raises(tc.ArgumentError):
            PICK(block, bad, out=out)

    def references() -> list[int]:
        gc.collect()
        kept = (block, good, bad, out, *tensors, None, False, np.ndarray, torch.Tensor, np.float32)
        return [sys.getrefcount(thing) for thing in kept]

    for _ in range(10):
        work()
    before = references()
    for _ in range(500):
        work()
    # Other threads and caches may hold None and types now and then.
    assert all(abs(new - old) < 100 for old, new in zip(before, references(), strict=True))


def test_an_interpreter_without_a_lock_takes_the_thorough_way() -> None:
    program = """
import sys
sys._is_gil_enabled = lambda: False
import numpy as np
import tc
from tc.dispatch.kernel import Kernel
double = tc.define("def double(float(N) X) -> (Y) { Y(i) = X(i) + X(i) }")
calls, run = [], Kernel.run
Kernel.run = lambda *arguments: calls.append(1) or run(*arguments)
x = np.ones(7, np.float32)
print([double(x).tolist() == [2.0] * 7 for _ in range(3)], len(calls))
"""
    assert run(program) == "[True, True, True] 3\n"
