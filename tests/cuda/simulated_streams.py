"""Streams and work in flight, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tc
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory, Stream
from tests.cuda.simulated_support import MM, STEPS, Exporter, check, define, floats, on, streamed
from tests.cuda.simulator import Simulator


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
