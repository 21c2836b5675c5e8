"""ONNX's interface for backends: ``prepare``, ``run_model``, ``run_node``, ``supports_device``.

>>> from tc.graph import onnx_backend as backend
>>> (y,) = backend.prepare(model).run([x])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend import base
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from tc.api.available import targets
from tc.base.errors import GraphError
from tc.graph.load import load
from tc.graph.model import Model


class Prepared(base.BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **_options: object) -> tuple[np.ndarray, ...]:
        """The results in order, for inputs in order or by name, or for the only one."""
        model = self.model
        names = [declared.name for declared in model.inputs]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, Sequence):
            given = dict(zip(names, inputs, strict=False))
        else:
            given = {names[0]: inputs}
        found = model.run(model.outputs, given)
        return tuple(found[name] for name in model.outputs)


class Backend(base.Backend):
    """Runs models of ONNX by comprehensions."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_options: object) -> Prepared:
        """The model, ready to run on ``CPU`` or ``CUDA``."""
        try:
            return Prepared(load(model, target="cuda" if device.startswith("CUDA") else None))
        except GraphError as error:
            raise BackendIsNotSupposedToImplementIt(str(error)) from error

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any
    ) -> tuple[np.ndarray, ...]:
        """The results of one node; ``outputs_info`` follows from it."""
        del outputs_info
        arrays = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
        names = list(inputs) if isinstance(inputs, Mapping) else [name for name in node.input if name]
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", given, results)
        version = options.get("opset_version")
        opsets = [helper.make_opsetid("", version)] if version else None
        return cls.prepare(helper.make_model(graph, opset_imports=opsets), device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether this machine can run models there."""
        return device == "CPU" or (device.startswith("CUDA") and targets()["cuda"].startswith("available"))


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
