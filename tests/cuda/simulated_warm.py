"""Calls on CUDA that were made before, on the simulated driver; ``test_simulated.py`` names this file to pytest.

What the short way does must not differ from the thorough way.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.views.view import CudaMemory, Stream
from tests.cuda.simulated_support import GATHER, INVALID, MM, OUT_OF_MEMORY, STEPS, define, floats, on
from tests.cuda.simulator import Simulator
from tests.cuda.tensors import Tensor, on_gpu, over, tensors_on_gpus
from tests.short_way import only_the_short_way, the_thorough_way

AFFINE = "def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }"


@pytest.fixture
def stream() -> Iterator[list[int]]:
    """PyTorch has GPUs; its current stream."""
    with tensors_on_gpus() as current:
        yield current


def values(result: Any) -> np.ndarray:
    tc.synchronize()
    found: np.ndarray = result if isinstance(result, np.ndarray) else result.numpy()
    return found.copy()


def expected(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = 2 * x + np.arange(x.shape[1], dtype=np.float32)
    return found


def launches(gpu: Simulator) -> list[str]:
    """The kernels that were started since the last time: on which device and stream."""
    return [line.split(" on ")[1].partition(",")[0] for line in gpu.log() if line.startswith("cuLaunchKernel")]


MAKERS: dict[str, Callable[[np.ndarray], Any]] = {"own": lambda array: on(0, array)[0], "torch": on_gpu}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_repeated_calls_take_the_short_way(
    gpu: Simulator, stream: list[int], make: Callable[[np.ndarray], Any]
) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    x, out = make(host), make(np.zeros((7, 33), np.float32))
    definition(x)
    for given in (out, (out,), (None,)):
        definition(x, out=given)
    x, out = make(host + 1), make(np.zeros((7, 33), np.float32))
    with only_the_short_way():
        fresh = definition(x), definition(x, out=(None,))
        assert definition(x, out=out) is out
        assert definition(x, out=(out,)) is out
    for result in (*fresh, out):
        assert type(result) is type(x)
        assert np.array_equal(values(result), expected(host + 1))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_kernels_with_temporaries_and_several_results(
    gpu: Simulator, stream: list[int], make: Callable[[np.ndarray], Any]
) -> None:
    definition, host = define(STEPS), [floats(21, 34), floats(34)]
    kernel = gpu.compile(definition, *host, options=tc.GpuOptions(register_accumulators=0, shared_memory=0))
    assert kernel.executable.convention.temporaries
    given, part = [make(array) for array in host], make(np.zeros_like(host[0]))
    for out in (None, (None, part)):
        kernel(*given, out=out)
    with only_the_short_way():
        fresh: Any = kernel(*given)
        mixed: Any = kernel(*given, out=(None, part))
    assert mixed[1] is part
    for results in (fresh, mixed):
        for result, right in zip(results, definition.reference(*host), strict=True):
            assert np.allclose(values(result), right, rtol=1e-5, atol=1e-5)


def test_one_plan_serves_one_value_of_an_open_size(gpu: Simulator) -> None:
    definition, b = define(MM), floats(9, 33)
    gpu.compile(definition, (tc.dynamic(70), 9), (9, 33))
    given = {size: on(0, floats(size, 9), b) for size in (1, 33, 70)}
    for arrays in given.values():
        definition(*arrays)
    with only_the_short_way():
        found = {size: definition(*arrays) for size, arrays in given.items()}
    for size, result in found.items():
        assert np.allclose(values(result), values(given[size][0]) @ b, atol=1e-4)


def test_host_and_device_are_served_by_one_definition(gpu: Simulator) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    (x,) = on(0, host)
    for given in (x, host, torch.from_numpy(host)):
        definition(given)
    with only_the_short_way():
        for given in (host, x, torch.from_numpy(host)):
            assert np.array_equal(values(definition(given)), expected(host))


def test_other_arrays_are_noticed(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(8, 8)
    gpu.compile(definition, host)
    gpu.compile(definition, host.T)
    gpu.compile(definition, host[:5])
    x, out = on_gpu(host), on_gpu(host)
    definition(x)
    definition(x, out=out)
    others = x.T.as_subclass(Tensor), x[:5].as_subclass(Tensor)
    for other, right in zip(others, (host.T, host[:5]), strict=True):
        with the_thorough_way():
            found = definition(other)
        assert np.array_equal(values(found), expected(right))
    definition(*on(0, host))
    for double in (on_gpu(host.astype(np.float64)), *on(0, host.astype(np.float64))):
        with pytest.raises(tc.ArgumentError, match="argument X of affine: expected element type float32, got float64"):
            definition(double)
    with pytest.raises(tc.ArgumentError, match="output Y of affine: expected element type float32, got int32"):
        definition(x, out=on_gpu(host.astype(np.int32)))
    with pytest.raises(tc.ArgumentError, match=r"output Y of affine: expected shape \(8, 8\), got \(5, 8\)"):
        definition(x, out=on_gpu(host[:5]))
    with pytest.raises(tc.ArgumentError, match=r"affine takes 1 argument \(X\), got 2"):
        definition(x, out)
    on_host = torch.from_numpy(host).as_subclass(Tensor)
    on_host.device, on_host.is_cuda = torch.device("cpu"), False
    assert definition._warm.call((on_host,), out) is None
    for wrong in (1.0, "text", host):
        with pytest.raises(tc.TCError):
            definition(x, out=wrong)


def test_tensors_that_are_refused_are_refused_again(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(8, 8)
    gpu.compile(definition, host)
    x, out = on_gpu(host), on_gpu(host)
    definition(x, out=out)
    with pytest.raises(tc.ArgumentError, match="requires a gradient"):
        definition(on_gpu(host).requires_grad_(), out=out)
    negated = torch._neg_view(x).as_subclass(Tensor)
    with pytest.raises(tc.ArgumentError, match=r"memory holds its negation; pass \.resolve_neg\(\)"):
        definition(negated, out=out)
    with pytest.raises(tc.ArgumentError, match=r"argument X of affine: .* which is not aligned to 4 bytes"):
        definition(over(on(0, floats(65))[0], (8, 8), offset=2), out=out)
    with warnings.catch_warnings(action="ignore"):  # PyTorch's plans for nested tensors
        nested = torch.nested.nested_tensor([host, host]).as_subclass(Tensor)
    with pytest.raises(tc.ArgumentError, match="a nested tensor has no dense elements"):
        definition(nested, out=out)
    freed = torch.ones(8, 8).as_subclass(Tensor)
    freed.untyped_storage().resize_(0)
    with pytest.raises(tc.ArgumentError, match="argument X of affine: the array has no memory of its own"):
        definition(freed, out=out)


def test_outputs_that_overlap_are_looked_at_every_time(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(4, 8)
    gpu.compile(definition, host)
    memory = on_gpu(np.concatenate([host, host, host]))

    def part(begin: int) -> Any:
        return memory[begin : begin + 4].as_subclass(Tensor)

    definition(part(0), out=part(4))
    with only_the_short_way():
        definition(part(0), out=part(8))
    for begin in (1, 3):
        with pytest.raises(tc.ArgumentError, match="the output Y overlaps the input X"):
            definition(part(0), out=part(begin))
    assert np.array_equal(values(part(0)), host)
    # The input itself may be the output, of a kernel for such calls.
    x = part(0)
    gpu.compile_in_place(definition, host)
    with the_thorough_way():
        definition(x, out=x)
    with only_the_short_way():
        definition(part(0), out=part(0))
        definition(part(4), out=part(8))
    assert np.array_equal(values(part(0)), expected(expected(host)))
    assert np.array_equal(values(part(8)), expected(values(part(4))))


def test_one_memory_in_arrays_of_two_kinds_has_no_plan(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(4, 8)
    gpu.compile(definition, host)
    gpu.compile_in_place(definition, host)
    (x,) = on(0, host)
    same, apart = over(x, (4, 8)), on_gpu(host)
    for out in (same, apart, same):
        with the_thorough_way():
            definition(x, out=out)
    assert np.array_equal(values(x), expected(expected(host)))
    assert np.array_equal(values(apart), expected(expected(host)))


def test_other_devices_are_noticed(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    gpu.compile(definition, host, target="cuda:sm_80")
    for make in (lambda device: on(device, host)[0], lambda device: on_gpu(host, device)):
        first, second = make(0), make(1)
        definition(first, out=make(0))
        with the_thorough_way():
            definition(second, out=make(1))
        gpu.log()
        with only_the_short_way():
            definition(second, out=make(1))
            definition(first, out=make(0))
        assert launches(gpu) == ["1:0", "0:0"]
        with pytest.raises(tc.DeviceError, match="output Y of affine: the array is on cuda:1, argument X of affine on"):
            definition(first, out=make(1))


def test_calls_run_on_the_streams_of_now(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    x, out = on_gpu(host), on_gpu(host)
    definition(x, out=out)
    gpu.log()
    with only_the_short_way():
        for stream[0] in (0, 0xABC, 0xDEF, 0):
            definition(x, out=out)
    assert launches(gpu) == ["0:0", "0:abc", "0:def", "0:0"]
    given, other = (DeviceArray((7, 33), tc.ScalarType.FLOAT32, CudaMemory(0, Stream(n))) for n in (0x777, 0x888))
    definition(given)
    definition(given, out=other)
    gpu.log()
    with only_the_short_way():
        definition(given)
    assert launches(gpu) == ["0:777"]
    with the_thorough_way():  # one of them must wait for the other
        definition(given, out=other)
    assert sum("cuStreamWaitEvent" in line for line in gpu.log()) == 2


def test_the_caller_may_choose_the_stream(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    x, out = on_gpu(host), on_gpu(host)
    definition(x)
    definition(x, out=out)
    stream[0] = 0x111
    gpu.log()
    with only_the_short_way(), tc.on_stream(0x111):
        definition(x, out=out)
    assert not [line for line in gpu.log() if "Event" in line]
    given = on(0, host)
    definition(*given)
    gpu.hold(hold=True)
    with only_the_short_way(), tc.on_stream(0x222):
        definition(*given, out=None)
    lines = gpu.log()
    assert any("on 0:222," in line for line in lines if line.startswith("cuLaunchKernel"))
    assert any(line.endswith(" on 222") for line in lines if line.startswith("cuMemAllocFromPoolAsync"))
    # The array is ready on another stream, which may give it back before that of the call has got there.
    kept = weakref.ref(given.pop())
    gc.collect()
    assert kept() is not None
    gpu.hold(hold=False)
    IN_FLIGHT.purge()
    assert kept() is None


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_arrays_are_let_go_of(gpu: Simulator, stream: list[int], make: Callable[[np.ndarray], Any]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    stream[0] = 0x111
    with tc.on_stream(0x111):
        arrays = [make(host), make(host)]
        arrays.append(definition(arrays[0]))
        IN_FLIGHT.purge()
        with only_the_short_way():
            arrays.append(definition(arrays[1]))
    kept = [weakref.ref(array) for array in arrays]
    arrays.clear()
    IN_FLIGHT.purge()
    assert [array() for array in kept] == [None] * len(kept)


def test_bad_indices_are_reported(gpu: Simulator) -> None:
    definition, table = define(GATHER), floats(9, 5)
    good, bad = np.arange(3, dtype=np.int32), np.full(3, 9, np.int32)
    gpu.compile(definition, table, good)
    right, wrong = on(0, table, good), on(0, table, bad)
    definition(*right)
    message = "pick: an index into dimension 0 of T is outside of 0:9"
    with only_the_short_way():
        definition(*wrong)
        with pytest.raises(tc.ArgumentError, match=message):
            tc.synchronize()
        definition(*wrong)
        with pytest.raises(tc.ArgumentError, match=message):
            definition(*right)
        assert np.array_equal(values(definition(*right)), table[good])


def test_what_the_driver_refuses_is_told(gpu: Simulator) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    (x,) = on(0, host)
    definition(x)
    with only_the_short_way():
        gpu.fail("cuLaunchKernel", INVALID)
        with pytest.raises(tc.DeviceError, match=r"^CUDA refused to run tc_kernel_0 \(grid .*invalid argument$"):
            definition(x)
        gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
        with pytest.raises(MemoryError, match="the CUDA device has no 924 bytes left"):
            definition(x)
        assert np.array_equal(values(definition(x)), expected(host))


def test_repeated_calls_ask_and_wait_for_nothing(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    x, out = on_gpu(host), on_gpu(host)
    definition(x, out=out)
    gpu.log()
    gpu.capture(0x5)
    stream[0] = 0x5
    with only_the_short_way():
        definition(x, out=out)
    gpu.capture(0)
    (line,) = gpu.log()
    assert line.startswith("cuLaunchKernel tc_kernel_0 on 0:5,")


def test_autograd_learns_of_writes(gpu: Simulator, stream: list[int]) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    x, out = on_gpu(host), on_gpu(host)
    definition(x, out=out)
    before = out._version, x._version
    with only_the_short_way():
        definition(x, out=out)
    assert (out._version, x._version) == (before[0] + 1, before[1])


def test_threads_may_call_at_once(gpu: Simulator) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    definition(*on(0, host))
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        (x,) = on(0, host + number)
        barrier.wait()
        for _ in range(20):
            assert np.array_equal(values(definition(x)), expected(host + number))

    with only_the_short_way(), ThreadPoolExecutor(8) as executor:
        list(executor.map(work, range(8)))


def test_calls_without_arrays_or_with_scalars_have_no_plan(gpu: Simulator) -> None:
    definition = define("def f(float(N) A, float s) -> (B) { B(n) = s * A(n) }")
    host = floats(9)
    gpu.compile(definition, host, 3.0)
    (x,) = on(0, host)
    for factor in (3.0, 4.0):
        with the_thorough_way():
            assert np.array_equal(values(definition(x, factor)), host * np.float32(factor))
    definition = define("def f() -> (B) { B(n) = 2.0 where n in 0:9 }")
    kernel = gpu.compile(definition)
    for _ in range(2):
        with the_thorough_way():
            assert np.array_equal(values(kernel()), np.full(9, 2.0))


def test_another_winner_is_run(gpu: Simulator) -> None:
    definition, host = define(AFFINE), floats(7, 33)
    gpu.compile(definition, host)
    (x,) = on(0, host)
    definition(x)
    definition._warm.forget()
    with the_thorough_way():
        definition(x)
    with only_the_short_way():
        definition(x)


def test_arrays_of_cupy(gpu: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for CuPy: arrays over those of ours."""

    class Array:
        def __init__(self, base: DeviceArray) -> None:
            self.base, self.shape, self.strides, self.dtype = base, base.shape, (4 * base.shape[1], 4), base.dtype
            self.device, self.data = SimpleNamespace(id=base.memory.device), SimpleNamespace(ptr=base.address)
            self.__cuda_array_interface__ = base.__cuda_array_interface__

    current = SimpleNamespace(ptr=0)
    cupy = ModuleType("cupy")
    cupy.__dict__.update(ndarray=Array, cuda=SimpleNamespace(get_current_stream=lambda device: current))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.delitem(sys.modules, "tc.runtime.frameworks.cupy_arrays", raising=False)
    definition, host = define(AFFINE), floats(8, 8)
    gpu.compile(definition, host)
    x, out = map(Array, on(0, host, host))
    definition(x, out=out)
    monkeypatch.delitem(sys.modules, "tc.runtime.frameworks.cupy_arrays")
    gpu.log()
    with only_the_short_way():
        for current.ptr in (0, 1, 0xABC):
            assert definition(x, out=out) is out
    assert launches(gpu) == ["0:0", "0:0", "0:abc"]
    assert np.array_equal(values(out.base), expected(host))
    for name, other in (
        ("strides", (4, 32)),
        ("shape", (4, 8)),
        ("device", SimpleNamespace(id=1)),
        ("dtype", np.int32),
    ):
        different = Array(x.base)
        setattr(different, name, other)
        assert definition._warm.call((different,), out) is None
