"""What operands and attributes of TensorFlow's operators must not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc
from tc.graph.graphdef.operators import OPERATORS
from tests.graph.comparison import uniform
from tests.graph.graphdefs import Attribute, Fixed, Listed, Type, applied, fixed

X = uniform(2, 3)
ROW, NUMBER = X[0].copy(), X[0, 0].reshape(())
IMAGE = uniform(1, 4, 4, 2)
ONES, SQUARE = [1, 1, 1, 1], [1, 2, 2, 1]
INDICES = np.zeros(2, np.int32)


def refused(message: str, name: str, *operands: np.ndarray | Fixed, **attributes: Attribute) -> tuple[Any, ...]:
    return message, name, operands, attributes


ARITY = [
    refused(r"node `y` \(AddV2\) takes 2 operands, got 1", "AddV2", X),
    refused(r"node `y` \(Neg\) takes 1 operand, got 2", "Neg", X, X),
    refused(r"node `y` \(Pack\) takes 3 operands, got 2", "Pack", X, X, N=3),
    refused(r"node `y` \(AddN\): the attribute `N` must be 1 or more, and is 0", "AddN", N=0),
    refused(r"node `y` \(AddN\) takes at least 1 operand, got 0", "AddN"),
    refused(r"node `y` \(DynamicStitch\) takes at least 2 operands, got 3", "DynamicStitch", X, X, X),
]
ATTRIBUTES = [
    refused(r"node `y` \(Cast\): the attribute `DstT` is missing", "Cast", X),
    refused(r"node `y` \(Cast\): `DstT` has the type DT_STRING, which is not", "Cast", X, DstT=Type("string")),
    refused(r"the attribute `DstT` must be a type, and is an integer", "Cast", X, DstT=3),
    refused(r"the attribute `num` must be an integer, and is a list", "Unpack", X, num=[1, 2]),
    refused(r"the attribute `squeeze_dims` must be a list of integers", "Squeeze", X, squeeze_dims=1),
]
PRODUCTS = [
    refused(r"node `y` \(AddV2\): the shapes \(2, 3\) and \(2\) cannot be broadcast", "AddV2", X, X[:, 0].copy()),
    refused(r"node `y` \(AddV2\): the shapes \(2\) and \(3\) cannot be", "AddV2", fixed([1, 2]), fixed([1, 2, 3])),
    refused(r"node `y` \(Sub\): (.|\n)*bool", "Sub", X > 0, X > 0),
    refused(r"node `y` \(MatMul\): operand 1 must have 2 dimensions, and has 1", "MatMul", X, ROW),
    refused(r"node `y` \(MatMul\): .*`K`", "MatMul", X, X),
    refused(r"operands must have 2 dimensions at least", "BatchMatMulV2", X, ROW),
    refused(r"operand 1 must have 1 dimension, and has 2", "BiasAdd", X, X),
    refused(r"the layout `CHWN` is not supported; supported: NHWC, NCHW", "BiasAdd", X, ROW, data_format="CHWN"),
    refused(r"operand 0 must have 2 dimensions at least, and has 1", "BiasAdd", ROW, ROW),
    refused(r"there is no axis 2 in a tensor with 2 dimensions", "Sum", X, fixed([2])),
    refused(r"there is no axis -3 in a tensor with 2 dimensions", "ArgMax", X, fixed(-3)),
    refused(r"operand 1 must have one element, and has 2", "ArgMax", X, fixed([0, 1])),
    refused(r"operand 0 must have a dimension", "Softmax", NUMBER),
    refused(r"operand 0 must have 2 dimensions, and has 1", "SoftmaxCrossEntropyWithLogits", ROW, ROW),
]
LAYOUT = [
    refused(r"extents must be -1 or more, and are -2, -1", "Reshape", X, fixed([-2, -1])),
    refused(r"extents must not be negative, and are 2, -1", "Fill", fixed([2, -1]), NUMBER),
    refused(r"extents must not be negative, and are -1, 3", "BroadcastTo", X, fixed([-1, 3])),
    refused(r"multiples must not be negative, and are 1, -1", "Tile", X, fixed([1, -1])),
    refused(r"1099511627776 parts are more than 4096", "Unpack", X, num=1 << 40),
    refused(r"1099511627776 parts are more than 4096", "Split", fixed(1), X, num_split=1 << 40),
    refused(r"an index is 5000, and there are 1 rows", "DynamicStitch", fixed([5000]), ROW[:1], N=1),
    refused(r"a shape has several -1", "Reshape", X, fixed([-1, -1])),
    refused(
        r"node `y` \(Reshape\): `x0` of shape \(2, 3\) cannot be reshaped to \(4, 2\)", "Reshape", X, fixed([4, 2])
    ),
    refused(r"dimension 0 has 2 elements, and is squeezed", "Squeeze", X, squeeze_dims=[0]),
    refused(r"node `y` \(Transpose\): `x0` of shape \(2, 3\) cannot be permuted", "Transpose", X, fixed([0, 0])),
    refused(r"multiples must have 2 elements, and have 1", "Tile", X, fixed([2])),
    refused(r"operands must have as many dimensions as each other", "Pack", X, ROW, N=2),
    refused(r"dimension 1 has 3 elements, and is unpacked to 2", "Unpack", X, num=2, axis=1),
    refused(r"operands must have as many dimensions as each other", "ConcatV2", X, ROW, fixed(0), N=2),
    refused(r"dimension 1 has 3 elements, which are not 2 times as many", "Split", fixed(1), X, num_split=2),
    refused(r"parts of 1, 1 elements are not the 3 of dimension 1", "SplitV", X, fixed([1, 1]), fixed(1)),
    refused(r"begin and size must have 2 elements, as the tensor has", "Slice", X, fixed([0]), fixed([1])),
    refused(r"3 elements from 1 on are outside of a dimension with 3", "Slice", X, fixed([0, 1]), fixed([2, 3])),
    refused(r"begin, end and strides must have as many", "StridedSlice", X, fixed([0]), fixed([1]), fixed([1, 1])),
    refused(r"a subscript has several ellipses", "StridedSlice", X, *[fixed([1, 1])] * 3, ellipsis_mask=3),
    refused(r"3 subscripts of a tensor with 2 dimensions", "StridedSlice", X, *[fixed([1, 1, 1])] * 3),
    refused(r"a stride must not be 0", "StridedSlice", X, *[fixed([0])] * 3),
    refused(
        r"the subscript 2 is outside of a dimension with 2", "StridedSlice", X, *[fixed([2])] * 3, shrink_axis_mask=1
    ),
    refused(r"paddings must be 2 pairs of numbers from 0 on, and are 1, 0", "Pad", X, fixed([[1, 0]])),
    refused(r"paddings must be 2 pairs of numbers from 0 on", "Pad", X, fixed([[1, -1], [0, 0]])),
    refused(r"the step of a range must not be 0", "Range", fixed(0), fixed(3), fixed(0)),
    refused(r"operand 0 must have 0 dimensions, and has 1", "Range", fixed([0]), fixed(3), fixed(1)),
    refused(r"\(2, 3\) and \(2, 4\) cannot be broadcast", "BroadcastGradientArgs", fixed([2, 3]), fixed([2, 4])),
    refused(r"batch_dims must be from 0 to 0, and is 1", "GatherV2", X, INDICES, fixed(0), batch_dims=1),
    refused(r"the depth must have one element, and has 2", "OneHot", INDICES, fixed([1, 2]), fixed(1), fixed(0)),
    refused(r"an index is negative", "DynamicStitch", fixed([-1]), ROW[:1], N=1),
]
WINDOWS = [
    refused(r"the layout `CHWN` is not supported; supported: NCHW, NHWC", "MaxPool", IMAGE, data_format="CHWN"),
    refused(r"operand 0 must have 4 dimensions, and has 2", "MaxPool", X, ksize=SQUARE, strides=ONES, padding="SAME"),
    refused(r"`ksize` must be 4 positive integers, and is \[1, 0, 1, 1\]", "MaxPool", IMAGE, ksize=[1, 0, 1, 1]),
    refused(r"`ksize` must be 1 for batches and channels, and is \[1, 1, 1, 2\]", "MaxPool", IMAGE, ksize=[1, 1, 1, 2]),
    refused(
        r"the padding `FULL` is not supported; supported: EXPLICIT, SAME, VALID",
        "MaxPool", IMAGE, ksize=SQUARE, strides=ONES, padding="FULL",
    ),
    refused(
        r"explicit_paddings must be 8 numbers that are not negative, and is \[1\]",
        "MaxPool", IMAGE, ksize=SQUARE, strides=ONES, padding="EXPLICIT", explicit_paddings=[1],
    ),
    refused(
        r"a window reaches over 5 elements of H, and there are 4",
        "Conv2D", IMAGE, uniform(5, 5, 2, 1), strides=ONES, padding="VALID",
    ),
    refused(
        r"filters of 3 channels do not fit an operand with 2",
        "Conv2D", IMAGE, uniform(1, 1, 3, 1), strides=ONES, padding="SAME",
    ),
    refused(
        r"node `y` \(DepthwiseConv2dNative\): weights for 3 groups of 1 channels do not fit 2 channels",
        "DepthwiseConv2dNative", IMAGE, uniform(1, 1, 3, 1), strides=ONES, padding="SAME",
    ),
    refused(r"depth_radius must not be negative, and is -2", "LRN", IMAGE, depth_radius=-2),
    refused(r"in training is not supported; export the graph for", "FusedBatchNormV3", IMAGE, *[uniform(2)] * 4),
]  # fmt: skip
CONSTANTS = [
    refused(
        r"the tensor has the type DT_STRING, which is not", "Const", value=Listed("string", (), "string_val", [b"a"])
    ),
    refused(r"the tensor has the type DT_COMPLEX64", "Const", value=Listed("complex64", (1,), "float_val", [])),
    refused(r"a tensor announces 1 elements, and has 2", "Const", value=Listed("int32", (1,), "int_val", [1, 2])),
    refused(r"announces 4398046511104 bytes", "Const", value=Listed("float32", (1 << 20, 1 << 20), "float_val", [1.0])),
    refused(
        r"a tensor has 65 dimensions, which are more than 64", "Const", value=Listed("int8", (1,) * 65, "int_val", [])
    ),
    refused(r"a tensor has a shape that is not known", "Const", value=Listed("float32", (-1,), "float_val", [1.0])),
]


@pytest.mark.parametrize(
    ("message", "name", "operands", "attributes"),
    [*ARITY, *ATTRIBUTES, *PRODUCTS, *LAYOUT, *WINDOWS, *CONSTANTS],
)
def test_what_is_refused(
    message: str, name: str, operands: tuple[np.ndarray | Fixed, ...], attributes: dict[str, Any]
) -> None:
    with pytest.raises(tc.GraphError, match=message):
        applied(name, *operands, **attributes)


def test_every_operator_is_tested() -> None:
    """By name, here or in the tests of whole graphs."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*graphdef*.py"))
    assert [name for name in OPERATORS if f'"{name}"' not in tests and not name.endswith("Grad")] == []
