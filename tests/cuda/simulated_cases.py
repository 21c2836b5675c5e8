"""Calls on CUDA with a driver that is not there (``simulator.py``); ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.frameworks.arrays import describe
from tc.runtime.frameworks.cuda_interface import describe_cuda_interface
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.dlpack import describe_dlpack
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory, Stream
from tests.cuda.simulator import Simulator
from tests.turns import one_in

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
GATHER = "def pick(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }"
STEPS = """def steps(float(N,K) A, float(K) s) -> (B, C) {
    B(n,k) = A(n,k) * s(k)
    total(k) +=! B(n,k)
    C(n,k) = total(k) - B(n,k)
}"""
INVALID, OUT_OF_MEMORY, INVALID_IMAGE, ILLEGAL_ADDRESS = 1, 2, 200, 700
random = np.random.default_rng(20261122)


def on(device: int, *arrays: np.ndarray) -> list[DeviceArray]:
    return [tc.to_device(array, device) for array in arrays]


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


def define(text: str) -> tc.Comprehension:
    return tc.define(text).single()


def results(found: object) -> list[np.ndarray]:
    values = found if isinstance(found, tuple) else (found,)
    assert all(isinstance(value, DeviceArray) for value in values)
    return [value.numpy() for value in values if isinstance(value, DeviceArray)]


def check(definition: tc.Comprehension, arguments: list[Any], found: object) -> None:
    """The result is what the oracle says for the same arguments, which it reads from the device."""
    oracle = definition.oracle(*arguments)
    for (name, expected), values in zip(oracle.items(), results(found), strict=True):
        assert compare(expected, values).ok, name


class Interface:
    """An array of some framework: elements of a device array, with strides and a stream of its own."""

    def __init__(self, base: DeviceArray, window: np.ndarray, origin: np.ndarray, stream: int | None = None) -> None:
        self.base = base
        offset = window.__array_interface__["data"][0] - origin.__array_interface__["data"][0]
        self.__cuda_array_interface__: dict[str, object] = {
            "version": 3,
            "shape": window.shape,
            "strides": window.strides,
            "typestr": window.dtype.str,
            "data": (base.address + offset, False),
            "stream": stream,
        }


def streamed(array: np.ndarray, stream: int | None, device: int = 0) -> Interface:
    return Interface(on(device, array)[0], array, array, stream)


@one_in(2)
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (MM, (floats(33, 17), floats(17, 65))),
        (STEPS, (floats(21, 34), floats(34))),
        (GATHER, (floats(9, 5), random.integers(0, 9, 33).astype(np.int32))),
        ("def f(half(N,K) A) -> (B) { B(n) +=! A(n,k) }", (floats(7, 300).astype(np.float16),)),
        ("def f(bfloat16(N) A) -> (B) { B(n) = A(n) * A(n) }", (floats(70).astype(ml_dtypes.bfloat16),)),
        (
            "def f(bool(N) A, int8(N) B) -> (C) { C(n) = A(n) ? B(n) : -B(n) }",
            (floats(9) > 0, np.arange(9, dtype="i1")),
        ),
        ("def f(float(N) A) -> (B) { B(n) = A(n) + 1.0 }", (floats(0),)),
    ],
)
def test_results_are_those_of_the_oracle(gpu: Simulator, text: str, arguments: tuple[np.ndarray, ...]) -> None:
    definition = define(text)
    gpu.compile(definition, *arguments)
    given = on(0, *arguments)
    found = definition(*given)
    check(definition, given, found)
    # The second one is a warm call.
    check(definition, given, definition(*given))


def test_scalars_arrive_in_their_types(gpu: Simulator) -> None:
    types = [type for type in tc.ScalarType if type is not tc.ScalarType.BOOL]
    for turn, order in enumerate((types, types[::-1])):
        parameters = ", ".join(f"{type} s{n}" for n, type in enumerate(order))
        parts = " + ".join(f"double(s{n}) * {10**n}" for n in range(len(order)))
        definition = define(f"def f(double(N) A, bool b, {parameters}) -> (B) {{ B(n) = (b ? A(n) : 0.0) + {parts} }}")
        values = [n + 1 for n in range(len(order))]
        array = np.arange(5.0)
        gpu.compile(definition, array, bool(turn), *values)
        given = on(0, array)
        check(definition, [*given, bool(turn), *values], definition(*given, bool(turn), *values))


def test_strides_of_both_signs_are_followed(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(40, 40), floats(40, 40)
    window, other = a[30:2:-2, 3:20], b.T[5:22, 1:30:3]
    kernel = gpu.compile(definition, window, other)
    bases = on(0, a, b)
    given: list[Any] = [Interface(bases[0], window, a), Interface(bases[1], other, b)]
    check(definition, given, kernel(*given))
    assert np.array_equal(definition.reference(*given), definition.reference(window, other))


def test_outputs_are_written_where_they_are(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) += A(n) }")
    a, b = floats(33), floats(33)
    given, out = on(0, a, b)
    gpu.compile(definition, a)
    found = definition(given, out=out)
    assert found is out
    assert np.array_equal(out.numpy(), a + b)
    with pytest.raises(tc.ArgumentError, match=r"output B of f: expected shape \(33,\), got \(32,\)"):
        definition(given, out=on(0, floats(32))[0])


def test_one_kernel_serves_every_value_of_an_open_size(gpu: Simulator) -> None:
    definition = define(MM)
    gpu.compile(definition, (tc.dynamic(70), 9), (9, 33))
    b = floats(9, 33)
    for size in (1, 33, 70):
        given = on(0, floats(size, 9), b)
        check(definition, given, definition(*given))
    assert sum("cuLibraryLoadData" in line for line in gpu.log()) == 1


def test_arrays_choose_the_target(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 4), floats(4, 4)]
    assert str(definition.compile(*on(0, *host)).target) == "cuda:sm_90"
    assert str(definition.compile(*on(1, *host)).target) == "cuda:sm_80"
    assert definition.compile(*host).target != definition.compile(*on(0, *host)).target
    assert tc.targets()["cuda"] == "available: cuda:sm_90 (Simulated 0, by cuda-bindings)"
    for device in (0, 1):
        given = on(device, *host)
        gpu.compile(definition, *given, target=str(definition.compile(*given).target))
        found = definition(*given)
        assert isinstance(found, DeviceArray)
        assert found.memory.device == device


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tc.DeviceError, match=f"^{re.escape(message)}$"):
        call()


def test_arrays_elsewhere_are_refused(gpu: Simulator) -> None:
    import torch  # which those who import this module can do without

    definition = define(MM)
    host = [floats(4, 4), floats(4, 4)]
    kernel = gpu.compile(definition, *host)
    mixed = on(0, *host)[0], host[1]
    refused(
        lambda: definition(*mixed),
        "argument B of mm: the array is in this machine's memory, target 'cuda:sm_90' reads only that of a GPU; "
        "copy it there, or use target 'cpu'",
    )
    with pytest.raises(tc.DeviceError, match=r"only that of a GPU; pass \.cuda\(\), or use target 'cpu'$"):
        definition(*map(torch.from_numpy, host), target="cuda")
    refused(
        lambda: definition(*mixed, target="cpu"),
        "argument A of mm: the array is on cuda:0, target 'cpu' reads only this machine's memory; copy it there, or "
        "use target 'cuda'",
    )
    with pytest.raises(tc.DeviceError, match=r"the array is on cuda:0, target 'emulator' reads only this"):
        definition(*mixed, target="emulator")
    two = [*on(0, host[0]), *on(1, host[1])]
    refused(
        lambda: definition(*two),
        "argument B of mm: the array is on cuda:1, argument A of mm on cuda:0; copy them to one device",
    )
    refused(
        lambda: kernel(*on(1, *host)),
        "a kernel for sm_90 does not run on cuda:1, Simulated 1, compute capability 8.0; compile it for 'cuda:sm_80'",
    )


def test_interfaces_that_are_not_valid_are_refused(gpu: Simulator) -> None:
    place = "argument A of mm"
    array = streamed(floats(3), None)
    array.__cuda_array_interface__["mask"] = array
    with pytest.raises(tc.ArgumentError, match="A of mm: masked arrays are not supported; pass one without a mask"):
        describe(array, place)
    array.__cuda_array_interface__ = {"version": 3}
    with pytest.raises(
        tc.ArgumentError, match=r"A of mm: its __cuda_array_interface__ is not valid: KeyError\('shape'\)"
    ):
        describe(array, place)
    base = floats(4, 4)
    shifted = Interface(on(0, base)[0], base, base)
    shifted.__cuda_array_interface__["data"] = shifted.base.address + 2, False
    with pytest.raises(tc.ArgumentError, match="which is not aligned to 4 bytes; pass a copy"):
        describe(shifted, place)
    shifted.__cuda_array_interface__["data"] = shifted.base.address, True
    definition = define("def f(float(N,M) A) -> (B) { B(n,m) = A(n,m) }")
    with pytest.raises(tc.ArgumentError, match="output B of f: the array is read-only"):
        definition(on(0, base)[0], out=shifted)


def test_calls_run_on_the_streams_of_their_arrays(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(4, 5), floats(5, 6)
    gpu.compile(definition, a, b)

    def log_of(first: int | None, second: int | None) -> list[str]:
        given = streamed(a, first), streamed(b, second)
        gpu.log()
        found = definition(*given)
        lines = [line.partition(",")[0] for line in gpu.log() if "Alloc" not in line]
        check(definition, list(given), found)
        return lines

    log_of(None, None)  # which loads the binary
    kept = ["cuEventCreate 2", "cuEventRecord on {}"]  # until when arrays of unknown frameworks are held
    assert log_of(None, 1) == ["cuLaunchKernel tc_kernel_0 on 0:0", kept[0], kept[1].format(0)]
    assert log_of(0xABC, 0xABC) == ["cuLaunchKernel tc_kernel_0 on 0:abc", kept[0], kept[1].format("abc")]
    assert log_of(0xABC, 0xDEF) == [
        "cuEventCreate 2",
        "cuEventRecord on def",
        "cuStreamWaitEvent on abc",
        "cuLaunchKernel tc_kernel_0 on 0:abc",
        "cuEventCreate 2",
        "cuEventRecord on abc",
        "cuStreamWaitEvent on def",
    ]


def test_the_caller_may_choose_the_stream(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(4, 5), floats(5, 6)
    gpu.compile(definition, a, b)

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 0x111

    class Torch:
        cuda_stream = 0x222

    class Cupy:
        ptr = 0x333

    class Pycuda:
        handle = 0x444

    given = on(0, a, b)
    for stream, handle in ((Protocol(), "111"), (Torch(), "222"), (Cupy(), "333"), (Pycuda(), "444"), (0x555, "555")):
        gpu.log()
        with tc.on_stream(stream):
            found = definition(*given)
        lines = gpu.log()
        assert any(line.startswith(f"cuLaunchKernel tc_kernel_0 on 0:{handle},") for line in lines)
        assert any(line.endswith(f" on {handle}") for line in lines if "cuMemAllocFromPoolAsync" in line)
        assert not any("cuStreamWaitEvent" in line for line in lines)
        assert isinstance(found, DeviceArray)
        assert found.memory.stream == Stream(int(handle, 16))

    class Broken:
        __cuda_stream__ = "neither a function nor a pair"

    for wrong, name in (("s", "str"), (-3, "int"), (True, "bool"), (2.0, "float"), (Broken(), "Broken")):
        expected = rf"^expected a CUDA stream \(of PyTorch, .* got {name}$"
        with pytest.raises(tc.ArgumentError, match=expected), tc.on_stream(wrong):
            pass
    for default in (0, 1):
        with tc.on_stream(default):
            found = definition(*given)
        assert isinstance(found, DeviceArray)
        assert found.memory.stream == DEFAULT_STREAM


def test_calls_wait_for_nothing(gpu: Simulator) -> None:
    definition = define(STEPS)
    a, s = floats(21, 34), floats(34)
    gpu.compile(definition, a, s)
    given = on(0, a, s)
    definition(*given)
    gpu.log()
    out = tuple(on(0, a, a))
    gpu.log()
    definition(*given, out=out)
    assert not [line for line in gpu.log() if "Synchronize" in line]
    tc.synchronize()
    assert gpu.log() == ["cuCtxSynchronize"]


def test_bad_indices_are_reported_at_the_next_synchronization(gpu: Simulator) -> None:
    definition = define(GATHER)
    table, good = floats(9, 5), random.integers(0, 9, 33).astype(np.int32)
    bad = good.copy()
    bad[7] = 9
    gpu.compile(definition, table, good)
    right, wrong = on(0, table, good), on(0, table, bad)
    message = "pick: an index into dimension 0 of T is outside of 0:9"
    definition(*wrong)
    with pytest.raises(tc.ArgumentError, match=message):
        tc.synchronize()
    tc.synchronize()
    definition(*wrong)
    with pytest.raises(tc.ArgumentError, match=message):
        definition(*right)
    check(definition, right, definition(*right))
    unchecked = tc.GpuOptions(check_indices=False)
    gpu.compile(definition, table, good, options=unchecked)
    check(definition, right, definition(*right, options=unchecked))


def tells_what_is_refused(gpu: Simulator, call: Callable[[], object]) -> None:
    """Both drivers say the same of the first call of a kernel and of its launch."""
    gpu.fail("cuLibraryLoadData", INVALID_IMAGE)
    with pytest.raises(
        tc.DeviceError,
        match=r"^the CUDA driver, which is for CUDA 13\.0, cannot read what the compiler made "
        r"\(CUDA_ERROR_INVALID_IMAGE: .*\); update the driver, or compile by NVRTC of its major version, for example: "
        r"pip install ",
    ):
        call()
    gpu.fail("cuLibraryLoadData", INVALID)
    with pytest.raises(tc.DeviceError, match=r"^the CUDA driver failed: CUDA_ERROR_INVALID_VALUE: invalid argument$"):
        call()
    gpu.fail("cuLaunchKernel", INVALID)
    with pytest.raises(
        tc.DeviceError,
        match=r"^CUDA refused to run tc_kernel_0 \(grid \d+x\d+x1, block \d+x\d+x1, \d+ bytes of shared memory per "
        r"block\): CUDA_ERROR_INVALID_VALUE: invalid argument$",
    ) as caught:
        call()
    assert not isinstance(caught.value, tc.StickyDeviceError)


def test_what_the_driver_refuses_is_told(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(4, 5), floats(5, 6)
    gpu.compile(definition, a, b)
    given = on(0, a, b)
    tells_what_is_refused(gpu, lambda: definition(*given))
    gpu.fail("cuLaunchKernel", ILLEGAL_ADDRESS)
    with pytest.raises(
        tc.StickyDeviceError, match=r"an illegal memory access was encountered; the device takes no more"
    ):
        definition(*given)
    gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    with pytest.raises(MemoryError, match="the CUDA device has no 96 bytes left"):
        definition(*given)
    gpu.fail("cuCtxSynchronize", 999)
    with pytest.raises(tc.DeviceError, match=r"CUDA_ERROR_UNKNOWN: an error that the driver does not explain$"):
        tc.synchronize()
    check(definition, given, definition(*given))


def test_there_is_no_such_device(gpu: Simulator) -> None:
    with pytest.raises(tc.DeviceError, match=r"there is no device cuda:7; this process has 2, numbered from 0$"):
        tc.synchronize(7)
    with pytest.raises(tc.DeviceError, match=r"there is no device cuda:2; this process has 2, numbered from 0$"):
        tc.to_device([1.0], 2)
    with pytest.raises(tc.ArgumentError, match="the array: element type complex128 is not supported"):
        tc.to_device(1j)


class Exporter:
    """An exporter whose exports are counted while they are held."""

    def __init__(self, base: DeviceArray) -> None:
        self.base = base
        self.exports: list[weakref.ref[Any]] = []
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.base.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        self.streams.append(stream)
        lease = DeviceArray(self.base.shape, self.base.type, self.base.memory)
        self.exports.append(weakref.ref(lease))
        return lease.__dlpack__()


def test_memory_is_held_until_kernels_have_run(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = 2.0 where n in 0:N }")
    gpu.compile(definition, floats(9))
    exporter = Exporter(on(0, floats(9))[0])
    gpu.hold(hold=True)
    definition(exporter)
    gc.collect()
    assert exporter.streams == [1]
    assert exporter.exports[0]() is not None
    gpu.hold(hold=False)
    definition(*on(0, floats(9)))
    IN_FLIGHT.purge()
    gc.collect()
    assert exporter.exports[0]() is None


def test_what_a_graph_waits_for_is_left_to_its_owner(gpu: Simulator) -> None:
    definition = define("def f(double(N) A) -> (B) { B(n) = A(n) }")
    gpu.compile(definition, np.ones(9))
    given, out = (DeviceArray((9,), tc.ScalarType.FLOAT64, CudaMemory(0, Stream(handle))) for handle in (0x777, 0x888))
    definition(given, out=out)
    launched = next(line for line in gpu.log() if line.startswith("cuLaunchKernel"))
    asked = []
    for stream in (0x777 if ":777," in launched else 0x888, 0):
        gpu.capture(stream)
        definition(given, out=out)
        asked.append([line for line in gpu.log() if "Event" in line])
    assert asked[0] == []
    assert any(line.startswith("cuStreamWaitEvent") for line in asked[1])


def test_looking_for_what_has_run_disturbs_no_capture(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = 4.0 where n in 0:N }")
    gpu.compile(definition, floats(9))
    exporter = Exporter(on(0, floats(9))[0])
    gpu.hold(hold=True)
    definition(exporter)
    gpu.capture(0x999)  # a foreign stream
    IN_FLIGHT.purge()
    assert exporter.exports[0]() is not None
    gpu.capture(0)


def test_device_arrays_go_anywhere(gpu: Simulator) -> None:
    for type in tc.ScalarType:
        array = DeviceArray((7, 2), type, CudaMemory(0, Stream(0x123)))
        for view in (describe_dlpack(array, "an array"), describe_cuda_interface(array, "an array")):
            assert (view.address, view.shape, view.strides) == (array.address, (7, 2), (2, 1))
            assert view.type is type
            assert view.memory is not None
            assert view.memory.device == 0
        assert describe(array, "an array").memory == array.memory
    array = on(0, floats(3, 4))[0]
    assert repr(array) == "<DeviceArray float32[3, 4] on cuda:0>"
    gpu.log()
    exported = array.__dlpack__(stream=0x777)
    assert [line.split(",")[0] for line in gpu.log()] == [
        "cuEventCreate 2",
        "cuEventRecord on 0",
        "cuStreamWaitEvent on 777",
    ]
    array.__dlpack__(stream=-1)
    array.__dlpack__(stream=1)
    assert gpu.log() == []
    with pytest.raises(BufferError, match="exported where it is"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="exported where it is"):
        array.__dlpack__(dl_device=(1, 0))
    held = weakref.ref(array)
    del array
    gc.collect()
    assert held() is not None
    del exported
    gc.collect()
    assert held() is None


def test_large_shared_memory_is_asked_for(gpu: Simulator) -> None:
    definition = define(MM)
    shape = (64, 256), (256, 64)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 128)), block=(16, 16), shared_memory=100 << 10)
    kernel = gpu.compile(definition, *shape, options=options)
    (grid,) = kernel.executable.convention.grids
    assert grid.shared_bytes > 48 << 10
    assert "extern __shared__ __align__(64) char shared[];" in kernel.source
    given = on(0, *(floats(*extents) for extents in shape))
    for _ in range(2):
        check(definition, given, kernel(*given))
    lines = gpu.log()
    assert sum(line == f"cuKernelSetAttribute tc_kernel_0 8={grid.shared_bytes} on 0" for line in lines) == 1
    assert sum(line.endswith(f"shared {grid.shared_bytes}") for line in lines) == 2


def test_threads_without_a_context_fail_no_call_of_the_driver(gpu: Simulator) -> None:
    """Tools such as compute-sanitizer report every call that fails, expected or not."""
    definition, host = define(MM), [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    gpu.log()

    def call() -> None:
        check(definition, host, definition(*on(0, *host)))
        tc.synchronize()

    with ThreadPoolExecutor(1) as executor:
        executor.submit(call).result()
    calls = gpu.log()
    assert any("cuLaunchKernel" in line for line in calls)
    assert not [line for line in calls if "fails" in line]


def test_threads_may_call_at_once(gpu: Simulator) -> None:
    definition = define(STEPS)
    a, s = floats(21, 34), floats(34)
    gpu.compile(definition, a, s)
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        given = on(0, a + number, s)
        barrier.wait()
        for _, found in itertools.product(range(5), (definition(*given),)):
            check(definition, given, found)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(work, range(8)))
    assert sum("cuLibraryLoadData" in line for line in gpu.log()) == 1


def test_a_definition_without_arrays_runs_on_the_current_device(gpu: Simulator) -> None:
    definition = define("def f(float s) -> (B) { B(n) = s where n in 0:9 }")
    gpu.compile(definition, 3.0)
    found = definition(3.0, target="cuda")
    assert np.array_equal(results(found)[0], np.full(9, 3, np.float32))
    assert isinstance(found, DeviceArray)
    assert found.memory.stream == DEFAULT_STREAM
