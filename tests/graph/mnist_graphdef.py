"""Softmax regression on MNIST as TensorFlow writes it: the head, and the graph of its training with its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.graph.comparison import i32
from tests.graph.graphdefs import Listed, Node, Shape, Type, binary, const, node, placeholder, text

DATA = Path(__file__).with_name("data")
FLOAT, INT = Type("float32"), Type("int32")
PIXELS, CLASSES = 784, 10


def variable(name: str, shape: tuple[int, ...]) -> list[Node]:
    """A variable that is initialized with zeros."""
    zeros = Listed("float32", shape, "float_val", [0.0])
    return [
        node(f"{name}/zeros", "Const", value=zeros, dtype=FLOAT),
        node(name, "VariableV2", container="", dtype=FLOAT, shape=Shape(shape), shared_name=""),
        node(
            f"{name}/Assign", "Assign", name, f"{name}/zeros", T=FLOAT, _class=[f"loc:@{name}"], use_locking=True,
            validate_shape=True,
        ),
        node(f"{name}/read", "Identity", name, T=FLOAT, _class=[f"loc:@{name}"]),
    ]  # fmt: skip


def forward() -> list[Node]:
    """``y = softmax(x @ W + b)``, and its logarithm times ``y_``."""
    return [
        placeholder("x", shape=(-1, PIXELS)),
        *variable("W", (PIXELS, CLASSES)),
        *variable("b", (CLASSES,)),
        node("MatMul", "MatMul", "x", "W/read", T=FLOAT, transpose_a=False, transpose_b=False),
        node("add", "Add", "MatMul", "b/read", T=FLOAT),
        node("Softmax", "Softmax", "add", T=FLOAT),
        placeholder("y_", shape=(-1, CLASSES)),
        node("Log", "Log", "Softmax", T=FLOAT),
        node("mul", "Mul", "y_", "Log", T=FLOAT),
    ]


def head() -> list[Node]:
    """``reshape(sum_[](y_ * log(softmax(x @ W + b))))``: the sum has no axes, and the shape is the same."""
    scope = "gradients/mul_grad"
    return [
        *forward(),
        *broadcast_arguments(scope, "y_", "Log"),
        node(f"{scope}/Sum", "Sum", "mul", f"{scope}/BroadcastGradientArgs", T=FLOAT, Tidx=INT, keep_dims=False),
        node(f"{scope}/Reshape", "Reshape", f"{scope}/Sum", f"{scope}/Shape", T=FLOAT, Tshape=INT),
    ]


def shape_of(name: str, operand: str) -> Node:
    return node(name, "Shape", operand, T=FLOAT, out_type=INT)


def broadcast_arguments(scope: str, left: str, right: str) -> list[Node]:
    return [
        shape_of(f"{scope}/Shape", left),
        shape_of(f"{scope}/Shape_1", right),
        node(f"{scope}/BroadcastGradientArgs", "BroadcastGradientArgs", f"{scope}/Shape", f"{scope}/Shape_1", T=INT),
    ]


def summed(scope: str, suffix: str, operand: str) -> list[Node]:
    """The gradient of one of two operands: over the axes along which it was repeated, in its shape."""
    axes = f"{scope}/BroadcastGradientArgs" + (":1" if suffix else "")
    shape = f"{scope}/Shape{suffix}"
    return [
        node(f"{scope}/Sum{suffix}", "Sum", operand, axes, T=FLOAT, Tidx=INT, keep_dims=False),
        node(f"{scope}/Reshape{suffix}", "Reshape", f"{scope}/Sum{suffix}", shape, T=FLOAT, Tshape=INT),
    ]


def reduction_gradient(scope: str, operand: str, axes: str, gradient: str, modulo: str, size: Node) -> list[Node]:
    """The gradient of a sum: in the shape with reduced dimensions of one element, and repeated along these."""
    return [
        shape_of(f"{scope}/Shape", operand),
        size,
        node(f"{scope}/add", "Add", axes, f"{scope}/Size", T=INT),
        node(f"{scope}/mod", modulo, f"{scope}/add", f"{scope}/Size", T=INT),
        const(f"{scope}/Shape_1", [1], "int32"),
        const(f"{scope}/range/start", 0, "int32"),
        const(f"{scope}/range/delta", 1, "int32"),
        node(f"{scope}/range", "Range", f"{scope}/range/start", f"{scope}/Size", f"{scope}/range/delta", Tidx=INT),
        const(f"{scope}/Fill/value", 1, "int32"),
        node(f"{scope}/Fill", "Fill", f"{scope}/Shape_1", f"{scope}/Fill/value", T=INT),
        node(
            f"{scope}/DynamicStitch", "DynamicStitch", f"{scope}/range", f"{scope}/mod", f"{scope}/Shape",
            f"{scope}/Fill", N=2, T=INT,
        ),
        const(f"{scope}/Maximum/y", 1, "int32"),
        node(f"{scope}/Maximum", "Maximum", f"{scope}/DynamicStitch", f"{scope}/Maximum/y", T=INT),
        node(f"{scope}/floordiv", "FloorDiv", f"{scope}/Shape", f"{scope}/Maximum", T=INT),
        node(f"{scope}/Reshape", "Reshape", gradient, f"{scope}/DynamicStitch", T=FLOAT, Tshape=INT),
        node(f"{scope}/Tile", "Tile", f"{scope}/Reshape", f"{scope}/floordiv", T=FLOAT, Tmultiples=INT),
    ]  # fmt: skip


def mean_gradient(scope: str, operand: str, axes: str, gradient: str) -> list[Node]:
    """The gradient of a mean: that of the sum over how many elements each one is the mean of."""
    size = node(f"{scope}/Size", "Size", f"{scope}/Shape", T=INT, out_type=INT)
    return [
        *reduction_gradient(scope, operand, axes, gradient, "Mod", size),
        shape_of(f"{scope}/Shape_2", operand),
        const(f"{scope}/Shape_3", [], "int32"),
        const(f"{scope}/Const", [0], "int32"),
        node(f"{scope}/Prod", "Prod", f"{scope}/Shape_2", f"{scope}/Const", T=INT, Tidx=INT, keep_dims=False),
        const(f"{scope}/Const_1", [0], "int32"),
        node(f"{scope}/Prod_1", "Prod", f"{scope}/Shape_3", f"{scope}/Const_1", T=INT, Tidx=INT, keep_dims=False),
        const(f"{scope}/Maximum_1/y", 1, "int32"),
        node(f"{scope}/Maximum_1", "Maximum", f"{scope}/Prod_1", f"{scope}/Maximum_1/y", T=INT),
        node(f"{scope}/floordiv_1", "FloorDiv", f"{scope}/Prod", f"{scope}/Maximum_1", T=INT),
        node(f"{scope}/Cast", "Cast", f"{scope}/floordiv_1", DstT=FLOAT, SrcT=INT),
        node(f"{scope}/truediv", "RealDiv", f"{scope}/Tile", f"{scope}/Cast", T=FLOAT),
    ]


def grouped(scope: str, *names: str) -> list[Node]:
    """The gradients of several operands, each of which waits for all."""
    group = f"{scope}/tuple/group_deps"
    suffixes = ["", *(f"_{place}" for place in range(1, len(names)))]
    return [
        node(group, "NoOp", *(f"^{scope}/{name}" for name in names)),
        *(
            node(
                f"{scope}/tuple/control_dependency{suffix}", "Identity", f"{scope}/{name}", f"^{group}", T=FLOAT,
                _class=[f"loc:@{scope}/{name}"],
            )
            for name, suffix in zip(names, suffixes, strict=True)
        ),
    ]  # fmt: skip


def gradients() -> list[Node]:
    """What autodiff adds for the cross entropy."""
    size = const("gradients/Sum_grad/Size", 2, "int32")
    return [
        const("gradients/Shape", [], "int32"),
        const("gradients/Const", 1.0, "float32"),
        node("gradients/Fill", "Fill", "gradients/Shape", "gradients/Const", T=FLOAT),
        *mean_gradient("gradients/Mean_grad", "Neg", "Const", "gradients/Fill"),
        node("gradients/Neg_grad/Neg", "Neg", "gradients/Mean_grad/truediv", T=FLOAT),
        *reduction_gradient(
            "gradients/Sum_grad", "mul", "Sum/reduction_indices", "gradients/Neg_grad/Neg", "FloorMod", size
        ),
        *broadcast_arguments("gradients/mul_grad", "y_", "Log"),
        node("gradients/mul_grad/mul", "Mul", "gradients/Sum_grad/Tile", "Log", T=FLOAT),
        *summed("gradients/mul_grad", "", "gradients/mul_grad/mul"),
        node("gradients/mul_grad/mul_1", "Mul", "y_", "gradients/Sum_grad/Tile", T=FLOAT),
        *summed("gradients/mul_grad", "_1", "gradients/mul_grad/mul_1"),
        *grouped("gradients/mul_grad", "Reshape", "Reshape_1"),
        node(
            "gradients/Log_grad/Reciprocal", "Reciprocal", "Softmax", "^gradients/mul_grad/tuple/control_dependency_1",
            T=FLOAT,
        ),
        node(
            "gradients/Log_grad/mul", "Mul", "gradients/mul_grad/tuple/control_dependency_1",
            "gradients/Log_grad/Reciprocal", T=FLOAT,
        ),
        node("gradients/Softmax_grad/mul", "Mul", "gradients/Log_grad/mul", "Softmax", T=FLOAT),
        const("gradients/Softmax_grad/Sum/reduction_indices", [1], "int32"),
        node(
            "gradients/Softmax_grad/Sum", "Sum", "gradients/Softmax_grad/mul",
            "gradients/Softmax_grad/Sum/reduction_indices", T=FLOAT, Tidx=INT, keep_dims=False,
        ),
        const("gradients/Softmax_grad/Reshape/shape", [-1, 1], "int32"),
        node(
            "gradients/Softmax_grad/Reshape", "Reshape", "gradients/Softmax_grad/Sum",
            "gradients/Softmax_grad/Reshape/shape", T=FLOAT, Tshape=INT,
        ),
        node("gradients/Softmax_grad/sub", "Sub", "gradients/Log_grad/mul", "gradients/Softmax_grad/Reshape", T=FLOAT),
        node("gradients/Softmax_grad/mul_1", "Mul", "gradients/Softmax_grad/sub", "Softmax", T=FLOAT),
        *broadcast_arguments("gradients/add_grad", "MatMul", "b/read"),
        *summed("gradients/add_grad", "", "gradients/Softmax_grad/mul_1"),
        *summed("gradients/add_grad", "_1", "gradients/Softmax_grad/mul_1"),
        *grouped("gradients/add_grad", "Reshape", "Reshape_1"),
        node(
            "gradients/MatMul_grad/MatMul", "MatMul", "gradients/add_grad/tuple/control_dependency", "W/read", T=FLOAT,
            transpose_a=False, transpose_b=True,
        ),
        node(
            "gradients/MatMul_grad/MatMul_1", "MatMul", "x", "gradients/add_grad/tuple/control_dependency", T=FLOAT,
            transpose_a=True, transpose_b=False,
        ),
        *grouped("gradients/MatMul_grad", "MatMul", "MatMul_1"),
    ]  # fmt: skip


def training() -> list[Node]:
    """The cross entropy, its gradients, and a step of gradient descent."""
    descent = "ApplyGradientDescent"
    return [
        *forward(),
        const("Sum/reduction_indices", [1], "int32"),
        node("Sum", "Sum", "mul", "Sum/reduction_indices", T=FLOAT, Tidx=INT, keep_dims=False),
        node("Neg", "Neg", "Sum", T=FLOAT),
        const("Const", [0], "int32"),
        node("Mean", "Mean", "Neg", "Const", T=FLOAT, Tidx=INT, keep_dims=False),
        *gradients(),
        const("GradientDescent/learning_rate", 0.5, "float32"),
        node(
            f"GradientDescent/update_W/{descent}", descent, "W", "GradientDescent/learning_rate",
            "gradients/MatMul_grad/tuple/control_dependency_1", T=FLOAT, use_locking=False,
        ),
        node(
            f"GradientDescent/update_b/{descent}", descent, "b", "GradientDescent/learning_rate",
            "gradients/add_grad/tuple/control_dependency_1", T=FLOAT, use_locking=False,
        ),
        node(
            "GradientDescent", "NoOp", f"^GradientDescent/update_W/{descent}", f"^GradientDescent/update_b/{descent}"
        ),
        node("init", "NoOp", "^W/Assign", "^b/Assign"),
    ]  # fmt: skip


FILES: dict[str, Sequence[Node]] = {"mnist_head": head(), "mnist_training": training()}


def digits(rows: int) -> dict[str, np.ndarray]:
    """Images, their classes, weights and biases."""
    random = np.random.default_rng(rows)
    return {
        "x": random.random((rows, PIXELS), np.float32),
        "y_": np.eye(CLASSES, dtype=np.float32)[random.integers(0, CLASSES, rows)],
        "W": (random.random((PIXELS, CLASSES), np.float32) - 0.5) / 10,
        "b": random.random(CLASSES, np.float32),
    }


def subgraphs(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The six subgraphs of the gradients, as NumPy computes them."""
    rows = len(given["x"])
    each = np.full((rows, 1), -1 / rows, np.float32)
    return {
        "gradients/Sum_grad/mod": i32([1]),
        "gradients/Mean_grad/mod": i32([0]),
        "gradients/Mean_grad/floordiv": i32([rows]),
        "gradients/Sum_grad/floordiv": i32([1, CLASSES]),
        "gradients/Sum_grad/Reshape": each,
        "gradients/mul_grad/Reshape_1": given["y_"] * each,
    }


def write() -> None:
    """Writes the files anew."""
    for name, nodes in FILES.items():
        (DATA / f"{name}.pbtxt").write_text(text(nodes), encoding="utf-8")
        (DATA / f"{name}.pb").write_bytes(binary(nodes))


if __name__ == "__main__":
    write()
