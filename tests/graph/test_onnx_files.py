"""Files of models: paths, bytes, data beside them; and files that are damaged, or made to do harm."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tc
import tc.graph
from tc.graph import onnx_backend


def model(**changes: Any) -> ModelProto:
    """Two layers and a reshape whose target is computed of the shape."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Shape", ["b"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "first"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["b", "target"], ["y"]),
    ]
    arrays = {"w": np.ones((3, 2), np.float32), "zero": np.array(0), "first": np.array([0]), "rest": np.array([-1])}
    graph = helper.make_graph(
        changes.get("nodes", nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.maximum(X @ np.ones((3, 2), np.float32), 0)


def test_a_path_bytes_and_a_proto(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    for given in (path, str(path), path.read_bytes(), model()):
        np.testing.assert_array_equal(tc.graph.load(given)(X), Y)


def test_values_of_any_node_by_name() -> None:
    found = tc.graph.load(model()).run(["a", "y"], {"x": X})
    np.testing.assert_array_equal(found["a"], X @ np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(found["y"], Y)


def test_shapes_are_sizes_and_no_tensors() -> None:
    graph = tc.graph.load(model()).graph()
    assert [str(extent) for extent in graph.values[graph.outputs[0]].shape] == ["N", "2"]
    assert len(graph.nodes) == 2


def test_open_sizes_are_printed() -> None:
    assert tc.graph.load(model()).text.startswith("graph g(float32(N, 3) x) -> (")


def test_plans_and_explanations_are_for_numbers() -> None:
    loaded = tc.graph.load(model())
    with pytest.raises(tc.GraphError, match=r"`x` has the open shape \(N, 3\); give shapes of the inputs"):
        loaded.explain()
    explained = loaded.explain((4, 3))
    assert "matmul_relu" in explained
    assert "nothing is computed by the host" in explained
    assert loaded.plan(x=(4, 3)).arena >= 0
    with pytest.raises(tc.GraphError, match="the model does not declare the shape of `x`; name it"):
        tc.graph.load(without_shape()).graph()


def without_shape() -> ModelProto:
    found = model()
    found.graph.input[0].type.tensor_type.ClearField("shape")
    return found


def test_onnx_backend() -> None:
    (found,) = onnx_backend.prepare(model()).run([X])
    np.testing.assert_array_equal(found, Y)
    np.testing.assert_array_equal(onnx_backend.prepare(model()).run({"x": X})[0], Y)
    np.testing.assert_array_equal(onnx_backend.prepare(model()).run(X)[0], Y)
    node = helper.make_node("Add", ["a", "b"], ["c"])
    np.testing.assert_array_equal(onnx_backend.run_node(node, [X, X])[0], 2 * X)
    np.testing.assert_array_equal(onnx_backend.run_node(node, {"a": X, "b": X})[0], 2 * X)
    assert onnx_backend.supports_device("CPU")
    assert not onnx_backend.supports_device("TPU")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "what was given is no model: neither ONNX nor a GraphDef"),
        (b"\xff\xff", "what was given is no model: neither ONNX nor a GraphDef"),
        (3, "tc.graph.load takes a path, bytes, a text or a ModelProto, got int"),
        ("no/such/file.onnx", "no/such/file.onnx cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_model(given: Any, message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        tc.graph.load(given)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([helper.make_node("Sofmax", ["x"], ["y"])], "the operator `Sofmax` is not supported; did you mean `Softmax`"),
        ([helper.make_node("F", ["x"], ["y"], domain="com.x")], "the operator `com.x.F` is not supported"),
        ([helper.make_node("Relu", ["y"], ["y"])], r"node `y` \(Relu\) depends on itself"),
        ([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["y"])], "two values are called `y`"),
        ([helper.make_node("Relu", ["z"], ["y"])], r"node `y` \(Relu\): no node, input or initializer is called `z`"),
        ([helper.make_node("Relu", ["x"], ["z"])], "the outputs: no node, input or initializer is called `y`"),
        ([helper.make_node("Concat", ["x", "x"], ["y"], axis=5)], "axis 5 of a tensor with 2 dimensions"),
        ([helper.make_node("Relu", [], ["y"])], "operand 0 is missing"),
        ([helper.make_node("Squeeze", ["x"], ["y"], axes=[1])], "dimension 1 has 3 elements, and is squeezed"),
        ([helper.make_node("MatMul", ["x", "x"], ["y"])], "the size `K` is 3 in `A.1` and 4 in `B.0`"),
        ([helper.make_node("Relu", ["x"], ["q", "y"])], "the result `y` is not supported"),
    ],
)
def test_what_a_node_is_refused_for(nodes: list[Any], message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        tc.graph.load(model(nodes=nodes))(X)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": X}, "`g` has no input `z`; did you mean|`g` has no input `z`; inputs: x"),
        ({}, "`g`: the input `x` is missing"),
        ({"x": X.astype(np.float64)}, "input `x` is declared float32, got float64"),
        ({"x": X[0]}, r"input `x` is declared \(N, 3\), got \(3\)"),
        ({"x": X[:, :2]}, r"input `x` is declared \(N, 3\), got \(4, 2\)"),
    ],
)
def test_what_a_call_is_refused_for(arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        tc.graph.load(model()).run(["y"], arrays)


def test_calls_by_place_and_by_name() -> None:
    loaded = tc.graph.load(model())
    np.testing.assert_array_equal(loaded(x=X), Y)
    with pytest.raises(tc.GraphError, match="the input `x` is given twice, by its place and by its name"):
        loaded(X, x=X)
    with pytest.raises(tc.GraphError, match="`g` has 1 inputs, got 2"):
        loaded(X, X)


def _attempt(data: bytes) -> None:
    """Loads, elaborates and evaluates; GraphError is all that may come of it."""
    try:
        loaded = tc.graph.load(data)
        shapes = {
            own.name: [e if isinstance(e, int) and e < 50 else 4 for e in own.shape or ()] for own in loaded.inputs
        }
        loaded.reference(loaded.outputs, {own.name: np.ones(shapes[own.name], own.type.value) for own in loaded.inputs})
    except tc.GraphError:
        pass


def test_files_that_are_cut_off() -> None:
    data = model().SerializeToString()
    for length in range(len(data)):
        _attempt(data[:length])


@pytest.mark.parametrize("seed", range(8))
def test_files_with_changed_bytes(seed: int) -> None:
    data, chosen = model().SerializeToString(), random.Random(seed)
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chosen.randint(1, 3)):
            changed[chosen.randrange(len(changed))] = chosen.randrange(256)
        _attempt(bytes(changed))


def announcing(**fields: Any) -> ModelProto:
    """A model whose weights announce something else than they have."""
    found = model()
    tensor = found.graph.initializer[0]
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dims": [1 << 20, 1 << 20]}, "the initializer `w` announces 4398046511104 bytes"),
        ({"dims": [1 << 40, 1 << 40]}, "the initializer `w` announces"),
        ({"dims": [-3, 2]}, r"the initializer `w` announces the shape \(-3, 2\)"),
        ({"dims": [4, 2]}, "the initializer `w` announces 32 bytes and has 24"),
        ({"data_type": 8}, "the initializer `w` has the type string, which is not supported"),
        ({"data_type": 99}, "the initializer `w` has the type 99, which is not supported"),
    ],
)
def test_tensors_that_announce_something_else(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        tc.graph.load(announcing(**fields))


def beside(location: str, **entries: str) -> ModelProto:
    """A model whose weights lie in a file beside it."""
    found = model()
    tensor = found.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return found


def test_data_beside_a_model(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"1234" + np.ones((3, 2), np.float32).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(beside("data/w.bin", offset="4", length="24").SerializeToString())
    np.testing.assert_array_equal(tc.graph.load(path)(X), Y)


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("../w.bin", {}, "the initializer `w` lies in '../w.bin', which is not in the folder of the model"),
        ("/etc/passwd", {}, "the initializer `w` lies in '/etc/passwd', which is not in the folder of the model"),
        ("", {}, "the initializer `w` lies in '', which is not in the folder of the model"),
        ("link.bin", {}, "the initializer `w` lies in 'link.bin', which is reached by a link"),
        ("missing.bin", {}, "the initializer `w` cannot be read from 'missing.bin'"),
        ("w.bin", {"offset": "90"}, "the initializer `w` begins at 90 of 'w.bin', which has 24 bytes"),
        ("w.bin", {"offset": "x"}, "the initializer `w` cannot be read from 'w.bin'"),
        ("w.bin", {"length": "25"}, "the initializer `w` begins at 0 of 'w.bin', which has 24 bytes"),
    ],
)
def test_data_elsewhere(tmp_path: Path, location: str, entries: dict[str, str], message: str) -> None:
    (tmp_path / "w.bin").write_bytes(np.ones((3, 2), np.float32).tobytes())
    (tmp_path / "link.bin").symlink_to(tmp_path / "w.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(beside(location, **entries).SerializeToString())
    with pytest.raises(tc.GraphError, match=message):
        tc.graph.load(path)


def test_data_beside_bytes() -> None:
    with pytest.raises(tc.GraphError, match=r"the initializer `w` lies in the file 'w\.bin'; load the model by"):
        tc.graph.load(beside("w.bin"))


def test_names_reach_no_source() -> None:
    """Names of a file may hold anything; those in kernels are our own."""
    odd = 'a"); system("rm -rf /'
    node = helper.make_node("Relu", [odd], ["y"], name='*/ #include "x"')
    graph = helper.make_graph(
        [node],
        "g\n}",
        [helper.make_tensor_value_info(odd, TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    loaded = tc.graph.load(helper.make_model(graph))
    np.testing.assert_array_equal(loaded(np.array([-1, 2], np.float32)), [0, 2])
    assert "system" not in loaded.graph().nodes[0].program.name  # type: ignore[union-attr]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.graph.onnx.load.find_spec", lambda _name: None)
    with pytest.raises(
        tc.GraphError, match=r"is read with the package `onnx`: pip install 'tensor-comprehensions\[onnx\]'"
    ):
        tc.graph.load(model().SerializeToString())
