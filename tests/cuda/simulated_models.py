"""Models on CUDA with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import gc
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder, copy_program
from tc.graph.ir.graph import Graph
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.run.comprehensions import comprehension_of
from tc.graph.run.cuda_execute import CudaExecution
from tc.runtime.cuda import nvrtc
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.views.view import CudaMemory, Stream
from tests.cuda.nvrtc_ptx import ptx_of
from tests.cuda.simulated_support import INVALID, Interface, floats, on, streamed
from tests.cuda.simulator import Simulator
from tests.cuda.tensors import on_gpu, tensors_on_gpus

F, I32 = ScalarType.FLOAT32, ScalarType.INT32
PRODUCT = "def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SOFTMAX = """def softmax(float(M,N) A) -> (P) {
    T(m) max=! A(m,n)
    S(m) +=! exp(A(m,n) - T(m))
    P(m,n) = exp(A(m,n) - T(m)) / S(m)
}"""
WEIGHTS, BIAS = floats(20, 10), floats(10)


def head(rows: int = 7) -> Graph:
    """Rows of 20, weights that are constant: two kernels, with a value between them."""
    builder = Builder("head")
    x = builder.input("X", F, (rows, 20))
    (made,) = builder.call(PRODUCT, x, builder.constant(WEIGHTS))
    shifted = pointwise(builder, "add", "{0} + {1}", [made, builder.constant(BIAS)])
    return builder.finish(builder.call(SOFTMAX, shifted, names=["P"]))


def model_of(graph: Graph, **settings: Any) -> tc.graph.Model:
    return tc.graph.Model.of(graph, tc.graph.Settings(rules=(), target="cuda", **settings))


def ready(gpu: Simulator, graph: Graph) -> tc.graph.Model:
    model = model_of(graph)
    gpu.compile_model(model)
    return model


def softmax(x: np.ndarray) -> np.ndarray:
    scores = x @ WEIGHTS + BIAS
    found = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(found / found.sum(1, keepdims=True))


def agrees(found: object, x: np.ndarray) -> None:
    values = found.numpy() if isinstance(found, DeviceArray) else np.asarray(found)
    np.testing.assert_allclose(values, softmax(x), rtol=1e-5, atol=1e-6)


def work(gpu: Simulator, *others: str) -> list[str]:
    """What streams were given since the last time: launches, and other calls that begin so."""
    wanted = ("cuLaunchKernel", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams", *others)
    return [line.partition(",")[0] for line in gpu.log() if line.startswith(wanted)]


def test_kernels_are_one_graph(gpu: Simulator) -> None:
    """What lies elsewhere than in the call before is given to the kernels that use it, and to no others."""
    model, host = ready(gpu, head()), floats(7, 20)
    (x,), (out,) = on(0, host), on(0, np.zeros((7, 10), np.float32))
    gpu.log()
    assert model(x, out=out) is out
    agrees(out, host)
    assert work(gpu) == ["cuGraphLaunch of 2 on 0:0"]
    assert model(x, out=out) is out
    assert work(gpu) == ["cuGraphLaunch of 2 on 0:0"]
    (other,) = on(0, host + 1)
    with pytest.MonkeyPatch.context() as patch:  # calls like that one need not be looked at closely
        patch.setattr(CudaExecution, "run", lambda *_: pytest.fail("this call was made the thorough way"))
        model(other, out=out)
    agrees(out, host + 1)
    assert work(gpu) == ["cuGraphExecKernelNodeSetParams tc_kernel_0", "cuGraphLaunch of 2 on 0:0"]
    fresh = model(other)
    assert isinstance(fresh, DeviceArray)
    agrees(fresh, host + 1)
    assert work(gpu) == ["cuGraphExecKernelNodeSetParams tc_kernel_0", "cuGraphLaunch of 2 on 0:0"]


def test_weights_are_copied_once(gpu: Simulator) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    given = on(0, host, host + 1)
    gpu.log()
    for x in given:
        model(x)
    assert work(gpu, "cuMemcpyHtoD")[:2] == [f"cuMemcpyHtoD {WEIGHTS.nbytes}", f"cuMemcpyHtoD {BIAS.nbytes}"]
    assert not [line for line in gpu.log() if "HtoD" in line]


def test_what_a_model_holds_goes_with_it(gpu: Simulator) -> None:
    """The fixture counts memory and events, too."""
    before = gpu.graphs
    model, host = ready(gpu, head()), floats(7, 20)
    for stream in (0x111, 0x222, None):
        agrees(model(streamed(host, stream)), host)
    assert gpu.graphs == before + 2
    del model
    gc.collect()
    tc.synchronize()
    assert gpu.graphs == before


def test_arrays_of_this_machine_are_copied_there_and_back(gpu: Simulator) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    found = model(host)
    assert type(found) is np.ndarray
    agrees(found, host)
    tensor = model(torch.from_numpy(host))
    assert isinstance(tensor, torch.Tensor)
    agrees(tensor, host)
    agrees(model(np.asfortranarray(host)), host)
    out, wide = np.zeros((7, 10), np.float32), np.zeros((10, 14), np.float32)
    for given in (out, wide[:, ::2].T):
        assert model(host, out=given) is given
        agrees(given, host)
    assert not wide[:, 1::2].any()
    result = model.run(["P"], {"X": host}, out=on(0, out)[0])["P"]
    assert isinstance(result, DeviceArray)
    agrees(result, host)


def test_arrays_of_both_machines_make_results_on_the_gpu(gpu: Simulator) -> None:
    builder = Builder("sum")
    x, y = (builder.input(name, F, (7, 20)) for name in "xy")
    model = ready(gpu, builder.finish([pointwise(builder, "add", "{0} + {1}", [x, y])]))
    host = floats(7, 20)
    for given in ((*on(0, host), host), (host, *on(0, host))):
        found = model(*given)
        assert isinstance(found, DeviceArray)
        np.testing.assert_array_equal(found.numpy(), 2 * host)
    with pytest.raises(
        tc.DeviceError, match=r"^argument y of sum: the array is on cuda:1, argument x of sum on cuda:0"
    ):
        model(*on(0, host), *on(1, host))


def test_tensors_of_pytorch(gpu: Simulator) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    with tensors_on_gpus() as current:
        x: Any = on_gpu(host)
        out: Any = on_gpu(np.zeros((7, 10), np.float32))
        for stream in (0, 0x345):
            current[0] = stream
            gpu.log()
            fresh = model(x)
            assert type(fresh) is type(x)
            agrees(fresh, host)
            assert work(gpu)[-1] == f"cuGraphLaunch of 2 on 0:{stream:x}"
            version: int = out._version
            returned: Any = model(x, out=out)
            assert returned is out
            assert out._version == version + 1
            agrees(out, host)


def copying(gpu: Simulator, *arrays: Any, **named: Any) -> None:
    gpu.compile(comprehension_of(copy_program(F, 2)), *arrays, **named)


def test_strides_are_those_of_copies(gpu: Simulator) -> None:
    model, host, wide = ready(gpu, head()), floats(7, 20), np.zeros((14, 20), np.float32)
    wide[::2] = host
    copying(gpu, wide[::2])
    view = Interface(on(0, wide)[0], wide[::2], wide)
    for _ in range(2):
        agrees(model(view), host)
    blank, copy = np.zeros((10, 7), np.float32), comprehension_of(copy_program(F, 2))
    (base,) = on(0, blank)
    out = Interface(base, blank.T, blank)
    signature = copy._bind((np.zeros((7, 10), np.float32),), blank.T).signature(copy.interface)
    gpu.compile_signature(copy, signature)
    for _ in range(2):
        assert model(on(0, host)[0], out=out) is out
        agrees(base.numpy().T, host)


def test_calls_run_on_the_streams_of_their_arrays(gpu: Simulator) -> None:
    """One after the other, since they share the memory of the model."""
    model, host = ready(gpu, head()), floats(7, 20)
    gpu.log()
    agrees(model(streamed(host, 0x111)), host)
    assert work(gpu)[-1] == "cuGraphLaunch of 2 on 0:111"
    (own,) = on(0, host)
    with tc.on_stream(0x222):
        agrees(model(own), host)
        assert work(gpu)[-1] == "cuGraphLaunch of 2 on 0:222"
    builder = Builder("sum")
    x, y = (builder.input(name, F, (7, 20)) for name in "xy")
    both = ready(gpu, builder.finish([pointwise(builder, "add", "{0} + {1}", [x, y])]))
    given = streamed(host, 0x333), streamed(host, 0x444)
    both(*given)
    gpu.log()
    both(*given)
    lines = work(gpu, "cuStreamWaitEvent", "cuEventRecord")
    assert [line for line in lines if "SetParams" not in line] == [
        "cuEventRecord on 444",
        "cuStreamWaitEvent on 333",
        "cuGraphLaunch of 1 on 0:333",
        "cuEventRecord on 333",
        "cuStreamWaitEvent on 444",
    ]


def parts() -> Graph:
    """Kernels, what the host computes, kernels, and outputs that none computes."""
    builder = Builder("parts")
    x, i = builder.input("x", F, (4, 6)), builder.input("i", I32, (3,))
    scaled = pointwise(builder, "scaled", "{0} * 2", [x])
    turned = builder.permute(scaled, (1, 0))
    (sorted_rows,) = builder.host("Sort", lambda operands: [np.sort(operands[0], 1)], [turned], [(F, (6, 4))])
    end = pointwise(builder, "end", "{0} + 1", [sorted_rows])
    builder.origin = "node `rows`"
    picked = builder.call("def pick(float(E,D) T, int32(B) J) -> (O) { O(b,d) = T(J(b),d) }", end, i)
    return builder.finish([*picked, x, builder.constant(BIAS), builder.slice(sorted_rows, (2, 0), (1, 1), (2, 4))])


def parts_expected(x: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
    ordered = np.sort(2 * x.T, 1)
    return [ordered[i] + 1, x, BIAS, ordered[2:4]]


def numpy(results: object) -> list[np.ndarray]:
    assert isinstance(results, tuple)
    return [result.numpy() if isinstance(result, DeviceArray) else result for result in results]


def test_what_no_kernel_does_ends_a_graph(gpu: Simulator) -> None:
    model = ready(gpu, parts())
    x, i = floats(4, 6), np.array([5, 0, 3], np.int32)
    for given in (on(0, x, i), [x, i]):
        for _ in range(2):
            gpu.log()
            for found, expected in zip(numpy(model(*given)), parts_expected(x, i), strict=True):
                np.testing.assert_array_equal(found, expected)
            lines = [line for line in work(gpu, "cuMemcpyDtoDAsync") if "SetParams" not in line]
            assert [line.partition(" of ")[0].partition(" 9")[0].split()[0] for line in lines] == [
                "cuGraphLaunch",
                "cuGraphLaunch",
                *["cuMemcpyDtoDAsync"] * 3,
            ]


def test_parts_wait_for_those_of_calls_on_other_streams(gpu: Simulator) -> None:
    model = ready(gpu, parts())
    x, i = floats(4, 6), np.array([5, 0, 3], np.int32)
    model(*(streamed(array, 0x111) for array in (x, i)))
    gpu.log()
    model(*(streamed(array, 0x222) for array in (x, i)))
    found = work(gpu, "cuStreamWaitEvent")
    assert found.index("cuStreamWaitEvent on 222") < next(n for n, line in enumerate(found) if "GraphLaunch" in line)


def test_what_a_call_finds_in_its_arguments(gpu: Simulator) -> None:
    """Said by the next call, or by the call itself where that waits for its results."""
    model = ready(gpu, parts())
    x, good, bad = floats(4, 6), np.array([5, 0, 3], np.int32), np.array([5, 6, 3], np.int32)
    message = r"^node `rows`: end_pick: an index into dimension 0 of t0 is outside of 0:6"
    for _ in range(2):
        with pytest.raises(tc.ArgumentError, match=message):
            model(x, bad)
    given = on(0, x, good)
    model(*on(0, x, bad))
    with pytest.raises(tc.ArgumentError, match=message):
        model(*given)
    model(*given)
    model(*on(0, x, bad))
    with pytest.raises(tc.ArgumentError, match=r"^end_pick: an index into dimension 0 of t0 is outside of 0:6"):
        tc.synchronize()


def test_equal_nodes_are_both_named(gpu: Simulator) -> None:
    builder = Builder("twice")
    x, i, j = builder.input("x", F, (4, 6)), builder.input("i", I32, (3,)), builder.input("j", I32, (3,))
    picked: list[Value] = []
    for name, indices in (("left", i), ("right", j)):
        builder.origin = f"node `{name}`"
        picked += builder.call("def pick(float(E,D) T, int32(B) J) -> (O) { O(b,d) = T(J(b),d) }", x, indices)
    model, good = ready(gpu, builder.finish(picked)), np.array([3, 0, 1], np.int32)
    with pytest.raises(tc.ArgumentError, match=r"^node `left` or node `right`: pick: an index into dimension 0 of T"):
        model(floats(4, 6), good, good + 1)


def capturable(gpu: Simulator, stream: int) -> tuple[tc.graph.Model, DeviceArray, DeviceArray]:
    model = ready(gpu, head())
    memory = CudaMemory(0, Stream(stream))
    return model, DeviceArray((7, 20), F, memory), DeviceArray((7, 10), F, memory)


def test_calls_become_parts_of_graphs_of_the_caller(gpu: Simulator) -> None:
    """One kernel after the other, in memory of that graph."""
    model, x, out = capturable(gpu, 0x777)
    gpu.capture(0x777)
    message = (
        "`head`: the stream of this call captures a graph, and the constants of the model are not on cuda:0 yet; call "
        "the model once before"
    )
    with pytest.raises(tc.GraphError, match=f"^{re.escape(message)}$"):
        model(x, out=out)
    assert gpu.capture(0) == ""
    model(x, out=out)
    gpu.log()
    gpu.capture(0x777)
    for _ in range(2):
        model(x, out=out)
    assert gpu.capture(0) == ""
    assert work(gpu) == ["cuLaunchKernel tc_kernel_0 on 0:777"] * 4
    gpu.capture(0x777)
    with pytest.raises(tc.ArgumentError, match=r"pass out= with an array that lives as long as the graph"):
        model(x)
    gpu.capture(0)


def test_what_graphs_of_the_caller_cannot_hold(gpu: Simulator) -> None:
    model, (x, i) = ready(gpu, parts()), (floats(4, 6), np.array([5, 0, 3], np.int32))
    memory = CudaMemory(0, Stream(0x777))
    outs = tuple(DeviceArray(shape, F, memory) for shape in ((3, 4), (4, 6), (10,), (2, 4)))
    given = DeviceArray((4, 6), F, memory), DeviceArray((3,), I32, memory)
    model(*on(0, x, i))
    gpu.capture(0x777)
    message = (
        "`parts`: the stream of this call captures a graph, in which the host cannot compute Sort; call the model "
        "outside of the capture"
    )
    with pytest.raises(tc.GraphError, match=f"^{re.escape(message)}$"):
        model(*given, out=outs)
    assert gpu.capture(0) == ""


def test_calls_that_wait_start_one_kernel_after_the_other(gpu: Simulator) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    (x,) = on(0, host)
    gpu.log()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("tc.graph.run.cuda_program", "tc.runtime.cuda.cuda"):
            patch.setattr(f"{module}.environment", lambda: SimpleNamespace(sync=True))
        agrees(model(x), host)
        assert work(gpu, "cuStreamSynchronize") == ["cuLaunchKernel tc_kernel_0 on 0:0", "cuStreamSynchronize 0"] * 2


def test_drivers_without_graphs(gpu: Simulator) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    (x,) = on(0, host)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tc.runtime.cuda.cuda_bindings_driver.BindingsDriver.graphs", False)
        gpu.log()
        for _ in range(2):
            agrees(model(x), host)
        assert work(gpu) == ["cuLaunchKernel tc_kernel_0 on 0:0"] * 4


@pytest.mark.parametrize("function", ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags"])
def test_what_the_driver_refuses_is_told(gpu: Simulator, function: str) -> None:
    model, host = ready(gpu, head()), floats(7, 20)
    (x,) = on(0, host)
    for failing in (function, "cuGraphLaunch"):
        gpu.fail(failing, INVALID)
        with pytest.raises(
            tc.DeviceError, match=r"^the CUDA driver failed: CUDA_ERROR_INVALID_VALUE: invalid argument$"
        ):
            model(x)
    agrees(model(x), host)


def test_threads_share_a_model(gpu: Simulator) -> None:
    model = ready(gpu, head())

    def work(number: int) -> None:
        host = floats(7, 20)
        with tc.on_stream(0x100 * (1 + number % 3)):
            for x in on(0, host, host + 1):
                found = model(x)
                tc.synchronize()
                agrees(found, x.numpy())

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(12)))


def test_shapes_that_depend_on_contents(gpu: Simulator) -> None:
    """They are brought to this machine."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    nodes = [
        helper.make_node("Add", ["n", "n"], ["twice"]),
        helper.make_node("Expand", ["x", "twice"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (("x", onnx.TensorProto.FLOAT, [1, 1]), ("n", onnx.TensorProto.INT64, [2]))
    ]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["a", "b"])]
    proto = helper.make_model(helper.make_graph(nodes, "grown", inputs, outputs))
    model = tc.graph.load(proto, target="cuda")
    x, n = floats(1, 1), np.array([2, 1], np.int64)
    with translating(gpu):
        for given in ((x, n), on(0, x, n)):
            found = model(*given)
            assert isinstance(found, DeviceArray) == isinstance(given[0], DeviceArray)
            values = found.numpy() if isinstance(found, DeviceArray) else found
            np.testing.assert_array_equal(values, np.broadcast_to(x, (4, 2)))


class translating:  # noqa: N801  # a context
    """In the block, binaries do what the PTX does that they are made of, and touch no memory that is not there."""

    def __init__(self, gpu: Simulator) -> None:
        self._gpu, self._patch = gpu, pytest.MonkeyPatch()

    def __enter__(self) -> None:
        compile_cuda = nvrtc.compile_cuda

        def compile_and_translate(source: str, architecture: str) -> Any:
            binary = compile_cuda(source, architecture)
            self._gpu.translate(binary.code, ptx_of(source, architecture))
            return binary

        self._patch.setattr(nvrtc, "compile_cuda", compile_and_translate)
        self._gpu.failures.clear()

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        assert not self._gpu.failures


def test_nvidias_code_works_in_the_memory_of_a_model(gpu: Simulator) -> None:
    """Operands in the arena, constants, and temporaries of a sum that several blocks share."""
    builder = Builder("long")
    x = builder.input("x", F, (2, 40000))
    scaled = pointwise(builder, "scaled", "{0} * 2", [x])
    (sums,) = builder.call("def sums(float(M,N) A) -> (s) { s(m) +=! A(m,n) }", scaled)
    end = pointwise(builder, "end", "{0} + {1}", [sums, builder.constant(BIAS[:2])])
    model, host = model_of(builder.finish([end]), fuse=False), floats(2, 40000)
    with translating(gpu):
        compiled = model.compile()
        assert any(kernel.executable.convention.temporaries for kernel in compiled.kernels.values())
        for given in (host, host + 1):
            (array,) = on(0, given)
            found = model(array)
            assert isinstance(found, DeviceArray)
            np.testing.assert_allclose(found.numpy(), 2 * given.astype("f8").sum(1) + BIAS[:2], rtol=1e-4)


def test_values_are_not_allocated_one_by_one(gpu: Simulator) -> None:
    with pytest.raises(
        tc.OptionsError, match=r"^arena=False is not for cuda:sm_90a: memory of GPUs is not allocated val"
    ):
        model_of(head(), arena=False).compile()


def test_arrays_choose_the_target(gpu: Simulator) -> None:
    graph: Graph = head()
    model = tc.graph.Model.of(graph, tc.graph.Settings(rules=()))
    gpu.compile_model(model_of(graph))
    host = floats(7, 20)
    assert isinstance(model(*on(0, host)), DeviceArray)
    assert isinstance(model(host), np.ndarray)
    processor = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), target="cpu"))
    with pytest.raises(tc.DeviceError, match=r"^argument X of head: the array is on cuda:0, target 'cpu' reads only"):
        processor(*on(0, host))
