"""Kernels on a GPU: ``pytest -m gpu``.  The corpus, every framework, streams, graphs, threads, faults, both drivers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.cuda.checked import MM, check
from tests.cuda.frameworks import FRAMEWORKS
from tests.gpu_cases import OPTIONS
from tests.gradient.differentiable import DIFFERENTIABLE
from tests.polyhedral.gpu.mapping.launched import STEPS
from tests.short_way import only_the_short_way

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
PICK = tc.define("def pick(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }").pick
random = np.random.default_rng(20261122)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_the_corpus_agrees_with_the_oracle_by_turns(number: int) -> None:
    """With one set of options each; all are in ``test_the_corpus_agrees_with_the_oracle``."""
    options = tuple(OPTIONS.values())
    check(CASES[number], CASES[number].large_ragged_sizes, options[number % len(options)], FRAMEWORKS["own"])


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_corpus_agrees_with_the_oracle(case: Case, options: tc.GpuOptions) -> None:
    for sizes in (case.large_ragged_sizes, case.divisible_sizes, case.paper_sizes):
        check(case, sizes, options, FRAMEWORKS["own"])


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.name)
def test_frameworks_give_and_take_arrays(case: Case, name: str) -> None:
    check(case, case.large_ragged_sizes, tc.GpuOptions(), FRAMEWORKS[name])


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_results_are_of_the_arguments_kind(name: str) -> None:
    framework = FRAMEWORKS[name]
    framework.require()
    a, b = floats(33, 17), floats(17, 65)
    given = framework.to_device(a), framework.to_device(b)
    found = MM(*given)
    assert isinstance(found, type(given[0]))
    assert np.allclose(framework.to_host(found), a @ b, atol=1e-4)
    assert MM.compile(*given).target == MM.compile(*given, target="cuda").target


@pytest.mark.parametrize("name", [name for name, framework in FRAMEWORKS.items() if framework.writes])
def test_repeated_calls_take_the_short_way(name: str) -> None:
    framework = FRAMEWORKS[name]
    framework.require()
    a, b = floats(33, 17), floats(17, 65)
    given = framework.to_device(a), framework.to_device(b)
    out: Any = MM(*given)
    MM(*given, out=out)
    other, again = (framework.to_device(a + 1), given[1]), framework.to_device(np.zeros((33, 65), np.float32))
    with only_the_short_way():
        found = MM(*other)
        assert MM(*other, out=again) is again
    for result in (found, again):
        assert np.allclose(framework.to_host(result), (a + 1) @ b, atol=1e-4)


def agrees(definition: tc.Comprehension, *arrays: np.ndarray, **how: Any) -> np.ndarray:
    """A call's one result, which is the oracle's."""
    FRAMEWORKS["own"].require()
    found: Any = definition(*map(tc.to_device, arrays), target="cuda", **how)
    (name,) = definition.program.results
    comparison = compare(definition.oracle(*arrays)[name], found.numpy())
    assert comparison.ok, str(comparison)
    return np.asarray(found.numpy())


@pytest.mark.parametrize("name", sorted(STEPS))
def test_steps_are_launched_one_by_one(name: str) -> None:
    text, shapes = STEPS[name]
    definition = tc.define(text).single()
    arrays = [np.float32(0.1) * floats(*shape) for shape in shapes]
    first = agrees(definition, *arrays)
    assert definition.compile(*arrays, target="cuda").executable.convention.steps
    assert np.array_equal(agrees(definition, *arrays), first)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("operator", ["+=", "*=", "min=", "max="])
@pytest.mark.parametrize("type", ["float", "double", "float16", "int32", "int64", "uint32", "uint64", "uint8", "int16"])
def test_scatters_agree_with_the_oracle(type: str, operator: str, deterministic: bool) -> None:
    text = f"def f(int32(B) I, {type}(B,D) x, {type}(V,D) z) -> ({type}(V,D) y) {{ y(I(b), d) {operator}! x(b, d) }}"
    definition = tc.define(text).single()
    dtype = np.dtype({"float": "f4", "double": "f8"}.get(type, type))
    index = random.integers(0, 77, 5000).astype(np.int32)
    # Products of so many numbers stay finite where most are 1.
    values = np.where(random.random((5000, 33)) < 0.99, 1, random.integers(1, 4, (5000, 33))).astype(dtype)
    options = tc.GpuOptions(numerics=tc.Numerics(deterministic=deterministic))
    given = index, values, np.zeros((77, 33), dtype)
    first = agrees(definition, *given, options=options)
    if deterministic:
        assert np.array_equal(agrees(definition, *given, options=options), first)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.name)
def test_gradients_agree_with_the_oracle(case: Case) -> None:
    definitions = tc.define(case.text)
    definition = definitions.single() if case.definition is None else definitions[case.definition]
    gradient = definition.gradient()
    inputs = case.make_inputs(random, case.large_ragged_sizes)
    outputs = case.make_outputs(random, case.large_ragged_sizes)
    types = {tensor.name: tensor.type for tensor in definition.program.tensors}
    weights = [
        floats(*shape).astype(numpy_dtype(types[name]))
        for name, shape in definition.output_shapes(*inputs.values()).items()
        if types[name].is_floating
    ]
    FRAMEWORKS["own"].require()
    values = (*inputs.values(), *outputs.values(), *weights)
    found: Any = gradient(*(tc.to_device(v) if isinstance(v, np.ndarray) else v for v in values), target="cuda")
    results = found if isinstance(found, tuple) else (found,)
    for (name, expected), result in zip(gradient.oracle(*values).items(), results, strict=True):
        comparison = compare(expected, result.numpy())
        assert comparison.ok, f"{name}: {comparison}"


def test_open_sizes_serve_every_size() -> None:
    FRAMEWORKS["own"].require()
    product = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    scan = "def f(float(N,M) x) -> (y) { y(i,k) +=! x(i,j) where j in 0:k+1, k in 0:M }"
    for text, bounds, sizes in (
        (product, ((300, 200), (200, 400)), ((7, 5, 9), (64, 64, 64), (300, 200, 400), (129, 199, 257), (1, 1, 1))),
        ("def f(float(N,M) x) -> (y) { y(i) +=! x(i,j) }", ((500, 3000),), ((1, 1), (500, 3000), (77, 1025))),
        (scan, ((9, 5000),), ((9, 5000), (3, 77))),
    ):
        definition = tc.define(text).single()
        definition.compile(*(tuple(map(tc.dynamic, shape)) for shape in bounds), target="cuda")
        for chosen in sizes:
            shapes = (chosen[:2], chosen[1:]) if len(bounds) == 2 else (chosen,)
            agrees(definition, *(floats(*shape) for shape in shapes))


def torch_or_skip() -> Any:
    FRAMEWORKS["torch"].require()
    import torch

    torch.set_float32_matmul_precision("highest")
    return torch


def test_strides_of_tensors_are_followed() -> None:
    torch = torch_or_skip()
    a, b = torch.randn(50, 60, device="cuda"), torch.randn(70, 80, device="cuda")
    for left, right in ((a.T[3:40, ::2], b[5:30, 1::3]), (a[:, :9], b.T[:9])):
        torch.testing.assert_close(MM(left, right), left.contiguous() @ right.contiguous(), rtol=1e-4, atol=1e-4)


def test_calls_run_on_the_current_stream_and_wait_for_nothing() -> None:
    torch = torch_or_skip()
    a, b = torch.randn(128, 128, device="cuda"), torch.randn(128, 128, device="cuda")
    stream = torch.cuda.Stream()
    # The first round loads kernels and gets memory, for which the driver may wait.
    for cycles in (1, 1 << 30):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
            slow = a * 2
            found: Any = MM(slow, b)
            after = torch.cuda.Event()
            after.record()
        if cycles == 1:
            torch.cuda.synchronize()
    assert not after.query(), "the call waited for its stream"
    stream.synchronize()
    torch.testing.assert_close(found, 2 * a @ b, rtol=1e-3, atol=1e-3)


def test_a_stream_may_be_chosen() -> None:
    torch = torch_or_skip()
    a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with tc.on_stream(stream):
        found = MM(a, b)
    stream.synchronize()
    torch.testing.assert_close(found, a @ b, rtol=1e-3, atol=1e-3)


def test_warm_calls_can_be_captured_in_a_graph() -> None:
    torch = torch_or_skip()
    a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    steps = tc.define(
        "def steps(float(N,K) A, float(K,K) B) -> (D) { C(n,k) +=! A(n,j) * B(j,k)  D(n,k) +=! C(n,j) * B(j,k) }"
    ).steps
    for definition, factors in ((MM, (b,)), (steps, (b, b))):
        out: Any = definition(a, b)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            definition(a, b, out=out)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            definition(a, b, out=out)
        for _ in range(3):
            a.normal_()
            out.fill_(float("nan"))
            graph.replay()
            assert torch.allclose(out, torch.linalg.multi_dot((a, *factors)), rtol=1e-3, atol=1e-2)


def test_graphs_of_cupy_keep_their_temporaries() -> None:
    """CuPy's pool gives what is freed to the next array, whether or not a graph still uses it."""
    FRAMEWORKS["cupy"].require()
    import cupy

    text = "def centered(float(N,K) A) -> (B) { total(k) +=! A(n,k)  B(n,k) = total(k) - A(n,k) }"
    centered, host = tc.define(text).centered, floats(1000, 64)
    options = tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.asarray(host)
        out: Any = centered(a, options=options)
        stream.begin_capture()
        centered(a, options=options, out=out)
        graph = stream.end_capture()
        others = [cupy.full((64,), np.nan, np.float32) for _ in range(100)]
        for _ in range(3):
            out.fill(np.nan)
            graph.launch(stream)
            for other in others:
                other.fill(np.nan)
        assert np.allclose(cupy.asnumpy(out), host.sum(0) - host, atol=1e-2)
    assert centered.compile(host, target="cuda", options=options).executable.convention.temporaries


def test_arrays_of_ours_take_part_in_graphs() -> None:
    torch = torch_or_skip()
    a, b = floats(64, 64), floats(64, 64)
    given, out, others = [tc.to_device(a), tc.to_device(b)], tc.to_device(np.zeros_like(a)), [tc.to_device(a)]
    MM(*given, out=out)
    tc.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), tc.on_stream(torch.cuda.current_stream()):
        MM(*given, out=out)
        others.clear()
        with pytest.raises(tc.ArgumentError, match="captures a graph"):
            MM(*given)
    for _ in range(2):
        graph.replay()
    assert np.allclose(out.numpy(), a @ b, atol=1e-3)


def test_threads_and_streams_may_call_at_once() -> None:
    torch = torch_or_skip()
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            a = torch.full((100, 64), float(number), device="cuda")
            b = torch.ones(64, 70, device="cuda")
            barrier.wait()
            for _ in range(50):
                found: Any = MM(a, b)
            torch.cuda.current_stream().synchronize()
            assert bool((found == 64.0 * number).all())

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(4)))


def test_bad_indices_are_raised_at_the_next_synchronization() -> None:
    framework = FRAMEWORKS["own"]
    framework.require()
    table = framework.to_device(floats(9, 5))
    wrong = framework.to_device(np.array([0, 9, 1], np.int32))
    PICK(table, wrong)
    with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of T is outside of 0:9"):
        tc.synchronize()
    right = PICK(table, framework.to_device(np.array([0, 8, 1], np.int32)))
    tc.synchronize()
    assert framework.to_host(right).shape == (3, 5)


def test_more_than_two_billion_elements() -> None:
    torch = torch_or_skip()
    if torch.cuda.mem_get_info()[0] < 8 << 30:
        pytest.skip("8 GiB of memory are not free")
    shift = tc.define("def shift(uint8(M,N) X) -> (Y) { Y(m,n) = X(m,n) + uint8(1) }").shift
    x = torch.arange(3 << 30, device="cuda", dtype=torch.uint8).view(3 << 10, 1 << 20)
    y: Any = shift(x)
    assert bool((y[-1] == x[-1] + 1).all())
    assert bool((y[0] == x[0] + 1).all())


BROKEN = """
import numpy as np
import tc

class Nowhere:
    __cuda_array_interface__ = {
        "version": 3, "shape": (1 << 20,), "strides": None, "typestr": "<f4", "data": (1 << 12, False), "stream": None
    }
    dtype = np.dtype(np.float32)

f = tc.define("def f(float(N) A) -> (B) { B(n) = A(n) }").f
array = tc.to_device(np.ones(1 << 20, np.float32))
Nowhere.__cuda_array_interface__["data"] = (array.address + (1 << 40), False)
kernel = f.compile(array)
import tc.runtime.frameworks.cuda_interface as interface
interface.cuda_driver().__class__.device_of = lambda self, address: 0
try:
    kernel(Nowhere())
except tc.StickyDeviceError as error:
    print("broken:", error)
try:
    kernel(array)
except tc.DeviceError as error:
    print("still:", type(error).__name__)
"""


def test_a_broken_device_is_recognized() -> None:
    FRAMEWORKS["own"].require()
    found = run("-c", BROKEN, TC_SYNC="1")
    assert found.stdout.startswith("broken: "), found.stdout + found.stderr
    assert "takes no more work from this process" in found.stdout
    assert "still: StickyDeviceError" in found.stdout


@pytest.mark.skipif("TC_CUDA_RUNTIME" in os.environ, reason="this is the other driver already")
def test_the_other_driver_does_the_same() -> None:
    FRAMEWORKS["pycuda"].require()
    chosen = "not corpus"
    found = run("-m", "pytest", "-q", "-m", "gpu", "-k", chosen, "tests/cuda/test_gpu.py", TC_CUDA_RUNTIME="pycuda")
    assert found.returncode == 0, found.stdout + found.stderr


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=ROOT,
        env={**os.environ, "TC_CACHE_MODE": "off", **environment},
        capture_output=True,
        text=True,
    )
