"""Which format a model has, by its contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc
import tc.graph
from tc.graph.formats import Format, format_of
from tests.graph.comparison import f32
from tests.graph.graphdefs import (
    Listed,
    Node,
    Shape,
    Type,
    binary,
    const,
    encoded,
    message,
    node,
    placeholder,
    text,
)

NODES: list[Node] = [
    placeholder("x", shape=(-1, 3)),
    const("c", [[1.5, -2, 3]], "float32"),
    node("y", "AddV2", "x", "c:0", "^x", T=Type("float32")),
    node(
        "z", "Something", "y", i=-7, f=0.5, b=True, s='a"\n\\', shape=Shape((2, -1)), unknown=Shape(None), ints=[1, -2],
        texts=["a", "é"], none=[], bool_tensor=Listed("bool", (2,), "bool_val", [True, False]),
    ),
]  # fmt: skip


def test_contents_say_what_a_model_is(tmp_path: Path) -> None:
    """Names of files do not."""
    x = f32([[1, 2, 3]])
    for place, data in enumerate((binary(NODES[:3]), text(NODES[:3]).encode())):
        path = tmp_path / f"{place}.onnx"
        path.write_bytes(data)
        for given in (data, path, str(path)):
            found = tc.graph.load(given).reference(["y"], {"x": x})["y"]
            np.testing.assert_array_equal(found, f32([[2.5, 0, 6]]))
    assert str(tc.graph.load(path)).startswith('graph "1"')
    np.testing.assert_array_equal(tc.graph.load(text(NODES[:3]))(x), f32([[2.5, 0, 6]]))


def test_onnx_models_are_told_apart(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    made = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [made("x", 1, [2])], [made("y", 1, [2])])
    model = helper.make_model(graph)
    data = model.SerializeToString()
    assert format_of(data) is Format.ONNX
    path = tmp_path / "model.pb"
    path.write_bytes(data)
    x = f32([1, -2])
    for given in (data, path, model):
        np.testing.assert_array_equal(tc.graph.load(given).reference(["y"], {"x": x})["y"], -x)
    model.ClearField("ir_version")
    assert format_of(model.SerializeToString()) is Format.ONNX
    with pytest.raises(tc.GraphError, match="is an ONNX model as text, which is not read; save it in binary form"):
        tc.graph.load(str(onnx.ModelProto(ir_version=8, graph=graph)))


SAVED = encoded([(1, "version", 1), (2, "meta", [(2, "graph", message(NODES))])])
NO_MODELS = [
    (SAVED, r"what was given is a SavedModel, which is not read; freeze it, and give its GraphDef"),
    (b"", r"what was given is no model: neither ONNX nor a GraphDef"),
    (b"\x00\x01\x02", r"what was given is no model: neither ONNX nor a GraphDef"),
    (b"\x89PNG\r\n", r"what was given is no model: neither ONNX nor a GraphDef"),
    (encoded([(4, "versions", [])]), r"what was given is no model: neither ONNX nor a GraphDef"),
    (b"\x0a\x7fabc", r"what was given is no GraphDef: field 1 announces 127 bytes, and 3 are left"),
    (b"name: 3", r"what was given is no GraphDef: the graph has no nodes"),
    ("nothing/here.pbtxt", r"nothing/here.pbtxt cannot be read: No such file"),
    ("no{such}file", r"what was given is no GraphDef: 1:8: this is not"),
    ("a\0{", r"cannot be read: .*null"),
    (3, r"takes a path, bytes, a text or a ModelProto, got int"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "complaint"), NO_MODELS)
def test_what_is_no_model(given: Any, complaint: str) -> None:
    with pytest.raises(tc.GraphError, match=complaint):
        tc.graph.load(given)
