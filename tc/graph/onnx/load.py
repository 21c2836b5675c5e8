"""Reads ONNX models: a path, bytes, or what the ``onnx`` package has parsed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from tc.base.digest import sha256_hex
from tc.base.errors import GraphError

if TYPE_CHECKING:
    from onnx import ModelProto

    from tc.graph.onnx.importer import OnnxSource
    from tc.graph.onnx.tensors import Folder


def read_model(data: bytes, place: str) -> ModelProto:
    """The model that the bytes hold; GraphError if they hold none."""
    onnx_package(place)
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise GraphError(f"{place} is no ONNX model: {error}") from None
    if not model.graph.node and not model.graph.output:
        raise GraphError(f"{place} is no ONNX model: it has no graph")
    return model


def digest_of(model: ModelProto) -> str | None:
    """The hash of all that a model is; None for one that is too large for a message."""
    from google.protobuf.message import EncodeError

    try:
        return sha256_hex(model.SerializeToString(deterministic=True))
    except (EncodeError, ValueError):
        return None


def source_of(model: ModelProto, folder: Folder | None = None) -> OnnxSource:
    """The model as a source; ``folder`` is where data lies that is kept beside it."""
    from tc.graph.onnx.importer import OnnxSource

    return OnnxSource(model, folder)


def onnx_package(place: str) -> None:
    """GraphError where the ``onnx`` package is not installed."""
    if find_spec("onnx") is None:
        raise GraphError(f"{place} is read with the package `onnx`: pip install 'tensor-comprehensions[onnx]'")
