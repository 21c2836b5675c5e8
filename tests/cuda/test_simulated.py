"""Calls on CUDA without a GPU, in processes that have a driver of the tests' own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")

ROOT = Path(__file__).parents[2]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=ROOT,
        env={**os.environ, "TC_CACHE_MODE": "off", **environment},
        capture_output=True,
        text=True,
    )


def test_calls_on_a_simulated_driver() -> None:
    cases = ("calls", "refusals", "streams", "memory", "kernels", "warm", "ptx", "boxes", "models")
    files = (f"tests/cuda/simulated_{name}.py" for name in cases)
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *files)
    assert found.returncode == 0, found.stdout + found.stderr
    assert " skipped" not in found.stdout


def test_measuring_on_a_simulated_driver() -> None:
    files = ("tests/cuda/simulated_benchmarks.py", "tests/cuda/simulated_searches.py")
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *files, TC_TARGET="cuda")
    assert found.returncode == 0, found.stdout + found.stderr
    assert " skipped" not in found.stdout


def test_searching_over_devices_of_a_simulated_driver() -> None:
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "tests/cuda/simulated_devices.py")
    assert found.returncode == 0, found.stdout + found.stderr
    assert " skipped" not in found.stdout


@pytest.mark.skipif(importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed")
@pytest.mark.parametrize("cases", ["simulated_pycuda_cases", "simulated_pycuda_threads"])
def test_calls_by_pycuda_on_a_simulated_driver(cases: str) -> None:
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", f"tests/cuda/{cases}.py")
    assert found.returncode == 0, found.stdout + found.stderr
    assert " skipped" not in found.stdout


CONTEXTS = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import tc
from tests.cuda.simulator import simulator

gpu = simulator()
sys.setdlopenflags(os.RTLD_LAZY)
import pycuda.driver as cuda
import pycuda.gpuarray
from tests.cuda.simulated_support import STEPS, define, floats, on

(own,) = on(1, np.ones(3))
print(own.numpy().sum())
cuda.init()
context = cuda.Device(0).make_context()
steps, options = define(STEPS), tc.GpuOptions(register_accumulators=0, shared_memory=0)
given = [pycuda.gpuarray.to_gpu(floats(21, 34)), pycuda.gpuarray.to_gpu(floats(34))]
gpu.compile(steps, *given, options=options)
gpu.hold(hold=True)
with ThreadPoolExecutor(1) as executor:
    kept = executor.submit(steps, *given, options=options).result()
given[0].allocator = lambda size: cuda.mem_alloc(size)
kept += steps(*given, options=options)
context.pop()
"""


@pytest.mark.skipif(importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed")
def test_processes_end_quietly() -> None:
    found = run("-c", CONTEXTS, TC_CUDA_RUNTIME="pycuda")
    assert (found.stdout, found.stderr) == ("3.0\n", "")


SYNCHRONOUS = """
import numpy as np
import tc
from tests.cuda.simulated_support import GATHER, define, floats, on
from tests.cuda.simulator import simulator

gpu = simulator()
table, right, wrong = floats(9, 5), np.full(33, 8, np.int32), np.full(33, 9, np.int32)
for calls in ([wrong], [right, wrong]):
    definition = define(GATHER)
    gpu.compile(definition, table, right)
    try:
        for indices in calls:
            definition(*on(0, table, indices))
    except tc.ArgumentError as error:
        print(error)
"""


def test_calls_wait_where_that_is_asked_for() -> None:
    """The first one of a kind, and those that are like one that was made before."""
    found = run("-c", SYNCHRONOUS, TC_SYNC="1")
    assert found.stdout.count("pick: an index into dimension 0 of T is outside of 0:9") == 2, found.stderr
    assert run("-c", SYNCHRONOUS, TC_SYNC="0").stdout == ""


BROKEN = """
import tc
from tests.cuda.simulated_support import ILLEGAL_ADDRESS, MM, define, floats, on
from tests.cuda.simulator import simulator

gpu = simulator()
definition, host = define(MM), [floats(4, 5), floats(5, 6)]
gpu.compile(definition, *host)
given = on(0, *host)
out = definition(*given)
gpu.capture(0x123)
with tc.on_stream(0x123):
    definition(*given, out=out)
assert gpu.capture(0) == ""
gpu.fail("cuStreamSynchronize", ILLEGAL_ADDRESS)
try:
    definition(*given)
except tc.StickyDeviceError as error:
    print(error)
"""


def test_calls_that_wait_name_the_kernels_that_failed() -> None:
    """Those that become part of a graph wait for nothing all the same."""
    found = run("-c", BROKEN, TC_SYNC="1")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found.stdout, found.stderr
    assert "started since the last wait (all): mm: tc_kernel_0 (grid " in found.stdout


def test_drivers_are_named() -> None:
    program = "import tc; print(tc.targets()['cuda'])"
    found = run("-c", program, TC_CUDA_RUNTIME="pycuba").stderr
    assert "TC_CUDA_RUNTIME names no driver: 'pycuba'; did you mean 'pycuda'?" in found
