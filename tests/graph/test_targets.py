"""One graph on every target: the MNIST head and the subgraphs of its training, from text and binary."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.operators.pointwise import pointwise
from tests.graph.comparison import same
from tests.graph.mnist_graphdef import CLASSES, DATA, PIXELS, digits, subgraphs
from tests.opencl import missing

HEAD: Final = "gradients/mul_grad/Reshape"
GIVEN: Final = digits(7)
SHAPES: Final[dict[str, Any]] = {"x": (7, PIXELS), "y_": (7, CLASSES), "W": (PIXELS, CLASSES), "b": (CLASSES,)}
TARGETS: Final = (
    "cpu",
    "emulator",
    pytest.param("opencl", marks=pytest.mark.skipif(missing() is not None, reason=str(missing()))),
)


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
@pytest.mark.parametrize("target", TARGETS)
def test_the_head_runs(target: str, suffix: str) -> None:
    model = tc.graph.load(DATA / f"mnist_head.{suffix}", target=target)
    for _ in range(2):
        same(model.run([HEAD], GIVEN)[HEAD], model.reference([HEAD], GIVEN)[HEAD], tolerance=1e-5)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_the_subgraphs_run(target: str) -> None:
    model, expected = tc.graph.load(DATA / "mnist_training.pb", target=target), subgraphs(GIVEN)
    for name, array in model.run(list(expected), GIVEN).items():
        same(array, expected[name])


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
def test_the_head_is_compiled_for_cuda(suffix: str) -> None:
    """Without a GPU."""
    pytest.importorskip("cuda.bindings")
    model = tc.graph.load(DATA / f"mnist_head.{suffix}", target="cuda:sm_90")
    compiled = model.compile(**SHAPES)
    assert str(compiled.target) == "cuda:sm_90"
    assert len(compiled.kernels) == 2
    assert all("__global__" in source for source in compiled.sources.values())
    assert all(kernel.executable.binary.code for kernel in compiled.kernels.values())
    assert compiled.plan.arena == model.plan(**SHAPES).arena == 320
    assert "matmul_add" in model.explain(**SHAPES)


@pytest.mark.parametrize("arena", [True, False])
def test_models_of_other_machines_are_compiled_only(arena: bool) -> None:
    def refuse(*_: object) -> None:
        raise tc.DeviceError("this machine is another one")

    builder = Builder("scale")
    x = builder.input("x", ScalarType.FLOAT32, (17, 3))
    graph = builder.finish([pointwise(builder, "scale", "{0} * 3", [x])])
    model = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), arena=arena))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tc.artifact.executable.check_runs", refuse)
        assert "tc_kernel" in next(iter(model.compile().sources.values()))
    with pytest.raises(tc.DeviceError, match=r"^this machine is another one$"):
        model(np.ones((17, 3), np.float32))


def test_a_head_of_cuda_says_that_there_is_no_gpu() -> None:
    if tc.targets()["cuda"].startswith("available"):
        pytest.skip("there is one")
    pytest.importorskip("cuda.bindings")
    model = tc.graph.load(DATA / "mnist_head.pb", target="cuda:sm_90")
    with pytest.raises(tc.DeviceError, match=r"^target 'cuda:sm_90' does not run here: .*; use target 'emulator'$"):
        model.run([HEAD], GIVEN)


def test_shapes_that_depend_on_contents_are_not_compiled_before() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [6]),
        helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [2]),
    ]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["a", "b"])]
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    model = tc.graph.load(helper.make_model(helper.make_graph([node], "reshaped", inputs, outputs)))
    with pytest.raises(tc.GraphError, match=r"^the graph depends on the contents of shape: call the model$"):
        model.compile()
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (3, 2), (2, 3)):
        np.testing.assert_array_equal(np.asarray(model(x, np.array(shape))), x.reshape(shape))
