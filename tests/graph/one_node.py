"""Models of one node, and what they compute beside NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tc.graph

Arrays = Mapping[str, np.ndarray | None]


def one_node(
    kind: str,
    arrays: Arrays,
    results: Sequence[str] = ("Y",),
    *,
    opset: int = 23,
    domain: str = "",
    constants: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    **attributes: Any,
) -> tc.graph.Model:
    """A model of one node, whose operands are the arrays in order; None stands for one that is left out.

    ``shapes``: of inputs that are declared with open sizes.
    """
    declared = shapes or {}
    operands = ["" if array is None else name for name, array in arrays.items()]
    node = helper.make_node(kind, operands, [*results], domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), declared.get(name, array.shape)
        )
        for name, array in arrays.items()
        if array is not None and name not in constants
    ]
    held = [
        numpy_helper.from_array(array, name)
        for name, array in arrays.items()
        if array is not None and name in constants
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results if name]
    graph = helper.make_graph([node], "one", inputs, outputs, held)
    imports = (
        [helper.make_opsetid("", opset)]
        if not domain
        else [helper.make_opsetid("", 23), helper.make_opsetid(domain, opset)]
    )
    return tc.graph.load(helper.make_model(graph, opset_imports=imports))


def computed(model: tc.graph.Model, arrays: Arrays, *, compiled: bool = False) -> list[np.ndarray]:
    """The results by the oracle, or by compiled kernels."""
    names = {declared.name for declared in model.inputs}
    given = {name: array for name, array in arrays.items() if array is not None and name in names}
    found = (model.run if compiled else model.reference)(model.outputs, given)
    return [found[name] for name in model.outputs]


def check(
    kind: str,
    arrays: Arrays,
    wanted: Mapping[str, np.ndarray],
    *,
    compiled: bool = False,
    tolerance: float = 1e-5,
    constants: Sequence[str] = (),
    **given: Any,
) -> None:
    """The results of one node are what NumPy gives, in type, shape and number."""
    model = one_node(kind, arrays, [*wanted], constants=constants, **given)
    for found, right in zip(computed(model, arrays, compiled=compiled), wanted.values(), strict=True):
        assert found.dtype == right.dtype
        assert found.shape == right.shape
        exact = right.dtype.kind in "iub"
        limit = 0.0 if exact else tolerance
        np.testing.assert_allclose(found.astype(np.float64), right.astype(np.float64), rtol=limit, atol=limit)
