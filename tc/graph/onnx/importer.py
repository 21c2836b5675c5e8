"""ONNX models as sources of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.base.errors import GraphError
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import Dimension, open_size
from tc.graph.ir.source import Declared, Request
from tc.graph.onnx.building import Building, Model
from tc.graph.onnx.functions import opsets_of
from tc.graph.onnx.tensors import array_of, type_of
from tc.graph.onnx.well_formed import require_known, require_single, require_texts

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

    from tc.graph.onnx.tensors import Folder


class OnnxSource:
    """A model; ``folder`` is where its data may lie beside it.  GraphError where it is malformed, or not supported."""

    def __init__(self, model: ModelProto, folder: Folder | None = None) -> None:
        require_texts(model)
        graph = model.graph
        self._graph: Final = graph
        functions = {(function.domain, function.name): function for function in model.functions}
        self._model: Final = Model(graph.name or "graph", opsets_of(model.opset_import), functions, folder)
        self._constants: Final = {
            tensor.name: array_of(tensor, folder, f"the initializer `{tensor.name}`") for tensor in graph.initializer
        }
        if graph.sparse_initializer:
            raise GraphError("sparse initializers are not supported")
        given = [entry for entry in graph.input if entry.name not in self._constants]
        self.inputs: Final = tuple(map(_declared, given))
        self.outputs: Final = tuple(entry.name for entry in graph.output)
        require_single(graph)
        require_known(graph.node, self._model.opsets, functions)

    @property
    def name(self) -> str:
        """What the model calls its graph."""
        return self._model.name

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The initializers by name."""
        return self._constants

    def elaborate(self, request: Request) -> Graph:
        """The graph for the shapes of the inputs."""
        return Building(self._model, request).graph(self.inputs, self._constants, self._graph.node)


def _declared(entry: ValueInfoProto) -> Declared:
    """An input with its shape: numbers, and open sizes by their names."""
    what = f"the input `{entry.name}`"
    if not entry.type.HasField("tensor_type"):
        kind = entry.type.WhichOneof("value") or "nothing"
        raise GraphError(f"{what} is a {kind.removesuffix('_type')}, and must be a tensor")
    tensor = entry.type.tensor_type
    type = type_of(tensor.elem_type, what)
    if not tensor.HasField("shape"):
        return Declared(entry.name, type, None)
    shape: list[Dimension] = []
    for place, extent in enumerate(tensor.shape.dim):
        if extent.HasField("dim_value") and extent.dim_value >= 0:
            shape.append(int(extent.dim_value))
        else:
            known = any(map(str.isalpha, extent.dim_param))  # some write `?` for whatever comes
            shape.append(open_size(extent.dim_param if known else f"{entry.name}.{place}"))
    return Declared(entry.name, type, tuple(shape))
