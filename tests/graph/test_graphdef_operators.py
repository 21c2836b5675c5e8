"""Pointwise operators of TensorFlow, products, reductions and softmax beside NumPy, on ragged shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import tc
from tests.graph.comparison import f32, i32, same, uniform, whole
from tests.graph.graphdefs import Fixed, Type, applied, fixed

Array = np.ndarray

FLOATS = np.array(
    [-np.inf, -7.5, -2.5, -1.5, -0.5, -0.0, 0.0, 0.25, 0.5, 1.5, 2.5, 3.75, 6.5, np.inf, np.nan], np.float32
)
INTEGERS = np.array([-7, -3, -1, 0, 1, 2, 9], np.int32)


# --- pointwise --------------------------------------------------------------------------------------------

SCALE, SCALE_ALPHA = 1.0507009873554805, 1.7580993408473768
UNARY: dict[str, tuple[Callable[[Array], Any], float, float]] = {
    "Abs": (np.abs, -2, 2),
    "Acos": (np.arccos, -1, 1),
    "Acosh": (np.arccosh, 1, 4),
    "Asin": (np.arcsin, -1, 1),
    "Asinh": (np.arcsinh, -2, 2),
    "Atan": (np.arctan, -2, 2),
    "Atanh": (np.arctanh, -0.9, 0.9),
    "Cos": (np.cos, -2, 2),
    "Cosh": (np.cosh, -2, 2),
    "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), -2, 2),
    "Erf": (special.erf, -2, 2),
    "Erfc": (special.erfc, -2, 2),
    "Exp": (np.exp, -2, 2),
    "Expm1": (np.expm1, -2, 2),
    "Inv": (np.reciprocal, 1, 2),
    "Lgamma": (special.gammaln, 0.5, 4),
    "Log": (np.log, 0.1, 4),
    "Log1p": (np.log1p, -0.9, 4),
    "Neg": (np.negative, -2, 2),
    "Reciprocal": (np.reciprocal, 1, 2),
    "Relu": (lambda x: np.maximum(x, 0), -2, 2),
    "Relu6": (lambda x: np.clip(x, 0, 6), -2, 9),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4),
    "Selu": (lambda x: np.where(x < 0, SCALE_ALPHA * np.expm1(x), SCALE * x), -2, 2),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -3, 3),
    "Sin": (np.sin, -2, 2),
    "Sinh": (np.sinh, -2, 2),
    "Softplus": (lambda x: np.log1p(np.exp(x)), -2, 2),
    "Softsign": (lambda x: x / (1 + np.abs(x)), -2, 2),
    "Sqrt": (np.sqrt, 0, 4),
    "Square": (np.square, -2, 2),
    "Tan": (np.tan, -1, 1),
    "Tanh": (np.tanh, -2, 2),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name: str) -> None:
    function, low, high = UNARY[name]
    x = uniform(3, 1, 5, low=low, high=high)
    same(applied(name, x)[0], np.asarray(function(x)).astype(np.float32))
    same(applied(name, x[:0])[0], x[:0])
    half = x.astype(np.float16)
    same(applied(name, half)[0], np.asarray(function(half.astype(np.float64))).astype(np.float16), tolerance=2e-3)


@pytest.mark.parametrize("name", ["Ceil", "Floor", "Rint", "Round", "Sign", "IsFinite", "IsInf", "IsNan"])
def test_functions_that_round_or_look(name: str) -> None:
    function = {
        "Ceil": np.ceil, "Floor": np.floor, "Rint": np.rint, "Round": np.rint, "Sign": np.sign,
        "IsFinite": np.isfinite, "IsInf": np.isinf, "IsNan": np.isnan,
    }[name]  # fmt: skip
    found = applied(name, FLOATS)[0]
    same(found, function(FLOATS))
    if name in ("Rint", "Round"):
        np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(function(FLOATS)[:-1]))


@pytest.mark.parametrize("name", ["Abs", "Ceil", "Floor", "Neg", "Relu", "Relu6", "Round", "Sign", "Square"])
def test_functions_of_integers(name: str) -> None:
    functions: dict[str, Callable[[Array], Any]] = {
        "Abs": np.abs, "Ceil": np.array, "Floor": np.array, "Neg": np.negative, "Relu": lambda x: np.maximum(x, 0),
        "Relu6": lambda x: np.clip(x, 0, 6), "Round": np.array, "Sign": np.sign, "Square": np.square,
    }  # fmt: skip
    same(applied(name, INTEGERS)[0], functions[name](INTEGERS))


def test_logarithms_and_activations_at_their_ends() -> None:
    x = np.array([-np.inf, -200, 0, 200, np.inf], np.float32)
    same(applied("Sigmoid", x)[0], np.array([0, 0, 0.5, 1, 1], np.float32))
    same(applied("Softplus", x)[0], np.array([0, 0, math.log(2), 200, np.inf], np.float32))
    same(applied("Elu", x)[0], np.array([-1, -1, 0, 200, np.inf], np.float32))
    same(applied("LeakyRelu", x, alpha=0.5)[0], np.array([-np.inf, -100, 0, 200, np.inf], np.float32))
    same(applied("LeakyRelu", x)[0], np.array([-np.inf, -40, 0, 200, np.inf], np.float32))


BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Atan2": np.arctan2,
    "Div": np.divide,
    "DivNoNan": lambda x, y: np.divide(
        x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape), x.dtype), where=y != 0
    ),
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mod": np.fmod,
    "Mul": np.multiply,
    "RealDiv": np.divide,
    "SquaredDifference": lambda x, y: np.square(x - y),
    "Sub": np.subtract,
    "TruncateMod": np.fmod,
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name: str) -> None:
    x, y = uniform(3, 1, 5, seed=1), uniform(4, 1, seed=2)
    y[0] = 0 if name == "DivNoNan" else y[0]
    same(applied(name, x, y)[0], BINARY[name](x, y))
    same(applied(name, x[:, :, :0], y)[0], BINARY[name](x[:, :, :0], y))
    same(applied(name, x, f32(1.5))[0], BINARY[name](x, f32(1.5)))


@pytest.mark.parametrize("name", ["Add", "Div", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Mod", "Mul", "Sub",
                                  "SquaredDifference", "TruncateDiv", "TruncateMod"])  # fmt: skip
def test_arithmetic_of_integers(name: str) -> None:
    """By kernels and on known contents; what is divided by 0 is 0."""
    left, right = INTEGERS[:, None], np.array([-4, -2, -1, 1, 3], np.int32)
    truncated = np.trunc(left / right).astype(np.int32)
    function = {**BINARY, "Div": lambda *_: truncated, "TruncateDiv": lambda *_: truncated}[name]
    same(applied(name, left, right)[0], function(left, right))
    same(applied(name, Fixed(left), Fixed(right))[0], function(left, right))
    zero = np.zeros(5, np.int32)
    if "Div" in name or "Mod" in name:
        same(applied(name, right, zero)[0], zero)
        same(applied(name, Fixed(right), Fixed(zero))[0], zero)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "uint64"])
def test_integers_wrap(dtype: str) -> None:
    most = np.full(3, np.iinfo(dtype).max, dtype)
    one = np.ones(3, dtype)
    same(applied("AddV2", most, one)[0], np.full(3, np.iinfo(dtype).min, dtype))
    same(applied("AddV2", Fixed(most), Fixed(one))[0], np.full(3, np.iinfo(dtype).min, dtype))


TRUTHS: dict[str, Callable[[Array, Array], Any]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "NotEqual": np.not_equal,
}


@pytest.mark.parametrize("name", TRUTHS)
def test_comparisons(name: str) -> None:
    x, y = whole(5, 1, low=-2, high=3), whole(7, low=-2, high=3, seed=1)
    same(applied(name, x, y)[0], TRUTHS[name](x, y))
    same(applied(name, Fixed(x), Fixed(y))[0], TRUTHS[name](x, y))
    same(applied(name, FLOATS[:, None], FLOATS)[0], TRUTHS[name](FLOATS[:, None], FLOATS))


def test_logic() -> None:
    x, y = np.array([[False], [True]]), np.array([False, True, True])
    for kind in (lambda array: array, Fixed):
        same(applied("LogicalAnd", kind(x), kind(y))[0], x & y)
        same(applied("LogicalOr", kind(x), kind(y))[0], x | y)
        same(applied("LogicalNot", kind(x))[0], ~x)


def test_powers() -> None:
    x, y = uniform(3, 1, low=0.1, high=3), uniform(4, low=-2, high=2)
    same(applied("Pow", x, y)[0], np.power(x, y))
    base = np.array([-3, -2, -1, 0, 1, 2, 3], np.int64)
    exponent = np.array([[0], [1], [2], [5], [31], [62]], np.int64)
    same(applied("Pow", base, exponent)[0], np.power(base, exponent))
    same(
        applied("Pow", np.array([-1, 1, 2, -1], np.int32), np.array([99, 100, -1, -3], np.int32))[0],
        i32([-1, 1, 0, -1]),
    )


def test_sums_of_many() -> None:
    parts = [uniform(3, 5, seed=seed) for seed in range(4)]
    same(applied("AddN", *parts, N=4)[0], sum(parts[1:], parts[0]))
    same(applied("AddN", parts[0], N=1)[0], parts[0])


def test_selections() -> None:
    condition, x, y = whole(4, low=0, high=2) > 0, uniform(4, 3), uniform(4, 3, seed=1)
    same(applied("Select", condition, x, y)[0], np.where(condition[:, None], x, y))
    same(applied("Select", condition, x[:, 0].copy(), y[:, 0].copy())[0], np.where(condition, x[:, 0], y[:, 0]))
    row = np.array([True, False, True])
    same(applied("SelectV2", row, x, f32(2))[0], np.where(row, x, np.float32(2)))
    whole_numbers = [fixed([1, 2, 3]), fixed([4, 5, 6])]
    same(applied("SelectV2", Fixed(row), *whole_numbers)[0], i32([1, 5, 3]))


def test_bounds() -> None:
    x = uniform(3, 5)
    low, high = f32(-1), f32(0.5)
    same(applied("ClipByValue", x, low, high)[0], np.clip(x, -1, 0.5))


@pytest.mark.parametrize("target", ["int32", "uint8", "bool", "float64", "float16", "int64"])
def test_casts(target: str) -> None:
    x = np.array([[-3.75, -1, 0], [0.5, 1, 7.9]], np.float32)
    x = np.abs(x) if target == "uint8" else x
    same(applied("Cast", x, SrcT=Type("float32"), DstT=Type(target))[0], x.astype(target))
    known = fixed([[1, 0, 5]])
    same(applied("Cast", known, SrcT=Type("int32"), DstT=Type(target))[0], known.array.astype(target))


def test_casts_to_integers_saturate() -> None:
    found = applied("Cast", np.array([1e20, -1e20, np.nan], np.float32), DstT=Type("int32"))[0]
    same(found, np.array([2**31 - 1, -(2**31), 0], np.int32))


def test_bfloat16() -> None:
    from ml_dtypes import bfloat16

    x = uniform(5).astype(bfloat16)
    found = applied("Mul", x, x)[0]
    assert found.dtype == bfloat16
    np.testing.assert_array_equal(found, x * x)
    same(applied("Cast", x, DstT=Type("float32"))[0], x.astype(np.float32))


# --- gradients --------------------------------------------------------------------------------------------


def test_gradients_of_functions() -> None:
    """Beside differences of the functions."""
    x = uniform(4, 5, low=-1.9, high=1.9).astype(np.float64)
    gradient = uniform(4, 5, seed=1).astype(np.float64)
    step = 1e-6
    for name, function in (("Relu", "operand"), ("Relu6", "operand"), ("Softplus", "operand"), ("Softsign", "operand"),
                           ("Elu", "result"), ("Selu", "result")):  # fmt: skip
        ahead, behind = applied(name, x + step)[0], applied(name, x - step)[0]
        other = x if function == "operand" else applied(name, x)[0]
        same(applied(f"{name}Grad", gradient, other)[0], gradient * (ahead - behind) / (2 * step), tolerance=1e-6)
    x = np.abs(x) + 0.5
    for name in ("Sigmoid", "Tanh", "Sqrt", "Rsqrt", "Inv", "Reciprocal"):
        ahead, behind = applied(name, x + step)[0], applied(name, x - step)[0]
        found = applied(f"{name}Grad", applied(name, x)[0], gradient)[0]
        same(found, gradient * (ahead - behind) / (2 * step), tolerance=1e-6)


def test_gradients_of_biases() -> None:
    x = uniform(2, 3, 4, 5)
    same(applied("BiasAddGrad", x)[0], x.sum((0, 1, 2)), tolerance=1e-5)
    same(applied("BiasAddGrad", x, data_format="NCHW")[0], x.sum((0, 2, 3)), tolerance=1e-5)
    same(applied("BiasAddGrad", x[0, 0])[0], x[0, 0].sum(0), tolerance=1e-5)


def test_steps_of_gradient_descent() -> None:
    variable, gradient = uniform(3, 5), uniform(3, 5, seed=1)
    rate = f32(0.25)
    same(applied("ApplyGradientDescent", variable, rate, gradient)[0], variable - rate * gradient)


# --- products ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_matrix_products(turned: tuple[bool, bool]) -> None:
    left, right = uniform(3, 7), uniform(7, 5, seed=1)
    operands = [np.ascontiguousarray(x.T) if turn else x for x, turn in zip((left, right), turned, strict=True)]
    found = applied("MatMul", *operands, transpose_a=turned[0], transpose_b=turned[1])[0]
    same(found, left @ right, tolerance=1e-5)
    left, right = uniform(2, 1, 3, 7), uniform(4, 7, 5, seed=1)
    operands = [
        np.ascontiguousarray(np.swapaxes(x, -1, -2)) if t else x for x, t in zip((left, right), turned, strict=True)
    ]
    found = applied("BatchMatMulV2", *operands, adj_x=turned[0], adj_y=turned[1])[0]
    same(found, left @ right, tolerance=1e-5)


def test_products_of_nothing_and_of_integers() -> None:
    same(applied("MatMul", np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32))[0], np.zeros((3, 2), np.float32))
    left, right = whole(2, 3), whole(3, 4)
    same(applied("MatMul", left, right)[0], left @ right)
    same(applied("BatchMatMul", left[None], right[None])[0], (left @ right)[None])


def test_biases() -> None:
    x, bias = uniform(2, 3, 4, 3), uniform(3, seed=1)
    same(applied("BiasAdd", x, bias)[0], x + bias)
    same(applied("BiasAdd", x, bias, data_format="NHWC")[0], x + bias)
    same(applied("BiasAdd", x, bias, data_format="NCHW")[0], x + bias[:, None, None])
    same(applied("BiasAddV1", x[0, 0], bias)[0], x[0, 0] + bias)


# --- reductions -------------------------------------------------------------------------------------------

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Max": np.max, "Mean": np.mean, "Min": np.min, "Prod": np.prod, "Sum": np.sum,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axes", [(), (0,), (-1,), (0, 2), (2, 1, 0)])
def test_reductions(name: str, axes: tuple[int, ...]) -> None:
    x = uniform(3, 1, 7)
    for keep in (False, True):
        expected = REDUCTIONS[name](x, tuple(axes), keepdims=keep)
        same(applied(name, x, fixed(list(axes)), keep_dims=keep)[0], expected, tolerance=1e-5)


def test_reductions_of_axes_that_are_data() -> None:
    x = uniform(3, 5)
    same(applied("Sum", x, np.array([1], np.int32))[0], x.sum(1), tolerance=1e-5)
    same(applied("Sum", x, np.array(0, np.int64))[0], x.sum(0), tolerance=1e-5)


def test_reductions_of_integers() -> None:
    x = whole(3, 5)
    for kind in (lambda array: array, Fixed):
        same(applied("Sum", kind(x), fixed([1]))[0], x.sum(1, dtype=np.int32))
        same(applied("Prod", kind(x), fixed([0]))[0], x.prod(0, dtype=np.int32))
        same(applied("Max", kind(x), fixed([0, 1]))[0], x.max())
        same(applied("Min", kind(x), fixed([-2]), keep_dims=True)[0], x.min(0, keepdims=True))
    same(applied("Mean", x, fixed([1]))[0], np.trunc(x.sum(1) / 5).astype(np.int32))


def test_reductions_of_nothing() -> None:
    x = np.zeros((3, 0), np.float32)
    same(applied("Sum", x, fixed([1]))[0], np.zeros(3, np.float32))
    same(applied("Prod", x, fixed([1]))[0], np.ones(3, np.float32))
    same(applied("Max", x, fixed([1]))[0], np.full(3, -np.inf, np.float32))
    same(applied("Mean", x, fixed([1]))[0], np.full(3, np.nan, np.float32))
    same(applied("Prod", Fixed(np.zeros(0, np.int32)), fixed([0]))[0], np.int32(1))


def test_reductions_of_truths() -> None:
    x = np.array([[True, False, True], [True, True, True], [False, False, False]])
    same(applied("Any", x, fixed([1]))[0], x.any(1))
    same(applied("All", x, fixed([1]), keep_dims=True)[0], x.all(1, keepdims=True))
    same(applied("All", x[:, :0], fixed([1]))[0], np.ones(3, bool))
    same(applied("Any", x[:, :0], fixed([1]))[0], np.zeros(3, bool))
    same(applied("Any", x, fixed([]))[0], x)


def test_indices_of_extremes() -> None:
    x = whole(4, 1, 9)
    same(applied("ArgMax", x, fixed(2))[0], x.argmax(2))
    same(applied("ArgMin", x, fixed(-3))[0], x.argmin(0))
    same(applied("ArgMax", x, fixed(2), output_type=Type("int32"))[0], x.argmax(2).astype(np.int32))
    same(applied("ArgMax", x > 0, fixed(2))[0], (x > 0).argmax(2))


def test_half_of_squares() -> None:
    x = uniform(3, 5)
    same(applied("L2Loss", x)[0], np.float32((x * x).sum() / 2), tolerance=1e-5)


# --- softmax ----------------------------------------------------------------------------------------------


def test_softmax() -> None:
    x = uniform(2, 3, 7, low=-90, high=90)
    same(applied("Softmax", x)[0], special.softmax(x.astype(float), -1).astype(np.float32))
    same(applied("LogSoftmax", x)[0], special.log_softmax(x.astype(float), -1).astype(np.float32), tolerance=1e-5)
    same(applied("Softmax", x[0, 0])[0], special.softmax(x[0, 0].astype(float)).astype(np.float32))


@pytest.mark.parametrize("compiled", [False, True])
def test_cross_entropies(compiled: bool) -> None:
    logits = uniform(5, 7, low=-50, high=50)
    labels = special.softmax(uniform(5, 7, seed=1), 1).astype(np.float32)
    logarithms = special.log_softmax(logits.astype(float), 1)
    kind = "SoftmaxCrossEntropyWithLogits"
    loss, gradient = applied(kind, logits, labels, results=2, compiled=compiled)
    same(loss, -(labels * logarithms).sum(1).astype(np.float32), tolerance=1e-5)
    same(gradient, (np.exp(logarithms) - labels).astype(np.float32))
    rows = applied(kind, logits[:1], labels, results=2)[1]
    same(rows, (np.exp(logarithms[:1]) - labels).astype(np.float32))
    indices = whole(5, low=0, high=7, dtype="int64")
    loss, gradient = applied(f"Sparse{kind}", logits, indices, results=2, compiled=compiled)
    same(loss, -logarithms[np.arange(5), indices].astype(np.float32), tolerance=1e-5)
    same(gradient, (np.exp(logarithms) - np.eye(7)[indices]).astype(np.float32))


def test_what_is_not_used_of_a_cross_entropy_is_not_computed() -> None:
    logits, labels = uniform(5, 7), whole(5, low=0, high=7)
    assert applied("SparseSoftmaxCrossEntropyWithLogits", logits, labels)[0].shape == (5,)
    with pytest.raises(tc.ArgumentError, match="dimension 1 of A"):
        applied("SparseSoftmaxCrossEntropyWithLogits", logits, labels + 7)
