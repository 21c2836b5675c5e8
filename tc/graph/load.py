"""``load``: a model from a path, from bytes or text, or from what another package has parsed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tc.base.errors import GraphError
from tc.graph.formats import Format, format_of, is_text
from tc.graph.model import Model
from tc.graph.preparation import Settings

if TYPE_CHECKING:
    from onnx import ModelProto

    from tc.graph.ir.source import Source

# Of a model that has none of its own.
_NAME = "graph"


def load(model: str | Path | bytes | ModelProto, *, target: str | None = None, libraries: bool = False) -> Model:
    """The model of an ONNX file or of a GraphDef of TensorFlow.

    Given by its path, as bytes, as a ``ModelProto``, or as the text of a GraphDef.  Contents say which of them it is.
    ``libraries``: see ``Settings``.
    GraphError for what is no model, and for one with operators that are not supported, which it names.
    """
    return Model(_source(model), Settings(target=target, libraries=libraries))


def _source(model: str | Path | bytes | ModelProto) -> Source:
    from tc.graph.onnx.load import onnx_package, source_of

    if isinstance(model, str) and "{" in model and not _exists(model):
        text = model.encode("utf-8", "replace")
        if is_text(text):
            return _read(text, "what was given", None)
    if isinstance(model, str | Path):
        path = Path(model)
        try:
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            raise GraphError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        return _read(data, str(path), path)
    if isinstance(model, bytes):
        return _read(model, "what was given", None)
    onnx_package("a ModelProto")
    from onnx import ModelProto

    if not isinstance(model, ModelProto):
        raise GraphError(f"tc.graph.load takes a path, bytes, a text or a ModelProto, got {type(model).__name__}")
    return source_of(model)


def _read(data: bytes, place: str, path: Path | None) -> Source:
    from tc.graph.graphdef.load import read_graphdef, read_graphdef_text
    from tc.graph.onnx.load import read_model, source_of

    name = _NAME if path is None else path.stem
    match format_of(data):
        case Format.ONNX:
            return source_of(read_model(data, place), None if path is None else path.parent)
        case Format.GRAPHDEF:
            return read_graphdef(data, place, name)
        case Format.GRAPHDEF_TEXT:
            return read_graphdef_text(data, place, name)
        case Format.SAVED_MODEL:
            raise GraphError(f"{place} is a SavedModel, which is not read; freeze it, and give its GraphDef")
        case None:
            raise GraphError(f"{place} is no model: neither ONNX nor a GraphDef")


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # it is too long for a path, or has characters that none has
        return False
