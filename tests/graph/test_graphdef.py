"""TensorFlow's GraphDefs as models: nodes by name, variables, shapes that are computed, and errors that name nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc
import tc.graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import open_size
from tests.graph.comparison import f32, i32, same, uniform
from tests.graph.graphdefs import Node, Shape, Type, const, model_of, node, nodes_read, placeholder
from tests.graph.mnist_graphdef import variable

FLOAT, INT = Type("float32"), Type("int32")


# --- nodes -----------------------------------------------------------------------------------------------

CHAIN = [
    placeholder("x", shape=(-1, 4)),
    const("axis", 1),
    node("split", "Split", "axis", "x", num_split=2),
    node("sum", "AddV2", "split:1", "split:0"),
    node("other", "Neg", "split"),
    node("broken", "NoSuchOperator", "sum"),
]


def test_any_node_can_be_asked_for() -> None:
    """By its name, or as one of its results; only what it depends on is read."""
    model, x = model_of(*CHAIN), uniform(3, 4)
    found = model.reference(["split:1", "sum", "x", "split"], {"x": x})
    same(found["split:1"], x[:, 2:])
    same(found["split"], x[:, :2])
    same(found["sum"], x[:, :2] + x[:, 2:])
    same(found["x"], x)
    assert nodes_read(model) == {"x", "axis", "split", "sum"}
    same(model.run(["axis"], {})["axis"], np.array(1))


def test_outputs_are_what_no_node_uses() -> None:
    assert model_of(*CHAIN).outputs == ("other", "broken")
    assert model_of(*CHAIN[:4]).outputs == ("sum",)
    same(model_of(*CHAIN[:4])(uniform(3, 4)), uniform(3, 4)[:, :2] + uniform(3, 4)[:, 2:])


def test_inputs_are_placeholders_and_then_variables() -> None:
    model = model_of(
        *variable("v", (3,)),
        placeholder("a", "int32"),
        node("b", "Placeholder", dtype=FLOAT, shape=Shape((-1, 2))),
        node("c", "PlaceholderV2", dtype=FLOAT, shape=Shape((2,))),
        placeholder("name", "string"),
        placeholder("handle", "resource"),
        node("d", "PlaceholderWithDefault", "a", dtype=INT, shape=Shape(())),
        node("e", "Placeholder"),
    )
    found = {declared.name: (str(declared.type), declared.shape, declared.optional) for declared in model.inputs}
    assert found == {
        "a": ("int32", None, True),
        "b": ("float32", (open_size("b.0"), 2), True),
        "c": ("float32", (2,), True),
        "d": ("int32", (), True),
        "v": ("float32", (3,), True),
    }
    assert list(found) == ["a", "b", "c", "d", "v"]


def test_old_graphs_leave_out_shapes() -> None:
    """Their placeholders have an empty shape, whatever they hold."""
    nodes = [placeholder("x", shape=()), node("y", "Neg", "x")]
    same(model_of(*nodes, producer=23).reference(["y"], {"x": uniform(2, 3)})["y"], -uniform(2, 3))
    with pytest.raises(tc.GraphError, match=r"input `x` is declared \(\), got \(2, 3\)"):
        model_of(*nodes, producer=24).reference(["y"], {"x": uniform(2, 3)})


def test_placeholders_with_defaults() -> None:
    model = model_of(
        const("c", [1, 2], "float32"),
        node("x", "PlaceholderWithDefault", "c", dtype=FLOAT, shape=Shape((-1,))),
        node("y", "Neg", "x"),
    )
    same(model.reference(["y"], {})["y"], f32([-1, -2]))
    same(model.reference(["y"], {"x": f32([3])})["y"], f32([-3]))


def test_open_sizes_are_named_after_placeholders() -> None:
    graph = model_of(*CHAIN[:4]).graph()
    assert str(graph.values["sum"]) == "float32(x.0, 2) sum"


# --- shapes and contents ---------------------------------------------------------------------------------


def test_shapes_that_are_computed() -> None:
    """``reshape(x, [shape(x)[0], prod(shape(x)[1:])])`` and its like stay sizes, and are no kernels."""
    nodes = [
        placeholder("x", shape=(-1, 3, 4)),
        node("shape", "Shape", "x"),
        const("zero", [0]),
        const("one", [1]),
        const("three", [3]),
        node("batch", "StridedSlice", "shape", "zero", "one", "one", shrink_axis_mask=1),
        node("rest", "StridedSlice", "shape", "one", "three", "one"),
        node("count", "Prod", "rest", "zero"),
        node("packed", "Pack", "batch", "count", N=2),
        node("flat", "Reshape", "x", "packed"),
        node("twice", "Mul", "batch", "count"),
        node("line", "ExpandDims", "twice", "zero"),
        node("y", "Reshape", "flat", "line"),
    ]
    model, x = model_of(*nodes), uniform(2, 3, 4)
    same(model.reference(["y"], {"x": x})["y"], x.reshape(-1))
    same(model.reference(["packed"], {"x": x})["packed"], i32([2, 12]))
    graph = model.graph()
    assert str(graph.values["y"]) == "float32(12 * x.0) y"
    assert not [one for one in graph.nodes if isinstance(one, Call)]


OPEN = [
    ("Add", "n + 1"), ("Sub", "n - 1"), ("Mul", "2 * n"), ("FloorDiv", "n / 2"), ("Div", "n / 2"), ("Maximum", "n"),
    ("Minimum", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), OPEN)
def test_arithmetic_of_open_sizes(name: str, expected: str) -> None:
    number = 1 if name in ("Add", "Sub", "Maximum", "Minimum") else 2
    nodes = [
        placeholder("n", shape=(-1,)),
        node("shape", "Shape", "n"),
        const("c", [number]),
        node("size", name, "shape", "c"),
        const("v", 1, "float32"),
        node("y", "Fill", "size", "v"),
    ]
    graph = model_of(*nodes).graph((open_size("n"),))
    assert str(graph.values[graph.outputs[0]].shape[0]) == expected


def test_open_sizes_that_kernels_compute_with() -> None:
    nodes = [
        placeholder("x", shape=(-1, 3)),
        node("shape", "Shape", "x", out_type=Type("int64")),
        node("y", "Cast", "shape", SrcT=Type("int64"), DstT=FLOAT),
    ]
    model = model_of(*nodes)
    same(tc.graph.Model.of(model.graph())(uniform(5, 3)), f32([5, 3]))
    same(tc.graph.Model.of(model_of(*nodes[:2]).graph())(uniform(5, 3)), np.array([5, 3]))
    many = [*nodes[:2], const("times", [200]), node("tiled", "Tile", "shape", "times"), node("y", "Neg", "tiled")]
    assert model_of(*many).reference(["y"], {"x": uniform(5, 3)})["y"].shape == (400,)


def test_sizes_that_must_be_numbers() -> None:
    """How a window lies that skips elements; and more numbers than a kernel is written for."""
    image = placeholder("x", shape=(1, -1, 4, 2))
    filters = const("f", np.ones((1, 1, 2, 3)), "float32")
    convolution = node("y", "Conv2D", "x", "f", strides=[1, 2, 2, 1], padding="SAME")
    model = model_of(image, filters, convolution)
    with pytest.raises(
        tc.GraphError, match="windows that skip elements need the extent H: call the graph, or give its"
    ):
        model.graph()
    same(model.reference(["y"], {"x": np.ones((1, 5, 4, 2), np.float32)})["y"], np.full((1, 3, 2, 3), 2, np.float32))
    shapes = [node(f"s{place}", "Shape", "x") for place in range(65)]
    axis = const("axis", 0)
    joined = node("y", "ConcatV2", *(one.name for one in shapes), "axis", N=65)
    with pytest.raises(tc.GraphError, match="260 numbers depend on sizes that are open; call the graph, or give its"):
        model_of(image, *shapes, axis, joined).graph()


def test_shapes_that_are_data() -> None:
    """What decides a shape is computed first; each shape has a graph of its own."""
    nodes = [
        placeholder("x"),
        placeholder("n", "int32"),
        const("two", 2),
        node("twice", "Mul", "n", "two"),
        node("y", "Tile", "x", "twice"),
    ]
    model = model_of(*nodes)
    for times in ([1], [2]):
        same(model.run(["y"], {"x": f32([1, 2, 3]), "n": i32(times)})["y"], np.tile(f32([1, 2, 3]), 2 * times[0]))
    with pytest.raises(tc.GraphError, match="the graph depends on the contents of twice: call the model"):
        model.graph((3,), (1,))


# --- what is refused -------------------------------------------------------------------------------------

X = [placeholder("x"), const("c", [1], "float32")]
V = node("v", "Variable", dtype=FLOAT)
REFUSED: list[tuple[list[Node], str]] = [
    (
        [node("y", "Softmx", "x")],
        r"`y`: the operator `Softmx` is not supported; did you mean `Softmax`\? Supported: Abs, ",
    ),
    ([node("y", "Relu", "x"), node("z", "QuantizedRelu", "y")], r"no node is called `w`"),
    ([node("y", "AddV2", "x")], r"node `y` \(AddV2\) takes 2 operands, got 1"),
    ([node("y", "AddV2", "x", "^c")], r"node `y` \(AddV2\) takes 2 operands, got 1"),
    ([node("y", "Neg", "xx")], r"node `y` \(Neg\): no node is called `xx`; did you mean `x`\?"),
    ([node("y", "Neg", "x:2")], r"node `y` \(Neg\): `x` has 1 result, and none is called `x:2`"),
    ([node("y", "Neg", "x", "^cc")], r"node `y` \(Neg\): no node is called `cc`; did you mean `c`\?"),
    ([node("y", "Neg", "z"), node("z", "Neg", "y")], r"node `.` \(Neg\) depends on itself"),
    ([placeholder("p"), node("y", "AddV2", "x", "p")], r"the input `p` is missing, which node `y` \(AddV2\) uses"),
    ([node("y", "NoOp", "^x", "^c")], r"node `y` \(NoOp\) has no value; ask for what it waits for: `x`, `c`"),
    ([node("y", "NoOp")], r"node `y` \(NoOp\) has no value$"),
    ([V, node("y", "Neg", "v")], r"the variable `v` has no value, which node `y` \(Neg\) uses: give it by name"),
    (
        [V, node("r", "RandomNormal", "c"), node("s", "Assign", "v", "r"), node("y", "Neg", "v")],
        r"node `r`: the operator `RandomNormal` is not supported; .*; or give the variable `v` a value, which is ",
    ),
    ([node("v", "Variable", dtype=FLOAT, shape=3)], r"the attribute `shape` must be a shape, and is an integer"),
]


@pytest.mark.parametrize(("nodes", "complaint"), REFUSED)
def test_what_is_refused(nodes: list[Node], complaint: str) -> None:
    wanted = "w" if "called `w`" in complaint else "y"
    with pytest.raises(tc.GraphError, match=complaint):
        model_of(*X, *nodes).reference([wanted], {"x": f32([1])})


def test_an_unknown_operator_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the shape of an operand is data, which would be computed first."""
    nodes = [*X, placeholder("n", "int32"), node("t", "Tile", "x", "n"), node("y", "NoSuchOperator", "t")]

    def run(*_: Any) -> None:
        pytest.fail("something runs")

    monkeypatch.setattr("tc.graph.run.evaluate.Evaluation.run", run)
    with pytest.raises(tc.GraphError, match="the operator `NoSuchOperator` is not supported"):
        model_of(*nodes).reference(["y"], {"x": f32([1]), "n": i32([1])})


def test_inputs_have_names_and_types() -> None:
    model = model_of(*CHAIN)
    with pytest.raises(tc.GraphError, match="`graph` has no input `X`; did you mean `x`"):
        model.run(["sum"], {"X": uniform(1, 4)})
    with pytest.raises(tc.GraphError, match="input `x` is declared float32, got float64"):
        model.run(["sum"], {"x": np.zeros((1, 4))})
